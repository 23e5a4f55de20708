"""Two-dimensional linear discriminant analysis of matrix-valued samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg

from raysel.base.estimator import COUNT, TENSOR, Capabilities, OneShotEstimator
from raysel.base.fitted_projection import FittedProjection
from raysel.base.task_samples import pair_of_sides, task_samples
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Layout
from raysel.numerics.linear_algebra import EPS, centre, thin_svd


@dataclass(frozen=True)
class Deviations:
    """Matrices of a training set as deviations from the means, with reduced sides where samples are few."""

    #: Mean of the samples; shape (n_features,).
    mean: FloatArray
    #: Deviation of each sample from the mean of its class; shape (n, r, s).
    within: FloatArray
    #: Deviation of each class mean from the mean, times the square root of the class size; shape (c, r, s).
    between: FloatArray
    #: Orthonormal basis of the range of the rows and of the columns; None if that side is not reduced; each (a, r).
    bases: tuple[FloatArray | None, FloatArray | None]


class TwoDimensionalLDA(OneShotEstimator, FittedProjection):
    """Linear discriminant analysis of matrices, with separate projections of rows and columns.

    A sample X_i (a x b) is projected to L' X_i R. Starting from R = [I; 0], or from I if the first l columns of the
    samples are constant, a pass computes

        L: first k eigenvectors of S_w(R)^-1 S_b(R),     S_w(R) = sum_i D_i R R' D_i',  S_b(R) = sum_r n_r E_r R R' E_r'
        R: first l eigenvectors of S_w(L)^-1 S_b(L),     S_w(L) = sum_i D_i' L L' D_i,  S_b(L) = sum_r n_r E_r' L L' E_r

    with the deviations D_i of the samples from their class means and E_r of the means of the c classes from the mean;
    S_w is shrunk to (1 - s) S_w + s tr(S_w)/a I, with b in place of a for R, and with the number of directions in which
    the n samples vary where that is less (`ranks_`). The columns of L and R have unit norm,
    which the paper leaves open. Samples that are vectors are matrices of one column, for which the method is linear
    discriminant analysis.

    Parameters
    ----------
    shape : tuple of (int, int), default=None
        Shape (a, b) of the samples, whose cells are the columns of X in C order. None: the samples are vectors.
    n_components : (int, int) or int, default=None
        Number of columns k of L, at most a, and l of R, at most b; an integer is both, for vectors k with l = 1. None:
        the side, at most c - 1.
    shrinkage : float in (0, 1], default=0.01
        Weight s of a multiple of the identity in both within-class scatter matrices.
    passes : int, default=1
        Number of updates of L and R. The criterion need not rise with it, so that it is fixed and not iterated to
        convergence.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_ : list of one ndarray of shape (a b, k l)
        U = L kron R; the largest entry of each column is positive.
    ranks_ : ndarray of int, shape (1, 2)
        Sides of the matrices, reduced to n b or n a where there are fewer samples than that.
    means_, embeddings_, embedded_labels_, task_scores_, task_names_, classes_
        See `FittedProjection`. For the scores each column is weighted by its ratio of between-class to total scatter;
        features that are constant in the training set have score 0.
    objective_path_ : ndarray of shape (1,)
        tr(U'S_bU) / tr(U'S_tU).

    References
    ----------
    Ye, Janardan & Li, "Two-dimensional linear discriminant analysis", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TwoDimensionalLDA(shape=(8, 8), n_components=(6, 6)).fit(X[:900], y[:900])
    >>> model.transform(X[900:]).shape
    (897, 36)
    >>> model.score(X[900:], y[900:]) > 0.9
    True
    """

    capabilities: ClassVar[Capabilities] = replace(
        FittedProjection.capabilities, layouts=frozenset({TENSOR}), max_axes=2
    )
    layout_parameters: ClassVar[frozenset[str]] = frozenset({"shape"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shape": ["array-like", None],
        "n_components": [COUNT, "array-like", None],
        "shrinkage": [Interval(Real, 0, 1, closed="right")],
        "passes": [COUNT],
    }
    tasks = None  # always one task

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        n_components: Sequence[int] | int | None = None,
        shrinkage: float = 0.01,
        passes: int = 1,
        n_features_to_select: int | None = None,
    ) -> None:
        self.shape = shape
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.passes = passes
        self.n_features_to_select = n_features_to_select

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator for the shape of the samples."""
        if len(layout.grid) not in (1, 2):
            raise ConfigError(f"TwoDimensionalLDA needs matrices or vectors, not {layout}; give a shape of two sides.")
        return super().from_layout(layout, **params)

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which fewer components come first, then more shrinkage, then fewer passes."""
        size = np.inf
        if self.n_components is not None:
            size = float(np.prod(self._components(vectors=self.shape is None)))
        return (size, -self.shrinkage, float(self.passes))

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid, ``shape`` does not match ``n_features``, or ``n_components`` exceeds a side.
        """
        super().check(n_features)
        a, b = self._sides(n_features)
        if a * b != n_features:
            raise ConfigError(
                f"shape=({a}, {b}) does not fit the {n_features} columns of X; the product of its sides must be"
                f" {n_features}."
            )
        if self.n_components is not None:
            k, l = self._components(vectors=b == 1)  # noqa: E741 - as in the paper
            if k > a or l > b:
                raise ConfigError(
                    f"n_components=({k}, {l}) does not fit samples of shape ({a}, {b}): give at most ({a}, {b})."
                )

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that a training set of this size can span ``n_components`` directions.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Not used.

        Raises
        ------
        ConfigError
            If ``n_components`` is too large; `check` finds what exceeds a side.
        """
        if self.n_components is None:
            return
        n, wanted = len(y), self._components(vectors=self.shape is None or self.shape[1] == 1)
        if self.shape is None:
            most = (n, 1)  # n - 1 if there are more features than samples, which is not known here
        else:
            a, b = self._sides(0)
            most = ((n - 1) * b if a > n * b else a), ((n - 1) * a if b > n * a else b)
        if wanted[0] > most[0] or wanted[1] > most[1]:
            raise ConfigError(
                f"n_components=({wanted[0]}, {wanted[1]}) does not fit a training set of {n} samples, which vary in no"
                f" more than {most[0]} directions of the rows and {most[1]} of the columns: give at most"
                f" ({most[0]}, {most[1]})."
            )

    def _sides(self, n_features: int) -> tuple[int, int]:
        return (n_features, 1) if self.shape is None else pair_of_sides("shape", self.shape)

    def _components(self, vectors: bool) -> tuple[int, int]:
        """The pair (k, l) that ``n_components`` gives."""
        given = self.n_components
        if isinstance(given, int | np.integer):
            return int(given), 1 if vectors else int(given)
        return pair_of_sides("n_components", given)

    def prepare(self, X: FloatArray, y: LabelArray) -> Deviations:
        """Compute the deviations of samples and class means."""
        task = task_samples("", X, y)
        mean, centred = centre(X)
        if not centred.any():
            raise DataError(f"{task}: all features are constant; give at least one feature that varies.")
        a, b = self._sides(X.shape[1])
        matrices = centred.reshape(-1, a, b)
        # A side longer than the samples can span is reduced, so that no matrix of its order is formed.
        rows, columns = _range(matrices, 1), _range(matrices, 2)
        if rows is not None:
            matrices = np.matmul(rows.T, matrices)
        if columns is not None:
            matrices = np.matmul(matrices, columns)
        one_hot, sizes = task.one_hot, task.counts[:, None, None]
        means = np.tensordot(one_hot.T, matrices, axes=1) / sizes
        return Deviations(mean, matrices - means[task.codes], means * np.sqrt(sizes), (rows, columns))

    def _updates(self, X: FloatArray, y: LabelArray, prepared: Deviations) -> Iterator[float]:
        within, between = prepared.within, prepared.between
        r, s = within.shape[1:]
        k, l = self._sizes(r, s, len(between), X.shape[1])  # noqa: E741
        R = np.eye(s, l)
        if not ((within @ R).any() or (between @ R).any()):
            R = np.eye(s)
        for _ in range(self.passes):
            L = discriminant_directions(within @ R, between @ R, k, self.shrinkage)
            R = discriminant_directions((L.T @ within).mT, (L.T @ between).mT, l, self.shrinkage)
        explained, rest = (((L.T @ part @ R) ** 2).sum(axis=0).ravel() for part in (between, within))
        total = explained + rest
        rows, columns = (
            factor if basis is None else basis @ factor for basis, factor in zip(prepared.bases, (L, R), strict=True)
        )
        task, U = task_samples("", X, y), np.kron(rows, columns)
        ratios = np.divide(explained, total, out=np.zeros_like(total), where=total > 0)
        self.ranks_ = np.array([[r, s]])
        self._keep([task], [prepared.mean], [U], [ratios], [(X - prepared.mean) @ U])
        self.task_scores_[0][(X[0] == X).all(axis=0)] = 0.0
        self.scores_ = self.task_scores_[0].copy()
        yield float(explained.sum() / (total.sum() or 1.0))

    def _sizes(self, r: int, s: int, n_classes: int, n_features: int) -> tuple[int, int]:
        if self.n_components is None:
            return min(r, n_classes - 1), min(s, n_classes - 1)
        a, b = self._sides(n_features)
        k, l = self._components(vectors=b == 1)  # noqa: E741
        if k > r or l > s:
            raise ConfigError(
                f"n_components=({k}, {l}) does not fit the samples of shape ({a}, {b}), which vary in {r} directions of"
                f" the rows and {s} of the columns: give at most ({r}, {s})."
            )
        return k, l


def discriminant_directions(within: FloatArray, between: FloatArray, size: int, shrinkage: float) -> FloatArray:
    """Solve S_b v = mu S_w v for the largest mu, with S_w and S_b made of the rows of projected deviations.

    `within` is (n, r, p), `between` (c, r, p); returns (r, size).
    """
    order = within.shape[1]
    S_w, S_b = (flat @ flat.T for flat in (part.transpose(1, 0, 2).reshape(order, -1) for part in (within, between)))
    largest = (order - size, order - 1)
    trace = float(np.trace(S_w))
    if trace > (len(within) * EPS) ** 2 * np.trace(S_b):  # else the deviations may be the rounding of class means
        S_w *= 1 - shrinkage
        S_w[np.diag_indices(order)] += shrinkage * trace / order
        vectors = scipy.linalg.eigh(S_b, S_w, subset_by_index=largest, check_finite=False)[1]
    else:
        vectors = scipy.linalg.eigh(S_b, subset_by_index=largest, check_finite=False)[1]
    return vectors[:, ::-1] / np.linalg.norm(vectors, axis=0)[::-1]


def _range(matrices: FloatArray, axis: int) -> FloatArray | None:
    """Orthonormal basis of the vectors along an axis; None unless the axis is longer than their number."""
    side = matrices.shape[axis]
    if side * side <= matrices.size:
        return None
    return thin_svd(np.moveaxis(matrices, axis, 2).reshape(-1, side))[2]
