"""Executor that runs a study's trials and refits in this process, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.execution.computing import PreparedFolds, TaskEnd, refit, run_task
from raysel.execution.executor import Executor, refit_error
from raysel.execution.recorder import Recorder, SearchLimits
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Largest share of the machine's memory for prepared folds; further folds are prepared again for each trial.
MEMORY_SHARE = 0.25


class SerialExecutor(Executor):
    """Executor in this process, for tests, debugging and small studies."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._fold_data = PreparedFolds(study, MEMORY_SHARE)

    def __exit__(self, *_: object) -> None:
        self._fold_data.clear()

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan, one after the other."""
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
        trial = plan.trial_class(self._study, config, self._fold_data)
        for _ in plan.steps(trial, config):
            if limits.reached():  # as on Ray, a running trial is abandoned without a record
                return
            recorder.refresh()
        recorder.keep(trial.record)

    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, one after the other, and score each once."""
        for fold, winner in winners:
            try:
                result = refit(self._study, fold, winner)
            except Exception as error:
                first = str(error).strip().partition("\n")[0]  # some have lines of advice below
                raise refit_error(fold, winner, f"{type(error).__name__}: {first}") from error
            yield result

    def run_tasks(
        self,
        function: Callable[[Study, Any], Any],
        arguments: Sequence[Any],
        limit: float | None = None,
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, one after the other."""
        for argument in arguments:
            yield run_task(self._study, function, argument)
