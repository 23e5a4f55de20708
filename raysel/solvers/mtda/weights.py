"""What each task weighs in MTDA's shared ratio, and which tasks have no say in it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError

#: A task was dropped by the joint ratio if its projection keeps less than this share of its scatter and its own ratio
#: is less than this share of the joint one.
DROPPED, BELOW = 1e-6, 0.5


def resolve_weights(wanted: str | ArrayLike, samples: Sequence[TaskSamples], traces: FloatArray) -> FloatArray:
    """w_i; 0 for a task whose classes all have a single sample, for its ratio is 1 whatever U_i is.

    Parameters
    ----------
    wanted : {"inverse_trace", "uniform"} or array-like of shape (n_tasks,)
    samples : sequence of TaskSamples
    traces : ndarray of shape (n_tasks,)
        tr(S_t^i).

    Returns
    -------
    ndarray of shape (n_tasks,)

    Raises
    ------
    ConfigError
        If given weights are not one non-negative number a task, with one above 0.
    """
    if isinstance(wanted, str):
        weights = 1.0 / traces if wanted == "inverse_trace" else np.ones(len(samples))
    else:
        weights = given_weights(wanted, len(samples))
    informative = np.array([_has_scatter_within_classes(task) for task in samples])
    return weights * informative if (weights * informative).any() else weights


def given_weights(wanted: ArrayLike, n_tasks: int) -> FloatArray:
    """Weights that the user gives.

    Parameters
    ----------
    wanted : array-like of shape (n_tasks,)
    n_tasks : int

    Returns
    -------
    ndarray of shape (n_tasks,)

    Raises
    ------
    ConfigError
        If they are not one non-negative number a task, with one above 0.
    """
    try:
        weights = np.asarray(wanted, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (n_tasks,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise ConfigError(f"task_weights={wanted!r} must be {n_tasks} non-negative numbers, one a task, not all zero.")
    return weights


def _has_scatter_within_classes(task: TaskSamples) -> bool:
    counts = task.counts
    single = task.classes[counts == 1]
    several = bool((counts > 1).any())
    if single.size:
        effect = "they say nothing of the scatter within classes" if several else "its weight is set to 0"
        warnings.warn(
            f"{task} has {single.size} of {len(counts)} classes with a single sample (e.g. {single[0]!s}): {effect}.",
            UserWarning,
            stacklevel=4,
        )
    return several


def warn_of_dropped_tasks(names: Sequence[str], retained: FloatArray, ratios: FloatArray, joint: float) -> None:
    """Warn of each task whose projection keeps next to nothing of its scatter, only not to lower the joint ratio.

    A projection that parts the classes about as well as the joint ratio was chosen for that, however small its scatter.

    Parameters
    ----------
    names : sequence of str
    retained : ndarray of shape (n_tasks,)
        Share of the scatter kept.
    ratios : ndarray of shape (n_tasks,)
        Each task's own.
    joint : float
    """
    for name, share, ratio in zip(names, retained, ratios, strict=True):
        if share < DROPPED and ratio < BELOW * joint:
            warnings.warn(
                f"{name} was dropped by the joint ratio: its projection keeps {share:.1e} of its scatter."
                " Give it fewer components, or fit it alone.",
                UserWarning,
                stacklevel=5,
            )
