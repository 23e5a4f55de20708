"""Adaptive search on one outer fold: its own sampler and its own halving, nothing of any other fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from raysel.config import StudyConfig
from raysel.cv.plan import OuterFold
from raysel.cv.records import TrialRecord
from raysel.cv.seeds import derived_seed
from raysel.search.batches import BatchedProposals
from raysel.search.configurations import Configuration
from raysel.search.halving import SuccessiveHalving
from raysel.search.samplers import ListSampler, Sampler
from raysel.search.tpe import TPESampler

#: Score that a sampler is told of a trial that failed or was stopped without one: no metric is lower.
WORST_SCORE = -1.0


class FoldSearch:
    """The search of one outer fold.

    Parameters
    ----------
    config : StudyConfig
    fold : OuterFold
    configurations : sequence of Configuration
        The fixed list that is tried; empty for a sampler that finds its configurations itself.
    halving : SuccessiveHalving
        The fold's own, without any score.
    done : iterable of TrialRecord, default=()
        Trials of this fold that an earlier run of the study has finished, in the order in which they ended.
    """

    def __init__(
        self,
        config: StudyConfig,
        fold: OuterFold,
        configurations: Sequence[Configuration],
        halving: SuccessiveHalving,
        done: Iterable[TrialRecord] = (),
    ) -> None:
        self._config, self._fold, self._configurations, self._halving = config, fold, configurations, halving
        self._done = {record.id: record for record in done}
        search, space = config.search, config.solver.space
        known = {self._configuration(record).id: last_score(record) for record in self._done.values()}
        sampler, total = self._sampler(), len(configurations) or search.num_samples or 0
        if search.method == "tpe" and not search.synchronous:
            # The order in which they would be proposed again is unknown: the sampler learns from them as they are.
            for record in self._done.values():
                sampler.observe(record.params, last_score(record))
                self._note(record, 0)
            total, self._done = max(0, total - len(self._done)), {}
        batch_size = search.batch_size if search.synchronous else None
        self._proposals = BatchedProposals(sampler, total, tuple(space), known, batch_size)

    @property
    def n_asked(self) -> int:
        """Number of configurations that were proposed."""
        return self._proposals.n_asked

    @property
    def exhausted(self) -> bool:
        """Whether all configurations were proposed."""
        return self._proposals.exhausted

    def next(self) -> TrialRecord | None:
        """Return an empty record of the next configuration to try, or None if none may be asked for now."""
        found = self._proposals.next()
        return None if found is None else empty_record(found, self._fold.name)

    def should_continue(self, record: TrialRecord, level: int, score: float) -> bool:
        """Judge a trial at a rung.

        Parameters
        ----------
        record : TrialRecord
        level : int
            The rung: number of iterations done.
        score : float
            Its validation score there.

        Returns
        -------
        bool
        """
        numbers = self._proposals.numbers
        for done in list(self._done.values()):
            number = numbers.get(self._configuration(done).id)
            if number is not None:
                self._note(self._done.pop(done.id), number)
        return self._halving.should_continue(record.id, numbers[self._configuration(record).id], level, score)

    def tell(self, record: TrialRecord) -> None:
        """Learn from a trial that has ended."""
        id_ = self._configuration(record).id
        self._note(record, self._proposals.numbers[id_])
        self._proposals.tell(id_, last_score(record))

    def _configuration(self, record: TrialRecord) -> Configuration:
        return Configuration(record.params, tuple(self._config.solver.space))

    def _note(self, record: TrialRecord, number: int) -> None:
        curve = record.folds[self._fold.name].score_curve() if self._fold.name in record.folds else []
        self._halving.note(record.id, number, curve, ended=record.status in ("finished", "null"))

    def _sampler(self) -> Sampler:
        config, place = self._config, (self._fold.repeat, self._fold.index)
        if config.search.method != "tpe":
            # Not in the order of the grid: the first batch should cover the whole of it.
            seed = derived_seed(config.seed, "trial order", *place)
            order = np.random.default_rng(seed).permutation(len(self._configurations))
            return ListSampler([self._configurations[i] for i in order])
        # A resumed asynchronous search must not repeat the first draws.
        n_done = 0 if config.search.synchronous else len(self._done)
        return TPESampler(
            config.solver.params, config.solver.space, derived_seed(config.seed, "sampler", *place, n_done)
        )


def empty_record(configuration: Configuration, fold: str = "") -> TrialRecord:
    """Return a record of a configuration without any result.

    Parameters
    ----------
    configuration : Configuration
    fold : str, default=""
        The outer fold that the trial carries, where it carries only one.

    Returns
    -------
    TrialRecord
    """
    id_ = f"{fold}-{configuration.id}" if fold else configuration.id
    return TrialRecord(id_, configuration.name, dict(configuration.params), "finished", fold=fold)


def last_score(record: TrialRecord) -> float:
    """Return the last validation score of a trial on one outer fold.

    Parameters
    ----------
    record : TrialRecord

    Returns
    -------
    float
        `WORST_SCORE` if it has none.
    """
    scores = [trace.score for trace in record.folds.values()]
    return WORST_SCORE if not scores or scores[0] is None else scores[0]
