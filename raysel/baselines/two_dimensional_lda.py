"""Multilinear linear discriminant analysis of samples that are matrices or tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from raysel.base.estimator import COUNT, TENSOR, Capabilities, OneShotEstimator
from raysel.base.fitted_projection import FittedProjection
from raysel.base.task_samples import read_sides, task_samples, whole_numbers
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.linear_algebra import EPS, centre, kronecker, mode_product, projected, thin_svd


@dataclass(frozen=True)
class Deviations:
    """Arrays of a training set as deviations from the means, with reduced sides."""

    #: Mean of the samples; shape (n_features,).
    mean: FloatArray
    #: Deviation of each sample from the mean of its class; shape (n, r_1, .., r_N).
    within: FloatArray
    #: Deviation of each class mean from the mean, times the square root of the class size; shape
    #: (c, r_1, .., r_N).
    between: FloatArray
    #: Orthonormal basis of the range of the vectors along each axis, (m_q, r_q); None if that side
    #: is not reduced.
    bases: tuple[FloatArray | None, ...]


class MultilinearLDA(OneShotEstimator, FittedProjection):
    """Linear discriminant analysis of matrices or tensors, with a separate projection of each axis.

    A matrix X_i (a x b) is projected to L' X_i R. Starting from R = [I; 0], or from I if the first
    l columns of the samples are constant, a pass computes

        L: first k eigenvectors of S_w(R)^-1 S_b(R),     S_w(R) = sum_i D_i R R' D_i',  S_b(R) =
        sum_r n_r E_r R R' E_r' R: first l eigenvectors of S_w(L)^-1 S_b(L),     S_w(L) = sum_i D_i'
        L L' D_i,  S_b(L) = sum_r n_r E_r' L L' E_r

    with the deviations D_i of the samples from their class means and E_r of the means of the c
    classes from the mean [1]_; S_w is shrunk to (1 - s) S_w + s tr(S_w)/a I, with b in place of a
    for R, and with the number of directions in which the n samples vary where that is less
    (`ranks_`). The columns of L and R have unit norm, which the paper leaves open. Samples of more
    axes have one projection an axis, each found likewise after all other axes are projected
    (multilinear discriminant analysis [2]_). Samples that are vectors are matrices of one column,
    for which the method is linear discriminant analysis.

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples, whose cells are the columns of X in C order. None or one side: the
        samples are vectors.
    n_components : sequence of int or int, default=None
        Number of directions of each axis, at most its side, for matrices (k, l); an integer is that
        of all axes, for vectors k with l = 1. None: the side, at most c - 1.
    shrinkage : float in (0, 1], default=0.01
        Weight s of a multiple of the identity in the within-class scatter matrices.
    passes : int, default=1
        Number of updates of all projections. The criterion need not rise with it, so that it is
        fixed and not iterated to convergence.
    n_features_to_select : int, default=None
        Number of features that ``get_support`` selects. None: half of them.

    Attributes
    ----------
    projections_ : list of one ndarray of shape (n_features, product of n_components)
        U = L kron R, for more axes kron of all projections; the largest entry of each column is
        positive.
    ranks_ : ndarray of int, shape (1, n_axes)
        Sides of the samples, reduced to n times the product of the others where there are fewer
        samples than that.
    means_, embeddings_, embedded_labels_, task_scores_, task_names_, classes_
        See `FittedProjection`. For the scores each column is weighted by its ratio of between-class
        to total scatter; features that are constant in the training set have score 0.
    objective_path_ : ndarray of shape (1,)
        tr(U'S_bU) / tr(U'S_tU).

    References
    ----------
    .. [1] Ye, Janardan & Li, "Two-dimensional linear discriminant analysis", NIPS 2004.
    .. [2] Yan, Xu, Yang, Zhang, Tang & Zhang, "Multilinear discriminant analysis for face
       recognition", IEEE Transactions on Image Processing 16(1), 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MultilinearLDA(shape=(8, 8), n_components=(6, 6)).fit(X[:900], y[:900])
    >>> model.transform(X[900:]).shape
    (897, 36)
    >>> model.score(X[900:], y[900:]) > 0.9
    True
    """

    capabilities: ClassVar[Capabilities] = replace(
        FittedProjection.capabilities, layouts=frozenset({TENSOR})
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

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key of fewer components, more shrinkage, fewer passes."""
        size = np.inf
        if self.n_components is not None:
            size = float(np.prod(self._components(self._sides(1))))
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
            If a parameter is invalid, ``shape`` does not match ``n_features``, or ``n_components``
            exceeds a side.
        """
        super().check(n_features)
        shape = self._sides(n_features)
        if math.prod(shape) != n_features:
            raise ConfigError(
                f"shape={shape} does not fit the {n_features} columns of X; the product of its"
                f" sides must be {n_features}."
            )
        if self.n_components is not None:
            sizes = self._components(shape)
            if any(k > side for k, side in zip(sizes, shape, strict=True)):
                raise ConfigError(
                    f"n_components={sizes} does not fit samples of shape {shape}: give at most"
                    f" {shape}."
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
        n, shape = len(y), self._sides(1)
        wanted = self._components(shape)
        if self.shape is None:
            most: tuple[int, ...] = (
                n,
                1,
            )  # n - 1 if there are more features than samples, which is not known here
        else:
            others = [math.prod(shape) // side for side in shape]
            most = tuple(
                (n - 1) * rest if side > n * rest else side
                for side, rest in zip(shape, others, strict=True)
            )
        if any(k > limit for k, limit in zip(wanted, most, strict=True)):
            raise ConfigError(
                f"n_components={wanted} does not fit a training set of {n} samples, which vary in"
                f" no more than {_directions(most)}: give at most {most}."
            )

    def _sides(self, n_features: int) -> tuple[int, ...]:
        """Sides of the samples, at least two: a vector is a matrix of one column."""
        return read_sides(self.shape, n_features)

    def _components(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Number of directions of each axis that ``n_components`` gives."""
        given, n_axes = self.n_components, len(shape)
        if isinstance(given, int | np.integer):
            vectors = self.shape is None or (n_axes == 2 and shape[1] == 1)
            return (int(given), 1) if vectors else (int(given),) * n_axes
        return whole_numbers("n_components", given, n_axes)

    def prepare(self, X: FloatArray, y: LabelArray) -> Deviations:
        """Compute the deviations of samples and class means."""
        task = task_samples("", X, y)
        mean, centred = centre(X)
        if not centred.any():
            raise DataError(
                f"{task}: all features are constant; give at least one feature that varies."
            )
        shape = self._sides(X.shape[1])
        arrays = centred.reshape(-1, *shape)
        # A side longer than the samples can span is reduced, so that no matrix of its order is
        # formed.
        bases = tuple(_range(arrays, axis) for axis in range(1, arrays.ndim))
        for mode, basis in enumerate(bases):
            if basis is not None:
                arrays = mode_product(arrays, basis, mode)
        one_hot, sizes = task.one_hot, task.counts.reshape(-1, *(1 for _ in shape))
        means = np.tensordot(one_hot.T, arrays, axes=1) / sizes
        return Deviations(mean, arrays - means[task.codes], means * np.sqrt(sizes), bases)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: Deviations) -> Iterator[float]:
        within, between = prepared.within, prepared.between
        ranks = within.shape[1:]
        sizes = self._sizes(ranks, len(between), X.shape[1])
        factors = [np.eye(side, size) for side, size in zip(ranks, sizes, strict=True)]
        if not any(projected(part, factors, but=0).any() for part in (within, between)):
            factors = [np.eye(side) for side in ranks]
        for _ in range(self.passes):
            for mode, size in enumerate(sizes):
                parts = (
                    np.moveaxis(projected(part, factors, but=mode), mode + 1, 1)
                    for part in (within, between)
                )
                flat, means = (part.reshape(len(part), ranks[mode], -1) for part in parts)
                factors[mode] = discriminant_directions(flat, means, size, self.shrinkage)
        explained, rest = (
            (projected(part, factors) ** 2).sum(axis=0).ravel() for part in (between, within)
        )
        total = explained + rest
        lifted = [
            A if basis is None else basis @ A
            for basis, A in zip(prepared.bases, factors, strict=True)
        ]
        task, U = task_samples("", X, y), kronecker(lifted)
        ratios = np.divide(explained, total, out=np.zeros_like(total), where=total > 0)
        self.ranks_ = np.array([ranks])
        self._keep(
            [task],
            means=[prepared.mean],
            projections=[U],
            values=[ratios],
            embeddings=[(X - prepared.mean) @ U],
        )
        self.task_scores_[0][(X[0] == X).all(axis=0)] = 0.0
        self.scores_ = self.task_scores_[0].copy()
        yield float(explained.sum() / (total.sum() or 1.0))

    def _sizes(self, ranks: tuple[int, ...], n_classes: int, n_features: int) -> tuple[int, ...]:
        if self.n_components is None:
            return tuple(min(rank, n_classes - 1) for rank in ranks)
        shape = self._sides(n_features)
        sizes = self._components(shape)
        if any(k > rank for k, rank in zip(sizes, ranks, strict=True)):
            raise ConfigError(
                f"n_components={sizes} does not fit the samples of shape {shape}, which vary in"
                f" {_directions(ranks)}: give at most {ranks}."
            )
        return sizes


