"""Executor in processes of joblib on this machine, which needs neither Ray nor files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.execution.executor import Recorder, SearchLimits, TaskEnd, refit_error
from raysel.execution.serial import MEMORY_SHARE, PreparedFolds, SerialExecutor, refit, run_task
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Trial
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Sets of trials that each process gets, so that a slow one does not end last alone.
_SETS_A_PROCESS = 4


class ProcessExecutor(SerialExecutor):
    """Executor in ``n_jobs`` processes; searches whose trials depend on earlier ones run in this process."""

    def __init__(self, study: Study, n_jobs: int) -> None:
        super().__init__(study)
        self._parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        self._ordered = Parallel(n_jobs=n_jobs, return_as="generator")
        self._n_jobs = n_jobs

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan, several at once."""
        search = self._study.config.search
        if search.adaptive:
            return super().run_trials(plan, log)
        limits, recorder = (
            SearchLimits(search.time_budget, search.max_failures, plan),
            Recorder(plan, log),
        )
        log.enter_phase("")
        configs = list(iter(plan.propose, None))
        n_sets = min(len(configs), _SETS_A_PROCESS * self._n_jobs)
        sets = [configs[i::n_sets] for i in range(n_sets)]
        share = MEMORY_SHARE / self._n_jobs
        ended = self._parallel(
            delayed(_run_trials)(self._study, plan.trial_class, part, share) for part in sets
        )
        for records in ended:
            for record in records:
                log.trial_started()
                recorder.keep(record)
            if limits.reached():
                ended.close()
                break
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def run_refits(
        self, winners: Sequence[tuple[OuterFold, TrialRecord]]
    ) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, several at once, and score each once."""
        ended = self._ordered(delayed(run_task)(self._study, _refit, winner) for winner in winners)
        for (fold, winner), end in zip(winners, ended, strict=True):
            if end.error:
                raise refit_error(fold, winner, end.error)
            yield end.value

    def run_tasks(
        self,
        function: Callable[[Study, Any], Any],
        arguments: Sequence[Any],
        limit: float | None = None,
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, several at once."""
        yield from self._parallel(
            delayed(run_task)(self._study, function, argument) for argument in arguments
        )


def _run_trials(
    study: Study,
    trial_class: type[Trial],
    configs: Sequence[Mapping[str, Any]],
    memory_share: float,
) -> list[TrialRecord | PathRecord]:
    """Run trials one after the other, and return their records."""
    folds, records = PreparedFolds(study, memory_share), []
    with (
        threadpool_limits(study.config.search.cpus_per_trial),
        warnings.catch_warnings(action="ignore"),
    ):
        for config in configs:
            trial = trial_class(study, config, folds)
            for _ in trial.steps():
                pass
            records.append(trial.record)
    return records


def _refit(study: Study, winner: tuple[OuterFold, TrialRecord]) -> tuple[RefitRecord, Any]:
    return refit(study, *winner)
