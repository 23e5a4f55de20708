"""Computations of an executor besides trials: prepared folds, refits of the winners and independent tasks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.cv.plan import InnerFold, OuterFold
from raysel.cv.prepared import FoldData
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.refit import refit_winner
from raysel.study.definition import Study


def prepare_fold(study: Study, inner: InnerFold, params: Mapping[str, Any]) -> FoldData:
    """Scale and prepare one inner fold with ``search.cpus_per_trial`` threads.

    Parameters
    ----------
    study : Study
        The study.
    inner : InnerFold
        Inner fold to prepare.
    params : mapping of str to object
        Parameters of a configuration; all configurations with the same ``Study.prepare_key`` share the result.

    Returns
    -------
    FoldData
        Scaled samples and preparation.
    """
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner, params)


def refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    """Refit an outer fold's winner on its training set and score it once.

    Parameters
    ----------
    study : Study
        The study.
    fold : OuterFold
        Outer fold to refit.
    winner : TrialRecord
        Trial that was selected on this outer fold.

    Returns
    -------
    record : RefitRecord
        Record of the refit.
    model : FeaturePipeline
        Fitted scaler, selector and classifier.
    """
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
        )


@dataclass(frozen=True)
class TaskEnd:
    """Value or error of a task of `Executor.run_tasks`.

    Parameters
    ----------
    argument : object
        Argument of the task.
    value : object, optional
        What the function returned; None if it failed.
    error : str, default=""
        Type and text of the exception if it failed, else empty.
    cpu_seconds : float, default=0.0
        CPU time of the task in seconds.
    """

    argument: Any
    value: Any = None
    error: str = ""
    cpu_seconds: float = 0.0


def run_task(study: Study, function: Callable[[Study, Any], Any], argument: Any) -> TaskEnd:
    """Compute a task with ``search.cpus_per_trial`` threads and without its warnings.

    Parameters
    ----------
    study : Study
        The study.
    function : callable
        Function of the study and the argument.
    argument : object
        Its argument.

    Returns
    -------
    TaskEnd
        Value or error of the task.
    """
    started = time.process_time()
    with threadpool_limits(study.config.search.cpus_per_trial), warnings.catch_warnings(action="ignore"):
        try:
            value, error = function(study, argument), ""
        except Exception as raised:  # noqa: BLE001 - any error of a method ends its own task only
            value, error = None, f"{type(raised).__name__}: {raised}"
    return TaskEnd(argument, value, error, time.process_time() - started)
