"""Solvers of MTDA for tasks whose features are mapped into one space by given W_i.

"projection": one P for all tasks,
    maximise over P'P = I:   tr(P' sum_i w_i W_i' S_b^i W_i P) / tr(P' sum_i w_i W_i' S_t^i W_i P),   U_i = W_i P
"within": a V_i for each task, and the within-class scatter pooled over the mapped tasks,
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
from raysel.linalg.rounding import rounding
from raysel.linalg.scatter import centre, equilibrated_rank, scatter_range, thin_svd
from raysel.linalg.trace_ratio import Scatters, maximize_trace_ratio, shrunken


@dataclass(frozen=True)
class MappedTasks:
    """Tasks in the common space."""

    #: Map W_i of each task; None for the identity; each (D_i, d').
    maps: tuple[FloatArray, ...] | None
    #: Mean of each task in its own features; each (D_i,).
    means: tuple[FloatArray, ...]
    #: Mapped samples of each task, (X_i - mean_i) W_i; each (n_i, d').
    samples: tuple[FloatArray, ...]

    def lift(self, bases: Sequence[FloatArray]) -> list[FloatArray]:
        """Express directions of the common space in each task's own features.

        Each of `bases` is (d', d_i); returns each (D_i, d_i).
        """
        if self.maps is None:
            return list(bases)
        return [W @ V for W, V in zip(self.maps, bases, strict=True)]


def check_maps(maps: Sequence[ArrayLike], names: Sequence[str], widths: Sequence[int]) -> list[FloatArray]:
    """Check that there is one map for each task, and that all map into one space.

    Each of `maps` is (D_i, d'); returns each (D_i, d').
    """
    if len(maps) != len(names):
        raise ConfigError(f"aligned has {len(maps)} maps for {len(names)} tasks: give one map for each task.")
    arrays = [np.asarray(W, dtype=np.float64) for W in maps]
    for name, width, W in zip(names, widths, arrays, strict=True):
        expected = (width, arrays[0].shape[-1] if arrays[0].ndim else 0)
        if W.shape != expected or not W.size:
            raise ConfigError(f"aligned maps {name} by an array of shape {W.shape}; give one of shape {expected}.")
        if not np.isfinite(W).all():
            raise ConfigError(f"aligned maps {name} by an array that holds NaN or infinity; give finite numbers.")
    return arrays


def map_tasks(samples: Sequence[TaskSamples], maps: Sequence[FloatArray] | None) -> MappedTasks:
    """Map each task's centred samples by its W_i. Each of `maps` is (D_i, d')."""
    means, centred = zip(*(centre(task.X) for task in samples), strict=True)
    mapped = centred if maps is None else tuple(own @ W for own, W in zip(centred, maps, strict=True))
    for i, (task, Z) in enumerate(zip(samples, mapped, strict=True)):
        error = 0.0 if maps is None else rounding(task.X, maps[i]).max(axis=0)
        if (np.abs(Z).max(axis=0) <= error).all():
            raise DataError(
                f"{task}: aligned maps all samples to one point; give a map whose range contains varying features."
            )
    return MappedTasks(None if maps is None else tuple(maps), means, mapped)


def shared_projection(
    samples: Sequence[TaskSamples], mapped: MappedTasks, weights: FloatArray, size: int | None, shrinkage: float
) -> tuple[int, Iterator[tuple[float, list[FloatArray]]]]:
    """Maximise the ratio over one P for all tasks, by Newton's method.

    `weights` is (n_tasks,); returns `steps` each (d', d).
    """
    # Weighting the rows by sqrt(w_i n / n_i) makes the scatter of the stacked samples equal to the weighted sum.
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
    """Maximise the ratio over a V_i for each task with the pooled within-class scatter, by Newton's method.

    `weights` is (n_tasks,); returns `steps` each (d', d_i).
    """
    factors, residuals = [], []
    for task, Z in zip(samples, mapped.samples, strict=True):
        counts = task.counts
        means = task.one_hot.T @ Z / counts[:, None]
        factors.append(means.T * np.sqrt(counts / len(Z)))
        residuals.append(Z - means[task.codes])
    # Factors of the scatter matrices are used, because rounding loses small directions in the matrices themselves.
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
    """Compute the between-class and total scatter of each column of projected samples.

    `embedded` is (n, d); returns `between` (d,), `total` (d,).
    """
    sums = task.one_hot.T @ embedded
    return (sums**2 / task.counts[:, None]).sum(axis=0) / len(embedded), (embedded**2).mean(axis=0)


def _check_size(size: int, rank: int) -> None:
    if size > rank:
        raise ConfigError(f"n_components={size} exceeds the rank {rank} of the mapped tasks: give at most {rank}.")
