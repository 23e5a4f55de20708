"""Weights of the tasks in MTDA's shared ratio, and a warning of tasks that the ratio drops."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError

#: The joint ratio has dropped a task if the projection retains less than the share DROPPED of its scatter and its own
#: ratio is less than the share BELOW of the joint one.
DROPPED, BELOW = 1e-6, 0.5


def resolve_weights(wanted: str | ArrayLike, samples: Sequence[TaskSamples], traces: FloatArray) -> FloatArray:
    """Compute the weights w_i of the tasks.

    A task whose classes all have a single sample gets weight 0, because its ratio is 1 for every U_i.

    `wanted` and `traces` are (n_tasks,); returns (n_tasks,).
    """
    if isinstance(wanted, str):
        weights = 1.0 / traces if wanted == "inverse_trace" else np.ones(len(samples))
    else:
        weights = given_weights(wanted, len(samples))
    informative = np.array([_has_scatter_within_classes(task) for task in samples])
    return weights * informative if (weights * informative).any() else weights


def given_weights(wanted: ArrayLike, n_tasks: int) -> FloatArray:
    """Validate weights given by the user. `wanted` is (n_tasks,); returns (n_tasks,)."""
    try:
        weights = np.asarray(wanted, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (n_tasks,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise ConfigError(
            f"task_weights={wanted!r} must be {n_tasks} non-negative numbers, one for each task, not all zero."
        )
    return weights


def _has_scatter_within_classes(task: TaskSamples) -> bool:
    counts = task.counts
    single = task.classes[counts == 1]
    several = bool((counts > 1).any())
    if single.size:
        effect = "they do not contribute to the scatter within classes" if several else "its weight is set to 0"
        warnings.warn(
            f"{task} has {single.size} of {len(counts)} classes with a single sample (e.g. {single[0]!s}): {effect}.",
            UserWarning,
            stacklevel=4,
        )
    return several


def warn_of_dropped_tasks(names: Sequence[str], retained: FloatArray, ratios: FloatArray, joint: float) -> None:
    """Warn of each task whose projection retains almost no scatter and separates its classes poorly.

    Such a projection was chosen only because it does not lower the joint ratio. A projection of small scatter whose
    own ratio is comparable to the joint one is useful and causes no warning.

    `retained` and `ratios` are (n_tasks,).
    """
    for name, share, ratio in zip(names, retained, ratios, strict=True):
        if share < DROPPED and ratio < BELOW * joint:
            warnings.warn(
                f"{name} was dropped by the joint ratio: its projection retains {share:.1e} of its scatter."
                " Reduce its n_components, or fit it separately.",
                UserWarning,
                stacklevel=5,
            )