class TwoDimensionalLDA(MultilinearLDA):
    """Linear discriminant analysis of matrices, with separate projections of rows and columns.

    `MultilinearLDA` under the name that it has for matrices.

    Parameters
    ----------
    shape, n_components, shrinkage, passes, n_features_to_select : default as in `MultilinearLDA`
        See `MultilinearLDA`.

    Attributes
    ----------
    projections_, ranks_, means_, embeddings_, embedded_labels_, task_scores_, task_names_, \
classes_, objective_path_
        See `MultilinearLDA`.

    References
    ----------
    Ye, Janardan & Li, "Two-dimensional linear discriminant analysis", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> TwoDimensionalLDA(shape=(8, 8), n_components=(6, 6)).fit(X, y).transform(X[900:]).shape
    (897, 36)
    """


def _directions(ranks: Sequence[int]) -> str:
    """Name the directions of each axis."""
    if len(ranks) == 2:
        return f"{ranks[0]} directions of the rows and {ranks[1]} of the columns"
    return f"{', '.join(map(str, ranks))} directions of the axes"


def discriminant_directions(
    within: FloatArray, between: FloatArray, size: int, shrinkage: float
) -> FloatArray:
    """Solve S_b v = mu S_w v for the largest mu, of the rows of projected deviations.

    `within` is (n, r, p), `between` (c, r, p); returns (r, size).
    """
    order = within.shape[1]
    S_w, S_b = (
        flat @ flat.T
        for flat in (part.transpose(1, 0, 2).reshape(order, -1) for part in (within, between))
    )
    largest = (order - size, order - 1)
    trace = float(np.trace(S_w))
    if trace > (len(within) * EPS) ** 2 * np.trace(
        S_b
    ):  # else the deviations may be the rounding of class means
        S_w *= 1 - shrinkage
        S_w[np.diag_indices(order)] += shrinkage * trace / order
        vectors = scipy.linalg.eigh(S_b, S_w, subset_by_index=largest, check_finite=False)[1]
    else:
        vectors = scipy.linalg.eigh(S_b, subset_by_index=largest, check_finite=False)[1]
    return vectors[:, ::-1] / np.linalg.norm(vectors, axis=0)[::-1]


def _range(arrays: FloatArray, axis: int) -> FloatArray | None:
    """Orthonormal basis of the vectors along an axis that is longer than their number."""
    side = arrays.shape[axis]
    if side * side <= arrays.size:
        return None
    return thin_svd(np.moveaxis(arrays, axis, -1).reshape(-1, side))[2]
