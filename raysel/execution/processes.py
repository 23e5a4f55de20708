"""Executor in processes of joblib on this machine, which needs neither Ray nor files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from raysel.evaluation.lost_trials import worker_died
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.execution.executor import Recorder, SearchLimits, TaskEnd, refit_error
from raysel.execution.serial import (
    MEMORY_SHARE,
    PreparedFolds,
    SerialExecutor,
    limited_threads,
    refit,
    run_task,
)
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Trial
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Number of times that a trial or task is computed whose process dies, with no other beside it.
N_ATTEMPTS = 3
#: Error of one whose process died each time.
KILLED = worker_died(N_ATTEMPTS)
#: Sets of trials that each process gets, so that a slow one does not end last alone.
_SETS_A_PROCESS = 4


class ProcessExecutor(SerialExecutor):
    """Executor in ``n_jobs`` processes, or in this one where trials depend on earlier ones."""

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
        run = partial(_run_trials, plan.trial_class, MEMORY_SHARE / self._n_jobs)
        ended = self._ended(self._parallel, run, sets, log.message)
        for config, record in ended:
            log.trial_started()
            if record is None:
                recorder.lose(config, KILLED)
            else:
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
        run = partial(_run_tasks, _refit)
        for pair, end in self._ended(self._ordered, run, [[pair] for pair in winners]):
            refit = end or TaskEnd(pair, error=KILLED)
            if refit.error:
                fold, winner = pair
                raise refit_error(fold, winner, refit.error)
            yield refit.value

    def run_tasks(
        self,
        function: Callable[[Study, Any], Any],
        arguments: Sequence[Any],
        limit: float | None = None,
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, several at once."""
        parts = [[argument] for argument in arguments]
        for argument, end in self._ended(self._parallel, partial(_run_tasks, function), parts):
            yield end or TaskEnd(argument, error=KILLED)

    def _ended(
        self,
        parallel: Parallel,
        run: Callable[[Study, Sequence[Any]], list[Any]],
        parts: Sequence[Sequence[Any]],
        say: Callable[[str], object] = warnings.warn,
    ) -> Generator[tuple[Any, Any]]:
        """Yield each item of all parts and its value; None if it killed its process each time.

        A process that dies ends all others: what they had not returned is computed again, one item
        after the other.
        """
        left = dict(enumerate(parts))
        numbered = (delayed(_numbered)(n, run, self._study, part) for n, part in enumerate(parts))
        try:
            for number, values in parallel(numbered):
                yield from zip(left.pop(number), values, strict=True)
        except TerminatedWorkerError:
            say(
                "a worker process was killed, or ran out of memory: what is left is computed in one"
                " process at a time, which is slower. Set a smaller n_jobs if memory is short"
            )
        for item in chain.from_iterable(left.values()):
            yield item, self._alone(run, item)

    def _alone(self, run: Callable[[Study, Sequence[Any]], list[Any]], item: Any) -> Any:
        for _ in range(N_ATTEMPTS):
            with suppress(TerminatedWorkerError):
                # More than one process, so that joblib does not compute it in this one.
                ((value,),) = Parallel(n_jobs=2)([delayed(run)(self._study, [item])])
                return value
        return None


def _numbered(
    number: int,
    run: Callable[[Study, Sequence[Any]], list[Any]],
    study: Study,
    part: Sequence[Any],
) -> tuple[int, list[Any]]:
    return number, run(study, part)


def _run_tasks(
    function: Callable[[Study, Any], Any], study: Study, arguments: Sequence[Any]
) -> list[TaskEnd]:
    with limited_threads(study):
        return [run_task(study, function, argument) for argument in arguments]


def _run_trials(
    trial_class: type[Trial],
    memory_share: float,
    study: Study,
    configs: Sequence[Mapping[str, Any]],
) -> list[TrialRecord | PathRecord]:
    """Run trials one after the other, and return their records."""
    folds, records = PreparedFolds(study, memory_share), []
    with (
        limited_threads(study),
        warnings.catch_warnings(action="ignore"),
    ):
        for config in configs:
            trial = trial_class(study, config, folds)
            for _ in trial.steps():
                pass
            records.append(trial.record)
    return records


def _refit(study: Study, winner: tuple[OuterFold, TrialRecord]) -> tuple[RefitRecord, Any]:
    with limited_threads(study):
        return refit(study, *winner)
