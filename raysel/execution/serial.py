"""Computations of a study in this process, and the executor that does them one after the other.

Executors limit the threads of the libraries once for several computations: to find the libraries
takes milliseconds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.core.errors import raise_storage_error
from raysel.core.machine import machine_memory
from raysel.evaluation.plan import OuterFold, name_draws
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.evaluation.refit import RefitSettings, refit_winner
from raysel.evaluation.split import Split
from raysel.execution.executor import Executor, Recorder, SearchLimits, TaskEnd, refit_error
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Bytes of data from which on the folds that are kept are bounded by them: copies of small data may
#: outweigh them.
_LARGE = 2**26
#: Largest share of the machine's memory for prepared folds; further folds are prepared again for
#: each trial.
MEMORY_SHARE = 0.25


def limited_threads(study: Study) -> threadpool_limits:
    """Limit the threads of the libraries to ``search.cpus_per_trial``."""
    return threadpool_limits(study.config.search.cpus_per_trial)


def room_for_folds(study: Study, memory_share: float) -> float:
    """Return how many bytes of prepared folds this process keeps.

    Half the size of large data, else a share of the machine's memory; 0 where each fold is used
    once.
    """
    n_bytes = study.dataset.X.nbytes
    if len(study.configurations) == 1 or study.shares_steps:
        return 0.0
    if n_bytes > _LARGE:
        return n_bytes / 2
    return memory_share * machine_memory()


class PreparedFolds:
    """Source of prepared folds, which keeps those that fit into its share of the memory."""

    def __init__(self, study: Study, memory_share: float) -> None:
        self._study, self._room = study, room_for_folds(study, memory_share)
        self._kept: dict[tuple[str, int, str], Split] = {}

    def __call__(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> Split:
        """Return an inner fold, given by its number, prepared for a configuration's parameters."""
        key = fold.name, inner, self._study.prepare_key(params)
        if key in self._kept:
            return self._kept[key]
        split = self._study.trial_split(fold, inner, params)
        if split.nbytes <= self._room:
            self._kept[key], self._room = split, self._room - split.nbytes
        return split

    def clear(self) -> None:
        """Forget the folds that are kept."""
        self._kept.clear()


def refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    """Refit an outer fold's winner on its training set and score it once."""
    split = study.split(fold, params=winner.params)
    settings = RefitSettings(
        evaluation=study.evaluation,
        n_shown=study.default_top,
        feature_names=study.dataset.feature_names,
        redundancy_sizes=study.redundancy_sizes,
        over_samples=not name_draws(each.name for each in study.plan.outer),
    )
    solver = study.solver(winner.params, split.random_state)
    inner = study.inner_splits(fold, winner.params)
    return refit_winner(split, winner, solver=solver, settings=settings, inner=inner)


def run_task(study: Study, function: Callable[[Study, Any], Any], argument: Any) -> TaskEnd:
    """Compute a task without its warnings."""
    started = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        try:
            value, error = function(study, argument), ""
        except Exception as raised:  # noqa: BLE001 - any error of a method ends its own task only
            raise_storage_error(raised)
            value, error = None, f"{type(raised).__name__}: {raised}"
    return TaskEnd(argument, value, error, time.process_time() - started)


class SerialExecutor(Executor):
    """Executor in this process, for tests, debugging and small studies."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._splits = PreparedFolds(study, MEMORY_SHARE)

    def __exit__(self, *_: object) -> None:
        self._splits.clear()

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan, one after the other."""
        search = self._study.config.search
        limits, recorder = (
            SearchLimits(search.time_budget, search.max_failures, plan),
            Recorder(plan, log),
        )
        log.enter_phase("")
        with limited_threads(self._study), warnings.catch_warnings(action="ignore"):
            while not limits.reached():
                config = plan.propose()
                if config is None:
                    break
                self._run_trial(plan, config, recorder, limits)
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def _run_trial(
        self, plan: TrialPlan, config: dict[str, Any], recorder: Recorder, limits: SearchLimits
    ) -> None:
        recorder.log.trial_started()
        trial = plan.trial_class(self._study, config, self._splits)
        for _ in plan.steps(trial, config):
            if limits.reached():  # as on Ray, a running trial is abandoned without a record
                return
            recorder.log.refresh()
        recorder.keep(trial.record)

    def run_refits(
        self, winners: Sequence[tuple[OuterFold, TrialRecord]]
    ) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, one after the other, and score each once."""
        with limited_threads(self._study):
            for fold, winner in winners:
                try:
                    result = refit(self._study, fold, winner)
                except Exception as error:
                    raise_storage_error(error)
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
        with limited_threads(self._study):
            for argument in arguments:
                yield run_task(self._study, function, argument)
