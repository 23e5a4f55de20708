"""Least squares on one-hot targets or quantities: reduced training sets and solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas, lapack

from raysel.core.arrays import BoolArray, FloatArray, LabelArray, RowBlocks
from raysel.numerics.classification import distinct_classes
from raysel.numerics.linear_algebra import product
from raysel.numerics.reweighting import Penalty, l2p_weights, weighted_ridge


@dataclass(frozen=True)
class QuantityScale:
    """Means and standard deviations of quantities over a training set."""

    #: Mean of each quantity; shape (n_quantities,).
    mean: FloatArray
    #: Standard deviation, with n; 1 for a quantity that does not vary; shape (n_quantities,).
    deviation: FloatArray
    #: Shape of y without that of the samples: () or (n_quantities,).
    shape: tuple[int, ...]


def standardised(y: ArrayLike) -> tuple[QuantityScale, FloatArray]:
    """Subtract the mean of each quantity and divide by its standard deviation.

    `y` is (n_samples,) or (n_samples, n_quantities); returns the scales and `targets` (n_samples,
    n_quantities).
    """
    values = np.asarray(y, dtype=np.float64)
    columns = values.reshape(len(values), -1)
    mean = columns.mean(axis=0)
    targets: FloatArray = columns - mean
    constant = columns.max(axis=0) == columns.min(axis=0)
    targets[:, constant] = 0.0  # exactly, though the mean is rounded
    deviation = np.sqrt((targets**2).mean(axis=0))
    deviation[deviation == 0.0] = 1.0
    targets /= deviation
    return QuantityScale(mean, deviation, values.shape[1:]), targets


@dataclass(frozen=True, kw_only=True)
class LeastSquaresData:
    """A training set, reduced: ``||P X - Y||^2 + residual`` is the loss of coefficients P."""

    #: Centred features divided by ``scale``, n_rows = min(n_samples, n_features); shape
    #: (n_features, n_rows).
    X: FloatArray
    #: Centred targets, transformed alike; shape (n_classes, n_rows).
    Y: FloatArray
    #: ``Y X'``, exactly 0 where a feature tells nothing of a class; shape (n_classes, n_features).
    XY: FloatArray
    scale: float
    residual: float
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    #: Mean of each target, i.e. the share of each class among the samples; shape (n_classes,).
    Y_mean: FloatArray
    #: Whether each feature has one value over the training set; shape (n_features,).
    constant: BoolArray
    #: What the rows of ``Y`` stand for: sorted class labels, shape (n_classes,), or the scales of
    #: quantities.
    classes: LabelArray | QuantityScale

    @property
    def alpha_max(self) -> float:
        """Smallest alpha of the rows' norms at which no feature is selected."""
        return 2.0 * self.scale * float(self._lengths[0].max())

    @cached_property
    def kept(self) -> dict[str, tuple[Any, Any]]:
        """Results that a solver keeps, by name: what each depends on, and the result itself."""
        return {}

    @cached_property
    def _lengths(self) -> tuple[FloatArray, FloatArray]:
        """Length of each feature's ``XY`` and squared length of its ``X``; shapes (n_features,)."""
        return np.sqrt((self.XY**2).sum(axis=0)), np.einsum("fi,fi->f", self.X, self.X)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without what is kept: a copy in another process finds that anew."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def penalty_unit(self, p: float) -> float:
        """Smallest alpha at which no single feature lowers the penalised loss, for X as stored.

        ``||P X - Y||^2 + alpha sum_f ||P[:, f]||^p`` over the coefficients of one feature f, all
        others zero, is least at zero if and only if ``alpha >= M ||XY[:, f]||^(2-p)
        ||X[f]||^(2p-2)`` with ``M = max_t (2t - t^2) / t^p``, attained at ``t = 2 (1-p) / (2-p)``
        of the feature's least-squares
        coefficients. The unit is the largest of these bounds: for p = 1 it is ``alpha_max /
        scale``, for p = 0 the most that one feature can lower the loss.
        """
        correlations, energies = self._lengths
        varying = energies > 0.0
        coefficients = np.divide(correlations, energies, out=np.zeros_like(energies), where=varying)
        t = 2.0 * (1.0 - p) / (2.0 - p)
        largest = (2.0 * t ** (1.0 - p) - t ** (2.0 - p)) * (
            correlations * coefficients ** (1.0 - p)
        ).max()
        return float(largest)

    def coefficient_unit(self) -> float:
        """Typical size of the coefficients of X as stored; 1 where none has a size.

        Where the same feature attains both it is half of the length of that feature's least-squares
        coefficients.
        """
        unit = self.penalty_unit(1.0)
        if unit > 0.0:
            return self.penalty_unit(0.0) / unit
        return 1.0


