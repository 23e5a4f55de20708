"""Table 1 of Zhang & Yeung (AAAI 2011) as printed: in the whole space, also where the training set
has no scatter.

The product restricts every task to the range of its total scatter, which has fewer directions than
the d' = 300 of the paper where there are few images. The top d' eigenvectors of S_b - x S_t then
hold directions in which the training set does not vary; which ones is arbitrary, and drawn at
random here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.metrics import pairwise_distances_argmin

#: The algorithm ends where the ratio changes by less.
CHANGE = 1e-6
#: Scatter below this share of all counts as none.
TINY = 1e-14


@dataclass(frozen=True)
class Task:
    """Scatter of a task in an orthonormal basis: the range of S_t, then random directions of its
    null space.
    """

    mean: np.ndarray
    #: Shape (D, q).
    basis: np.ndarray
    #: S_b = H H' and S_t = diag(total); shapes (q, c) and (q,).
    between: np.ndarray
    total: np.ndarray

    def difference(self, ratio: float) -> np.ndarray:
        """S_b - ratio S_t in the basis, shape (q, q)."""
        return self.between @ self.between.T - ratio * np.diag(self.total)


def task_of(X: np.ndarray, y: np.ndarray, n_null: int, rng: np.random.Generator) -> Task:
    """Reduce a training set to the range of its total scatter and ``n_null`` directions outside
    it.
    """
    mean = X.mean(axis=0)
    _, singular, axes = np.linalg.svd(X - mean, full_matrices=False)
    kept = singular > max(X.shape) * np.finfo(float).eps * singular[0]
    range_ = axes[kept].T
    free = rng.standard_normal((X.shape[1], min(n_null, X.shape[1] - range_.shape[1])))
    null = np.linalg.qr(free - range_ @ (range_.T @ free))[0]
    means = np.array(
        [np.sqrt(np.mean(y == c)) * (X[y == c].mean(axis=0) - mean) for c in np.unique(y)]
    )
    between = np.concatenate([range_.T @ means.T, np.zeros((null.shape[1], len(means)))])
    total = np.concatenate([singular[kept] ** 2 / len(X), np.zeros(null.shape[1])])
    return Task(mean, np.concatenate([range_, null], axis=1), between, total)


def _orthonormal(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


def _top(matrix: np.ndarray, n: int) -> np.ndarray:
    """Eigenvectors of the n largest eigenvalues, the largest first."""
    size = len(matrix)
    return scipy.linalg.eigh(matrix, subset_by_index=(size - n, size - 1), check_finite=False)[1][
        :, ::-1
    ]


def _ratio(tasks: Sequence[Task], maps: Sequence[np.ndarray], common: np.ndarray) -> float:
    bases = [W @ common for W in maps]
    between = sum(
        float(((task.between.T @ V) ** 2).sum()) for task, V in zip(tasks, bases, strict=True)
    )
    total = sum(
        float(task.total @ (V**2).sum(axis=1)) for task, V in zip(tasks, bases, strict=True)
    )
    # 0/0 where every direction lies outside the range of all tasks.
    return (
        between / total if total > TINY * sum(task.total.sum() for task in tasks) else float("nan")
    )


def iterate(
    tasks: Sequence[Task], width: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[float, list[np.ndarray]]]:
    """Yield the ratio and the projections U_i = W_i P, each (D_i, d), after each iteration.

    It ends where the ratio changes by less than 1e-6, or becomes 0/0; the iteration before is then
    the last.
    """
    maps = [_orthonormal(len(task.total), width, rng) for task in tasks]
    common = _orthonormal(width, size, rng)
    last = 0.0
    while True:
        ratio = _ratio(tasks, maps, common)
        rotation = scipy.linalg.qr(common)[0][:, size:]
        turn = np.concatenate([common, rotation], axis=1).T
        maps = [_top(task.difference(ratio), width) @ turn for task in tasks]
        # Steps 2.3 and 2.4: W becomes the leading eigenvectors of W W' S_t W W'.
        maps = [
            W @ _top((W.T * task.total) @ W, width) for task, W in zip(tasks, maps, strict=True)
        ]
        ratio = _ratio(tasks, maps, common)
        if np.isnan(ratio):
            return
        inner = sum(W.T @ task.difference(ratio) @ W for task, W in zip(tasks, maps, strict=True))
        common = _top(np.asarray(inner), size)
        ratio = _ratio(tasks, maps, common)
        if np.isnan(ratio):
            return
        yield ratio, [task.basis @ W @ common for task, W in zip(tasks, maps, strict=True)]
        if abs(ratio - last) < CHANGE:
            return
        last = ratio


def error(
    U: np.ndarray, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]
) -> float:
    """Error of the nearest neighbour in a projection."""
    nearest = pairwise_distances_argmin(test[0] @ U, train[0] @ U)
    return float(np.mean(train[1][nearest] != test[1]))
