"""A study's trials and refits in this process, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.cv.plan import OuterFold
from raysel.cv.prepared import FoldData
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.execution.computing import prepare_fold, refit
from raysel.execution.executor import Executor, refit_error
from raysel.execution.limits import SearchLimits
from raysel.execution.memory import machine_memory
from raysel.execution.recorder import Recorder
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Prepared folds are kept while they fill no more than this share of the machine's memory.
_MEMORY_SHARE = 0.25


class SerialExecutor(Executor):
    """Computes in this process: for tests, for debugging, and for studies too short for workers to pay.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._prepared: dict[tuple[str, int, str], FoldData] = {}
        self._n_bytes = 0

    def __exit__(self, *_: object) -> None:
        self._prepared.clear()

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Do what is left of a study's plan, one trial after the other."""
        search = self._study.config.search
        limits, recorder = (
            SearchLimits(search.time_budget, search.max_failures, plan),
            Recorder(plan, log),
        )
        log.enter_phase("")
        with threadpool_limits(search.cpus_per_trial), warnings.catch_warnings(action="ignore"):
            while not limits.reached():
                config = plan.propose()
                if config is None:
                    break
                self._run_trial(plan, config, recorder, limits)
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def _run_trial(self, plan: TrialPlan, config: dict[str, Any], recorder: Recorder, limits: SearchLimits) -> None:
        recorder.start()
        piece = plan.trial_class(self._study, config, self._fold_data)
        for iteration in piece.steps():
            if limits.reached():  # as on Ray, a trial that runs is left off and not recorded
                return
            recorder.refresh()
            rung = piece.rung(iteration)
            if rung and not plan.should_continue(config, rung):
                recorder.stop(piece.record)
                return
        recorder.keep(piece.record)

    def _fold_data(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> FoldData:
        key = fold.name, inner, self._study.prepare_key(params)
        if key in self._prepared:
            return self._prepared[key]
        data = prepare_fold(self._study, fold.inner[inner], params)
        if self._n_bytes + data.nbytes <= _MEMORY_SHARE * machine_memory():
            self._prepared[key], self._n_bytes = data, self._n_bytes + data.nbytes
        return data

    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets and score each once."""
        for fold, winner in winners:
            try:
                found = refit(self._study, fold, winner)
            except Exception as error:
                raise refit_error(fold, winner, f"{type(error).__name__}: {error}") from error
            yield found
