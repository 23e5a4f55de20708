"""Computations of an executor besides trials: prepared folds, refits of the winners and independent tasks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.core.machine import machine_memory
from raysel.evaluation.lockstep import FoldData
from raysel.evaluation.plan import InnerFold, OuterFold
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.evaluation.refit import refit_winner
from raysel.study.definition import Study

#: Bytes of data from which on the folds that are kept are bounded by them: copies of small data may outweigh them.
_LARGE = 2**26


def prepare_fold(study: Study, inner: InnerFold, params: Mapping[str, Any]) -> FoldData:
    """Scale and prepare one inner fold with ``search.cpus_per_trial`` threads."""
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner, params)


def room_for_folds(study: Study, memory_share: float) -> float:
    """Return how many bytes of prepared folds are kept in this process; none that one configuration alone would read.

    Of large data half their size, else a share of the machine's memory.
    """
    n_bytes = study.dataset.X.nbytes
    if len(study.configurations) == 1:
        return 0.0
    return n_bytes / 2 if n_bytes > _LARGE else memory_share * machine_memory()


class PreparedFolds:
    """Source of prepared folds for trials in this process, which keeps those that fit into its share of the memory."""

    def __init__(self, study: Study, memory_share: float) -> None:
        self._study, self._room = study, room_for_folds(study, memory_share)
        self._kept: dict[tuple[str, int, str], FoldData] = {}

    def __call__(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> FoldData:
        """Return an inner fold, given by its number, prepared for a configuration's parameters."""
        key = fold.name, inner, self._study.prepare_key(params)
        if key in self._kept:
            return self._kept[key]
        data = prepare_fold(self._study, fold.inner[inner], params)
        if data.nbytes <= self._room:
            self._kept[key], self._room = data, self._room - data.nbytes
        return data

    def clear(self) -> None:
        """Forget the folds that are kept."""
        self._kept.clear()


def refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    """Refit an outer fold's winner on its training set and score it once."""
    state = fold.random_state(study.config.seed)
    with threadpool_limits(study.config.search.cpus_per_trial):
        return refit_winner(
            study.dataset.X,
            study.dataset.y,
            fold,
            winner,
            study.solver(winner.params, state),
            scaler=study.scaler(),
            evaluation=study.evaluation,
            random_state=state,
            redundancy_sizes=study.redundancy_sizes,
            feature_names=study.dataset.feature_names,
            classes=study.dataset.classes,
            n_shown=study.default_top,
            inner_states=[fold.random_state(study.config.seed, i) for i in range(len(fold.inner))],
        )


@dataclass(frozen=True)
class TaskEnd:
    """Value or error of a task of `Executor.run_tasks`."""

    argument: Any
    value: Any = None
    error: str = ""
    #: CPU time of the task in seconds.
    cpu_seconds: float = 0.0


def run_task(study: Study, function: Callable[[Study, Any], Any], argument: Any) -> TaskEnd:
    """Compute a task with ``search.cpus_per_trial`` threads and without its warnings."""
    started = time.process_time()
    with threadpool_limits(study.config.search.cpus_per_trial), warnings.catch_warnings(action="ignore"):
        try:
            value, error = function(study, argument), ""
        except Exception as raised:  # noqa: BLE001 - any error of a method ends its own task only
            value, error = None, f"{type(raised).__name__}: {raised}"
    return TaskEnd(argument, value, error, time.process_time() - started)
