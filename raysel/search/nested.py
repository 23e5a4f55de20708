"""The search of one outer fold: its own proposals, its own rungs, nothing of any other fold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from raysel.cv.plan import OuterFold
from raysel.cv.records import TrialRecord
from raysel.cv.seeds import derived_seed
from raysel.search.configurations import Configuration
from raysel.search.samplers import WORST_SCORE, FoldProposals, ListSampler, Sampler, TPESampler
from raysel.study.definition import Study


class FoldSearch:
    """What an outer fold tries next, and which of its trials go on.

    Parameters
    ----------
    study : Study
    fold : OuterFold
    kept : iterable of TrialRecord
        The fold's trials that an earlier run of the study has written down, in that order.
    """

    def __init__(self, study: Study, fold: OuterFold, kept: Iterable[TrialRecord] = ()) -> None:
        self._study, self._fold = study, fold
        self._kept = {record.id: record for record in kept}
        self._rungs = study.rungs
        search, space = study.config.search, study.config.solver.space
        known = {self._configuration(r.params).id: fold_score(r) for r in self._kept.values()}
        source, total = self._source(), study.n_configurations
        if search.method == "tpe" and not search.synchronous:
            # In what order they would be proposed again nobody knows: they are learnt from as they are.
            for record in self._kept.values():
                source.observe(record.params, fold_score(record))
                self._note(record, 0)
            total, self._kept = max(0, total - len(self._kept)), {}
        self._proposals = FoldProposals(
            source, total, tuple(space), known, search.batch_size if search.synchronous else None
        )

    @property
    def n_asked(self) -> int:
        """How many configurations have been proposed."""
        return self._proposals.n_asked

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to propose."""
        return self._proposals.exhausted

    def next(self) -> TrialRecord | None:
        """An empty record of the next configuration to try; None while there is none to ask for."""
        found = self._proposals.next()
        return None if found is None else self._study.fold_record(self._fold.name, found.params)

    def should_continue(self, record: TrialRecord, level: int, score: float) -> bool:
        """Whether a trial that has come to a rung with this score may go on."""
        numbers = self._proposals.numbers
        for kept in list(self._kept.values()):
            number = numbers.get(self._configuration(kept.params).id)
            if number is not None:
                self._note(self._kept.pop(kept.id), number)
        configuration = self._configuration(record.params)
        return self._rungs.should_continue(record.id, numbers[configuration.id], level, score)

    def settle(self, record: TrialRecord) -> None:
        """Learn from a trial that has ended."""
        id_ = self._configuration(record.params).id
        self._note(record, self._proposals.numbers[id_])
        self._proposals.settle(id_, fold_score(record))

    def _configuration(self, params: object) -> Configuration:
        return Configuration(params, tuple(self._study.config.solver.space))  # type: ignore[arg-type]

    def _note(self, record: TrialRecord, number: int) -> None:
        curve = record.folds[self._fold.name].score_curve() if self._fold.name in record.folds else []
        self._rungs.note(record.id, number, curve, ended=record.status in ("finished", "null"))

    def _source(self) -> Sampler:
        config = self._study.config
        place = self._fold.repeat, self._fold.index
        if config.search.method != "tpe":
            # Not in the order of the grid: the first batch should see all of it.
            seed = derived_seed(config.seed, "trial order", *place)
            order = np.random.default_rng(seed).permutation(len(self._study.configurations))
            return ListSampler([self._study.configurations[i] for i in order])
        # What is proposed after a resume must not repeat the first draws.
        again = 0 if config.search.synchronous else len(self._kept)
        state = derived_seed(config.seed, "sampler", *place, again)
        return TPESampler(config.solver.params, config.solver.space, state)


def fold_score(record: TrialRecord) -> float:
    """What a search is told of a trial: its last validation score; the worst there is if it has none.

    Parameters
    ----------
    record : TrialRecord
        Of one outer fold.

    Returns
    -------
    float
    """
    scores = [trace.score for trace in record.folds.values()]
    return WORST_SCORE if not scores or scores[0] is None else scores[0]