def least_squares_data(
    X: FloatArray | RowBlocks,
    y: LabelArray,
    encode: Callable[[LabelArray], tuple[Any, FloatArray]] | None = None,
) -> LeastSquaresData:
    """Centre and scale a training set, reduce it to at most n_features rows, and find alpha_max.

    Of samples that are read in blocks the same to rounding is computed in one pass, by
    `_reduce_blocks`.

    `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_quantities); `encode` is
    `one_hot`, the default, or `standardised`.
    """
    classes, targets = (encode or one_hot)(y)
    if isinstance(X, RowBlocks):
        return _reduce_blocks(X, classes, targets)
    n_samples, n_features = X.shape
    centred, X_mean, constant, scale = centre_and_scale(X)
    Y_mean = targets.mean(axis=0)
    targets -= Y_mean
    XY = product(targets.T, centred)
    residual = 0.0
    if n_samples > n_features:
        # The R of [X, Y] = Q R: no Q is formed, and R is no larger than X is.
        R: FloatArray = np.asarray(
            np.linalg.qr(np.hstack([centred, targets]), mode="r"), dtype=np.float64
        )
        centred, targets = R[:n_features, :n_features], R[:n_features, n_features:]
        residual = float((R[n_features:, n_features:] ** 2).sum())
    features, targets = np.ascontiguousarray(centred.T), np.ascontiguousarray(targets.T)
    return LeastSquaresData(
        X=features,
        Y=targets,
        XY=XY,
        scale=scale,
        residual=residual,
        X_mean=X_mean,
        Y_mean=Y_mean,
        constant=constant,
        classes=classes,
    )


def _reduce_blocks(X: RowBlocks, classes: Any, targets: FloatArray) -> LeastSquaresData:
    """Reduce samples by the R of a QR decomposition of [1, X - s, Y], block by block.

    Without its first row and column R is that of the centred samples and targets. The shift s, the
    mean of the first block, keeps the digits of features that vary little beside their mean. The
    condition number is not squared, as by sums of products.

    `targets` is (n_samples, n_classes).
    """
    n_features = X.shape[1]
    Y_mean = targets.mean(axis=0)
    width = 1 + n_features + targets.shape[1]
    R, waiting, n_waiting = np.empty((0, width)), [], 0
    shift: FloatArray | None = None
    for positions, block in X.row_blocks():
        if shift is None:
            shift = block.mean(axis=0)
            smallest, largest = block.min(axis=0), block.max(axis=0)
        smallest, largest = (
            np.minimum(smallest, block.min(axis=0)),
            np.maximum(largest, block.max(axis=0)),
        )
        waiting.append(
            np.hstack([np.ones((len(block), 1)), block - shift, targets[positions] - Y_mean])
        )
        n_waiting += len(block)
        if n_waiting >= 2 * width:  # of fewer rows R itself would be most of the work
            R, waiting, n_waiting = _triangle([R, *waiting]), [], 0
    R = _triangle([R, *waiting])
    assert shift is not None  # noqa: S101 - a training set has samples
    X_mean, constant = shift + R[0, 1 : 1 + n_features] / R[0, 0], smallest == largest
    X_mean[constant] = smallest[constant]
    R = R[1:, 1:]  # of the centred samples and targets
    R[:, np.flatnonzero(constant)] = 0.0
    scale = float(
        np.ldexp(1.0, np.frexp(max((largest - X_mean).max(), (X_mean - smallest).max()))[1])
    )
    centred, targets = R[:n_features, :n_features] / scale, R[:n_features, n_features:]
    residual = float((R[n_features:, n_features:] ** 2).sum())
    XY = product(targets.T, centred)
    features, targets = np.ascontiguousarray(centred.T), np.ascontiguousarray(targets.T)
    return LeastSquaresData(
        X=features,
        Y=targets,
        XY=XY,
        scale=scale,
        residual=residual,
        X_mean=X_mean,
        Y_mean=Y_mean,
        constant=constant,
        classes=classes,
    )


