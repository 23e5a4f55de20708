"""Solver of MTDA for matrix-valued samples: U_i = L_i kron R_i projects a sample X_j (a x b) to L_i' X_j R_i.

For a given R the problem in L has the form of MTDA, with the a x a scatter matrices

    S_b(R) = sum_k n_k/n M_k R R' M_k',     S_t(R) = 1/n sum_j X_j R R' X_j'        (centred X_j, class means M_k)

and vice versa for R. At the current ratio x each task increases tr(U'(S_b - x S_t)U) by alternating updates of L and R;
the ratio that results is the next x, and never decreases. The updates find local optima only, hence several starts.
The extension is mentioned by Zhang & Yeung (AAAI 2011).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.linalg

from raysel.arrays import FloatArray
from raysel.base.projections.components import warn_of_lost_directions
from raysel.base.projections.task_samples import TaskSamples
from raysel.errors import ConfigError, DataError
from raysel.linalg.scatter import centre, equilibrated_rank, thin_svd

Factors: TypeAlias = tuple[FloatArray, FloatArray]

#: An ascent stops if an update of L and R increases the objective by less than this share, or after this many updates.
ASCENT_TOL, ASCENT_SWEEPS = 1e-10, 50


@dataclass(frozen=True)
class MatrixTask:
    """Centred matrices of one task, reduced to the ranges of their rows and columns."""

    #: Mean of the samples; shape (a b,).
    mean: FloatArray
    #: Orthonormal basis of the range of the rows, by descending scatter; shape (a, r).
    rows: FloatArray
    #: Orthonormal basis of the range of the columns, by descending scatter; shape (b, s).
    columns: FloatArray
    #: Reduced samples; shape (n, r, s).
    samples: FloatArray
    #: Reduced class means times the root of the class sizes, sqrt(n_k) M_k; shape (c, r, s).
    classes: FloatArray

    def lift(self, factors: Factors) -> FloatArray:
        """Compute U = L kron R in the original features. Returns (a b, k l)."""
        L, R = factors
        return np.asarray(np.kron(self.rows @ L, self.columns @ R), dtype=np.float64)

    def embed(self, factors: Factors) -> FloatArray:
        """Project the samples, L'X_jR. Returns (n, k l)."""
        L, R = factors
        return (L.T @ self.samples @ R).reshape(len(self.samples), -1)

    def traces(self, factors: Factors) -> tuple[float, float]:
        """Compute tr(U'S_bU) and tr(U'S_tU)."""
        L, R = factors
        between, total = (float(((L.T @ part @ R) ** 2).sum()) for part in (self.classes, self.samples))
        return between / len(self.samples), total / len(self.samples)

    def column_ratios(self, factors: Factors) -> FloatArray:
        """Compute the ratio of between-class to total scatter of each column of U. Returns (k l,)."""
        L, R = factors
        between, total = (((L.T @ part @ R) ** 2).sum(axis=0).ravel() for part in (self.classes, self.samples))
        return between / total


def matrix_task(task: TaskSamples, shape: tuple[int, int]) -> MatrixTask:
    """Centre one task's matrices and reduce them to the ranges of their rows and columns."""
    mean, centred = centre(task.X)
    if not centred.any():
        raise DataError(f"{task}: all features are constant; give at least one feature that varies.")
    X, offset = centred.reshape(-1, *shape), np.where(centred.any(axis=0), mean, 0.0).reshape(shape)
    rows = _side(f"{task}, rows", X.transpose(0, 2, 1).reshape(-1, shape[0]), np.linalg.norm(offset, axis=1))
    columns = _side(f"{task}, columns", X.reshape(-1, shape[1]), np.linalg.norm(offset, axis=0))
    reduced = rows.T @ X @ columns
    sums = task.one_hot.T @ reduced.reshape(len(X), -1) / np.sqrt(task.counts)[:, None]
    return MatrixTask(mean, rows, columns, reduced, sums.reshape(-1, *reduced.shape[1:]))


def alternate_sides(
    tasks: Sequence[MatrixTask],
    names: Sequence[str],
    size: tuple[int, int],
    weights: FloatArray,
    n_init: int,
    rng: np.random.RandomState,
) -> Iterator[tuple[float, list[Factors]]]:
    """Update the factors of each task at the shared ratio from all starts, and use the best start; endless.

    `weights` is (n_tasks,).
    """
    for task, name in zip(tasks, names, strict=True):
        r, s = task.samples.shape[1:]
        if size[0] > r or size[1] > s:
            raise ConfigError(f"bilinear={size} does not fit {name}: give at most ({r}, {s}).")
    starts = [
        [np.eye(s, size[1]), *(np.linalg.qr(rng.standard_normal((s, size[1])))[0] for _ in range(n_init - 1))]
        for s in (task.samples.shape[2] for task in tasks)
    ]
    ratio = 0.0
    while True:
        results = [[climb(task, R, size, ratio) for R in own] for task, own in zip(tasks, starts, strict=True)]
        factors = [max(own, key=lambda result: result[0])[1] for own in results]
        # All starts are continued, including the best one, so that the ratio cannot decrease.
        starts = [[R for _, (_, R) in own] for own in results]
        between, total = weights @ np.array([task.traces(f) for task, f in zip(tasks, factors, strict=True)])
        ratio = float(between / total)
        yield ratio, factors


def climb(task: MatrixTask, R: FloatArray, size: tuple[int, int], ratio: float) -> tuple[float, Factors]:
    """Maximise tr(U'(S_b - x S_t)U) locally by alternating updates of L and R. `R` is (s, l)."""
    value = -np.inf
    transposed = (task.classes.transpose(0, 2, 1), task.samples.transpose(0, 2, 1))
    for _ in range(ASCENT_SWEEPS):
        _, L = _leading(task.classes, task.samples, R, size[0], ratio)
        reached, R = _leading(*transposed, L, size[1], ratio)
        if reached - value <= ASCENT_TOL * abs(reached):
            break
        value = reached
    return reached, (L, R)


def _leading(
    classes: FloatArray, samples: FloatArray, other: FloatArray, size: int, ratio: float
) -> tuple[float, FloatArray]:
    """Sum of the ``size`` largest eigenvalues of S_b(R) - x S_t(R), and their eigenvectors."""
    between, total = (np.tensordot(P, P, axes=([0, 2], [0, 2])) for P in (classes @ other, samples @ other))
    values, vectors = scipy.linalg.eigh((between - ratio * total) / len(samples), check_finite=False)
    return float(values[-size:].sum()), np.ascontiguousarray(vectors[:, : -size - 1 : -1])


def _side(named: str, stacked: FloatArray, offset: FloatArray) -> FloatArray:
    basis = thin_svd(stacked, offset)[2]
    rank = basis.shape[1]
    warn_of_lost_directions(named, rank, equilibrated_rank(stacked, offset, rank))
    return basis
