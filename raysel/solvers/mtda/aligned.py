"""MTDA where the tasks' features are mapped into one space by given W_i: only then is there something to share.

"projection": one P for all tasks,
    maximise over P'P = I:   tr(P' sum_i w_i W_i' S_b^i W_i P) / tr(P' sum_i w_i W_i' S_t^i W_i P),   U_i = W_i P
"within": each task its own V_i, the within-class scatter pooled over the mapped tasks,
    maximise over V_i'V_i = I:   sum_i w_i tr(V_i' B_i V_i) / sum_i w_i tr(V_i' (B_i + S_w) V_i),   U_i = W_i V_i,
with B_i = W_i' S_b^i W_i and S_w = sum_i n_i W_i' S_w^i W_i / sum_i n_i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.base.projections.components import warn_of_lost_directions
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError, DataError
from raysel.linalg.scatter import centre, equilibrated_rank, scatter_range, thin_svd
from raysel.linalg.trace_ratio import Scatters, maximize_trace_ratio, shrunken


@dataclass(frozen=True)
class MappedTasks:
    """The tasks in the common space.

    Attributes
    ----------
    maps : tuple of ndarray of shape (D_i, d'), or None
        W_i; None for the identity.
    means : tuple of ndarray of shape (D_i,)
    samples : tuple of ndarray of shape (n_i, d')
        (X_i - mean_i) W_i.
    """

    maps: tuple[FloatArray, ...] | None
    means: tuple[FloatArray, ...]
    samples: tuple[FloatArray, ...]

    def lift(self, bases: Sequence[FloatArray]) -> list[FloatArray]:
        """W_i V_i: directions of the common space, in each task's own features."""
        if self.maps is None:
            return list(bases)
        return [W @ V for W, V in zip(self.maps, bases, strict=True)]


def check_maps(maps: Sequence[ArrayLike], names: Sequence[str], widths: Sequence[int]) -> list[FloatArray]:
    """One map a task, all into one space.

    Parameters
    ----------
    maps : sequence of array-like of shape (D_i, d')
    names : sequence of str
        What messages call the tasks.
    widths : sequence of int
        D_i.

    Returns
    -------
    list of ndarray of shape (D_i, d')

    Raises
    ------
    ConfigError
        If they do not fit the tasks or each other.
    """
    if len(maps) != len(names):
        raise ConfigError(f"aligned has {len(maps)} maps for {len(names)} tasks: give one a task.")
    found = [np.asarray(W, dtype=np.float64) for W in maps]
    for name, width, W in zip(names, widths, found, strict=True):
        wanted = (width, found[0].shape[-1] if found[0].ndim else 0)
        if W.shape != wanted or not W.size:
            raise ConfigError(f"aligned maps {name} by an array of shape {W.shape}; it must be {wanted}.")
        if not np.isfinite(W).all():
            raise ConfigError(f"aligned maps {name} by an array that holds NaN or infinity.")
    return found


def map_tasks(samples: Sequence[TaskSamples], maps: Sequence[FloatArray] | None) -> MappedTasks:
    """Map each task's centred samples by its W_i.

    Parameters
    ----------
    samples : sequence of TaskSamples
    maps : sequence of ndarray of shape (D_i, d'), or None
        As `check_maps` gave them; None for the identity.

    Returns
    -------
    MappedTasks

    Raises
    ------
    DataError
        If all samples of a task are mapped to one point.
    """
    means, centred = zip(*(centre(task.X) for task in samples), strict=True)
    mapped = centred if maps is None else tuple(own @ W for own, W in zip(centred, maps, strict=True))
    for task, Z in zip(samples, mapped, strict=True):
        if not Z.any():
            raise DataError(f"{task}: the aligned map leads all samples to one point; there is nothing to project on.")
    return MappedTasks(None if maps is None else tuple(maps), means, mapped)


def shared_projection(
    samples: Sequence[TaskSamples], mapped: MappedTasks, weights: FloatArray, size: int | None, shrinkage: float
) -> tuple[int, Iterator[tuple[float, list[FloatArray]]]]:
    """One P for all tasks, by Newton's method.

    Parameters
    ----------
    samples : sequence of TaskSamples
    mapped : MappedTasks
    weights : ndarray of shape (n_tasks,)
    size : int or None
        d; None: one less than the classes of the task that has most.
    shrinkage : float

    Returns
    -------
    rank : int
        Of the mapped tasks.
    steps : iterator of (float, list of ndarray of shape (d', d))
        The ratio, and P once for each task; endless.
    """
    # Rows weighted by sqrt(w_i n / n_i) make the scatter of the stacked samples the weighted sum.
    n = sum(len(task.y) for task in samples)
    rows = [Z * np.sqrt(w * n / len(Z)) for Z, w in zip(mapped.samples, weights, strict=True)]
    firsts = np.cumsum([0] + [len(task.classes) for task in samples])
    codes = np.concatenate([task.codes + first for task, first in zip(samples, firsts, strict=False)])
    stacked = np.concatenate(rows)
    reduced = scatter_range(stacked, codes, int(firsts[-1]))
    d = min(max(len(task.classes) for task in samples) - 1, reduced.rank) if size is None else size
    _check_size(d, reduced.rank)
    warn_of_lost_directions("the mapped tasks", reduced.rank, reduced.varying)
    steps = maximize_trace_ratio([shrunken(reduced.between, reduced.total, shrinkage)], [d], np.ones(1))
    centred = stacked - reduced.mean
    return reduced.rank, ((ratio, [reduced.lift(centred, V)] * len(samples)) for ratio, (V,) in steps)


def pooled_within(
    samples: Sequence[TaskSamples], mapped: MappedTasks, weights: FloatArray, size: int | None, shrinkage: float
) -> tuple[int, Iterator[tuple[float, list[FloatArray]]]]:
    """Each task its own V_i, all the same within-class scatter, by Newton's method.

    Parameters
    ----------
    samples : sequence of TaskSamples
    mapped : MappedTasks
    weights : ndarray of shape (n_tasks,)
    size : int or None
        d; None: one less than the task's classes.
    shrinkage : float

    Returns
    -------
    rank : int
        Of the mapped tasks.
    steps : iterator of (float, list of ndarray of shape (d', d_i))
        The ratio, and V_i; endless.
    """
    factors, residuals = [], []
    for task, Z in zip(samples, mapped.samples, strict=True):
        counts = task.counts
        means = task.one_hot.T @ Z / counts[:, None]
        factors.append(means.T * np.sqrt(counts / len(Z)))
        residuals.append(Z - means[task.codes])
    # From factors of the scatter matrices rather than from these, in which small directions are lost.
    pooled = np.concatenate(residuals) / np.sqrt(sum(len(Z) for Z in residuals))
    stacked = np.concatenate([pooled, *(H.T for H in factors)])
    Q = thin_svd(stacked)[2]
    warn_of_lost_directions("the mapped tasks", Q.shape[1], equilibrated_rank(stacked, 0.0, Q.shape[1]))
    _, singular, turn = scipy.linalg.svd(np.linalg.qr(pooled @ Q, mode="r"), check_finite=False)
    Q, values = Q @ turn.T, np.zeros(Q.shape[1])
    values[: len(singular)] = singular**2
    values = (1 - shrinkage) * values + shrinkage * values.mean()
    problems = [Scatters(Q.T @ H, values, overlap=1.0) for H in factors]
    sizes = [min(len(task.classes) - 1, len(values)) if size is None else size for task in samples]
    _check_size(max(sizes), len(values))
    steps = maximize_trace_ratio(problems, sizes, weights)
    return len(values), ((ratio, [Q @ V for V in bases]) for ratio, bases in steps)


def column_traces(task: TaskSamples, embedded: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The between-class and the total scatter of each column of projected samples.

    Parameters
    ----------
    task : TaskSamples
    embedded : ndarray of shape (n, d)
        Centred.

    Returns
    -------
    between, total : ndarray of shape (d,)
    """
    sums = task.one_hot.T @ embedded
    return (sums**2 / task.counts[:, None]).sum(axis=0) / len(embedded), (embedded**2).mean(axis=0)


def _check_size(size: int, rank: int) -> None:
    if size > rank:
        raise ConfigError(f"n_components={size} exceeds the rank {rank} of the mapped tasks.")