def _triangle(rows: list[FloatArray]) -> FloatArray:
    """R of the QR decomposition of some rows, one below the other."""
    R: FloatArray = np.asarray(np.linalg.qr(np.vstack(rows), mode="r"), dtype=np.float64)
    return R


def one_hot(y: LabelArray) -> tuple[LabelArray, FloatArray]:
    """Classes and one-hot targets of labels.

    `y` is (n_samples,); returns `classes` (n_classes,), `targets` (n_samples, n_classes).
    """
    classes, codes = distinct_classes(y)
    targets: FloatArray = np.eye(len(classes))[codes]
    return classes, targets


def centre_and_scale(X: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray, float]:
    """Subtract the mean of each feature, and divide all by one power of two, which rounds nothing.

    `X` is (n_samples, n_features); returns `centred` (n_samples, n_features), `X_mean`
    (n_features,), `constant` (n_features,).
    """
    X_mean, constant = X.mean(axis=0), X.max(axis=0) == X.min(axis=0)
    centred: FloatArray = X - X_mean
    centred[:, constant] = 0.0  # exactly, though the mean is rounded
    scale = float(np.ldexp(1.0, np.frexp(max(centred.max(), -centred.min()))[1]))
    centred /= scale
    return centred, X_mean, constant, scale


def expand(values: FloatArray, used: BoolArray) -> FloatArray:
    """Values of all features from those of the features used, 0 for the others.

    `values` is (..., n_used), `used` (n_features,); returns (..., n_features).
    """
    if values.shape[-1] == len(used):
        return values
    expanded = np.zeros((*values.shape[:-1], len(used)))
    expanded[..., used] = values
    return expanded


