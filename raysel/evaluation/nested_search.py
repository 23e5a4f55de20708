"""Search of one outer fold: what is tried next, what is stopped early, and what wins."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from raysel.config import StudyConfig
from raysel.core.errors import StudyError, headline
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.lost_trials import was_lost
from raysel.evaluation.plan import OuterFold, derived_seed
from raysel.evaluation.records import DECIMALS, ChooseN, FoldTrace, TrialRecord
from raysel.evaluation.sampler_registry import sampler_class
from raysel.evaluation.samplers import BatchedProposals, ListSampler, Sampler


class SuccessiveHalving:
    """Early stopping of the trials of one outer fold by their scores at the rungs.

    A trial continues at a rung if its score there is at least the ``1 - 1 / reduction_factor``
    quantile of the scores of the other trials (ASHA: Li et al., "A system for massively parallel
    hyperparameter tuning", MLSys 2020).
    """

    def __init__(
        self, grace_period: int, reduction_factor: int, max_iter: int, batch_size: int | None
    ) -> None:
        levels = [grace_period]
        while levels[-1] * reduction_factor < max_iter:
            levels.append(levels[-1] * reduction_factor)
        self.levels = tuple(level for level in levels if level < max_iter)
        self._share = 1 - 1 / reduction_factor
        self._batch_size = batch_size
        self._scores: dict[int, dict[str, tuple[int, float]]] = {level: {} for level in self.levels}

    def should_continue(self, id_: str, number: int, level: int, score: float) -> bool:
        """Record a trial's score at a rung and return whether the trial continues."""
        scores = self._scores[level]
        scores[id_] = number, score
        others = [
            other
            for key, (n, other) in scores.items()
            if key != id_ and self._is_comparable(n, number)
        ]
        return not others or bool(score >= np.quantile(others, self._share))

    def note(self, id_: str, number: int, curve: Sequence[float], *, ended: bool) -> None:
        """Record the scores at all rungs of a trial that has ended."""
        for level, scores in self._scores.items():
            if curve and (ended or len(curve) >= level):
                scores[id_] = number, curve[min(level, len(curve)) - 1]

    def _is_comparable(self, other: int, number: int) -> bool:
        return self._batch_size is None or other // self._batch_size < number // self._batch_size


#: Score reported to the sampler for a trial without a score; no metric is lower.
WORST_SCORE = -math.inf


class FoldSearch:
    """Search on one outer fold."""

    def __init__(
        self,
        config: StudyConfig,
        fold: OuterFold,
        configurations: Sequence[Configuration],
        halving: SuccessiveHalving,
        done: Iterable[TrialRecord] = (),
    ) -> None:
        self._config, self._fold = config, fold
        self._configurations, self._halving = configurations, halving
        self._done = {record.id: record for record in done}
        search, space = config.search, config.solver.space
        known = {
            self._configuration(record).id: self._score(record) for record in self._done.values()
        }
        sampler, total = self._sampler(), len(configurations) or search.num_samples or 0
        self._n_before = 0
        if search.learns and not search.synchronous:
            self._n_before = len(self._done)
            # They may not be proposed in the same order again, so the sampler observes them before
            # it proposes any.
            for record in self._done.values():
                sampler.observe(record.params, self._score(record))
                self._note(record, 0)
            total, self._done = max(0, total - len(self._done)), {}
        self._proposals = BatchedProposals(
            sampler, total, searched=tuple(space), known=known, batch_size=search.synchronous_batch
        )

    @property
    def n_asked(self) -> int:
        """Number of configurations that were proposed."""
        return self._proposals.n_asked

    @property
    def exhausted(self) -> bool:
        """Whether all configurations were proposed."""
        return self._proposals.exhausted

    def next(self) -> TrialRecord | None:
        """Return an empty record of the next configuration to try; None if there is none now."""
        configuration = self._proposals.next()
        if configuration is None:
            return None
        number = self._n_before + self._proposals.numbers[configuration.id]
        return empty_record(configuration, self._fold.name, number)

    def should_continue(self, record: TrialRecord, level: int, score: float) -> bool:
        """Return whether a trial continues at a rung."""
        numbers = self._proposals.numbers
        for done in list(self._done.values()):
            number = numbers.get(self._configuration(done).id)
            if number is not None:
                self._note(self._done.pop(done.id), number)
        return self._halving.should_continue(
            record.id, numbers[self._configuration(record).id], level, score
        )

    def tell(self, record: TrialRecord) -> None:
        """Report a trial that has ended to the sampler and to successive halving."""
        id_ = self._configuration(record).id
        self._note(record, self._proposals.numbers[id_])
        self._proposals.tell(id_, self._score(record))

    def _configuration(self, record: TrialRecord) -> Configuration:
        return Configuration(record.params, tuple(self._config.solver.space))

    def _note(self, record: TrialRecord, number: int) -> None:
        trace = record.folds.get(self._fold.name, FoldTrace())
        curve = trace.score_curve(self._config.evaluation.rule)
        self._halving.note(record.id, number, curve, ended=record.status in ("finished", "null"))

    def _score(self, record: TrialRecord) -> float:
        return last_score(record, self._config.evaluation.rule)

    def _sampler(self) -> Sampler:
        config, place = self._config, (self._fold.repeat, self._fold.index)
        if not config.search.learns:
            # Shuffled, so that the first batch covers the whole grid.
            seed = derived_seed(config.seed, "trial order", *place)
            order = np.random.default_rng(seed).permutation(len(self._configurations))
            return ListSampler([self._configurations[i] for i in order])
        # A resumed asynchronous search must not repeat the draws of the earlier run.
        n_done = 0 if config.search.synchronous else len(self._done)
        seed = derived_seed(config.seed, "sampler", *place, n_done)
        make = sampler_class(config.search.method)
        return make(config.solver.params, config.solver.space, seed)


def empty_record(configuration: Configuration, fold: str = "", number: int = 0) -> TrialRecord:
    """Return a record of a configuration without any result."""
    id_ = configuration.id
    if fold:
        id_ = f"{fold}-{id_}"
    return TrialRecord(
        id_, configuration.name, dict(configuration.params), "finished", fold=fold, number=number
    )


def last_score(record: TrialRecord, rule: ChooseN) -> float:
    """Return the last validation score of a trial on one outer fold."""
    scores = [trace.score(rule) for trace in record.folds.values()]
    if not scores or scores[0] is None:
        return WORST_SCORE
    return scores[0]


def select_winner(
    records: Collection[TrialRecord],
    fold: str,
    preference: Mapping[str, tuple[tuple[float, ...], int]],
    rule: ChooseN,
) -> tuple[TrialRecord, int]:
    """Return the trial with the best score on an outer fold.

    Ties go to fewer features, unless ``rule`` is ``mean``, then to the simpler configuration, then
    to the one that comes first in the search.
    """
    candidates = []
    for record in records:
        if record.status == "stopped":
            continue
        chosen = record.folds.get(fold, FoldTrace()).choice(rule)
        if chosen is None:
            continue
        position = 0
        if rule != "mean":
            position = chosen.position
        complexity, place = preference[record.id]
        candidates.append(
            ((-round(chosen.score, DECIMALS), position, complexity), place, record.id, record)
        )
    if not candidates:
        raise StudyError(_explain_no_score(records, fold))
    best = min(candidates, key=lambda item: item[:3])
    return best[3], sum(item[0] == best[0] for item in candidates)


def _explain_no_score(records: Collection[TrialRecord], fold: str) -> str:
    """Return why no configuration has a score on an outer fold, and what to do."""
    failed = f"no configuration has a score on {fold}: "
    causes = [headline(record.failure) for record in records if record.failure]
    if not causes:
        return f"{failed}no trial has finished. Raise search.time_budget."
    mend = "Change solver.space, or raise search.trial_timeout if that ended them."
    traces = [record.folds[fold] for record in records if fold in record.folds]
    if traces and all(trace.error and trace.inner for trace in traces):
        mend = "Change evaluation.estimator or evaluation.n_features."
    if any(map(was_lost, records)):
        mend = "Resume it, or run it again: with fewer trials at once if memory ran short."
    return f"{failed}{len(causes)} failed, the first with {causes[0]!r}. {mend}"