def ls21_steps(
    data: LeastSquaresData, weights: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Minimise ``||P X - Y||^2 + alpha sum_f (||P[:, f]||^2 + zeta)^(p/2)`` (LS21).

    `weights` is (n_features,); yields `P` (n_classes, n_features).
    """
    P = None
    for alpha, p, zeta in penalties:
        if P is not None:
            weights = l2p_weights((P**2).sum(axis=0), p, zeta)
        P = weighted_ridge(data.X, data.Y, weights, alpha)
        yield P


# As many classes share one matrix product as fill this many bytes of cache with their G: it bounds
# the working memory, and 1 to 2 MiB was the fastest.
_BLOCK_BYTES = 1 << 21


def orthonormal(factor: FloatArray) -> FloatArray:
    """Orthonormal bases of the columns of several matrices, completed where columns are dependent.

    `factor` is (c, n, k); returns (c, n, k).
    """
    return np.linalg.qr(factor)[0]


def inverse_cholesky(A: FloatArray) -> FloatArray:
    """Inverses of the Cholesky factors of many small matrices.

    The matrices run along the last axis, so that each step is one array operation over all of them.

    A zero row and column stand for a component that is left out. `A` is (k, k, n_matrices); returns
    `M` (k, k, n_matrices).
    """
    k = len(A)
    inverse = np.zeros_like(A)
    diagonal = np.arange(k)
    inverse[diagonal, diagonal] = 1.0
    # Rounding must not turn a pivot negative when D spans more than a double's precision.
    least = np.maximum(np.finfo(np.float64).eps * A[diagonal, diagonal], np.finfo(np.float64).tiny)
    for j in range(k):
        pivot = np.maximum(A[j, j], least[j])
        factors = A[j + 1 :, j] / pivot
        A[j + 1 :, j + 1 :] -= factors[:, None] * A[j, j + 1 :]
        inverse[j + 1 :, : j + 1] -= factors[:, None] * inverse[j, : j + 1]
        inverse[j, : j + 1] /= np.sqrt(pivot)
    return inverse


# Eigenvalues below this share of the largest are of directions that only rounding tells from zero.
_DEPENDENT = 1e-13


def inverse_roots(A: FloatArray) -> FloatArray:
    """Whiten many small matrices: ``M A M'`` is the identity in their span, 0 elsewhere.

    Unlike `inverse_cholesky` it leaves out every direction that is free, so that no coefficient
    there is large. `A` is (k, k, n_matrices); returns `M` (k, k, n_matrices).
    """
    values, vectors = np.linalg.eigh(np.moveaxis(A, 2, 0))
    kept = values > np.maximum(_DEPENDENT * values[:, -1:], np.finfo(np.float64).tiny)
    roots = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros_like(values), where=kept)
    return np.moveaxis(vectors * roots[:, None], 0, 2).swapaxes(0, 1)


def left_factors(
    X: FloatArray, V: FloatArray, D: FloatArray, Y: FloatArray, XY: FloatArray, alpha: float
) -> FloatArray:
    """Best U of every class for given V; transposed arguments give the best V for given U.

    For each class r the U_r (m x k) that minimises, at given V_r,

        sum_i (<U_r V_r', X_i> - Y_ri)^2 + alpha sum_{a,b} D[a,b] (U_r V_r')[a,b]^2.

    Row a of U_r meets the penalty through ``A_r[a] = V_r' diag(D[a,:]) V_r`` alone. With ``A = L
    L'`` and ``W_r[a] = L^{-1} V_r'`` (k x n), whose rows are orthonormal under D[a,:], the
    coefficients are ``(U_r V_r')[a,:] = q_r[:,a]' W_r[a]`` and q_r solves a plain ridge problem in
    the k m features ``G_r[(j,a), i] = sum_b W_r[a][j,b] X_i[a,b]``: (G G' + alpha I) q = G y or, in
    the dual, q = G z with (G' G + alpha I) z = y. No matrix of size (m n) x (m n) is formed.

    Where D and X are 0 the coefficients are free; those of U_r that nothing else bounds are left at
    0.

    `X` is (m, n, n_samples), `V` (c, n, k), `D` (m, n), `Y` (c, n_samples), `XY` (c, m, n); returns
    `U` (c, m, k).
    """
    m, n, n_samples = X.shape
    c, _, k = V.shape
    Vt = np.ascontiguousarray(V.transpose(0, 2, 1))
    by_component = Vt.transpose(1, 0, 2)
    A = (by_component[:, None] * by_component).reshape(k * k * c, n) @ D.T
    invert = inverse_cholesky if D.all() else inverse_roots
    whitening = invert(A.reshape(k, k, c * m)).reshape(k, k, c, m)
    whitening = np.ascontiguousarray(whitening.transpose(3, 2, 0, 1))
    W = whitening @ Vt
    q = np.einsum("acjb,cab->cja", W, XY).reshape(c, k * m)

    block = max(1, _BLOCK_BYTES // (8 * k * m * n_samples))
    G = np.empty((min(block, c), k, m, n_samples))
    size = min(k * m, n_samples)
    system = np.empty((size, size), order="F")
    for first in range(0, c, block):
        classes = range(first, min(first + block, c))
        rows = len(classes) * k
        # One product a row of the images fills G for all classes of the block, in place.
        out = G.reshape(-1, m, n_samples)[:rows].transpose(1, 0, 2)
        np.matmul(W[:, first : classes.stop].reshape(m, rows, n), X, out=out)
        for r, features in zip(classes, G.reshape(-1, k * m, n_samples), strict=False):
            q[r] = _ridge(features, Y[r], Gy=q[r], alpha=alpha, system=system)
    return np.einsum("cja,acji->cai", q.reshape(c, k, m), whitening)


def _ridge(
    G: FloatArray, y: FloatArray, Gy: FloatArray, alpha: float, system: FloatArray
) -> FloatArray:
    """Solve min_q ||G' q - y||^2 + alpha ||q||^2 in whichever of the two spaces is smaller."""
    dual = G.shape[0] > G.shape[1]
    # G' is Fortran-ordered: BLAS and LAPACK work on the arrays as they lie, lower triangle (the
    # faster) only.
    system = blas.dsyrk(1.0, G.T, trans=0 if dual else 1, lower=1, c=system, overwrite_c=1)
    system.reshape(-1, order="F")[:: len(system) + 1] += alpha  # a view of the diagonal
    _, solution, info = lapack.dposv(system, y if dual else Gy, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(
            "The penalty's weights span more than double precision: raise zeta, p or alpha."
        )
    if dual:
        return G @ solution
    return solution
