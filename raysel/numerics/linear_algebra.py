"""Products and singular vectors of which rounding errors are told apart, and centred features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.linalg

from raysel.core.arrays import FloatArray

EPS = float(np.finfo(np.float64).eps)

#: Roundings that a value of the data may have come through.
FEW = 8


def rounding(A: FloatArray, B: FloatArray) -> FloatArray:
    """Bound of the rounding errors of ``A @ B``.

    A sum of n products has an error of at most ``n eps / 2 sum |a||b|``, in whatever order it is
    made; twice that bounds it for entries that are rounded themselves.
    """
    return A.shape[1] * EPS * (np.abs(A) @ np.abs(B))


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """``A @ B``, with 0 where it may be rounding alone."""
    C = A @ B
    C[np.abs(C) <= rounding(A, B)] = 0.0
    return C


def centre(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract the mean of each feature; constant features become exactly zero.

    `X` is (n, D); returns `mean` (D,), `centred` (n, D).
    """
    mean = X.mean(axis=0)
    centred = X - mean
    constant = np.flatnonzero(X[0] == X[-1])
    constant = constant[(X[:, constant] == X[0, constant]).all(axis=0)]
    centred[:, constant] = 0.0
    mean[constant] = X[0, constant]
    return mean, centred


def gram(X: FloatArray, *, of_rows: bool) -> FloatArray:
    """Inner products of the rows, X X', or of the columns, X'X."""
    if of_rows:
        return X @ X.T
    return X.T @ X


def thin_svd(
    centred: FloatArray, offset: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Singular vectors and values of a matrix above rounding level.

    `centred` is (n, D), `offset` (D,); returns `left` (n, r), `singular` (r,), `right` (D, r).
    """
    wide = centred.shape[0] < centred.shape[1]  # LAPACK is the faster on tall matrices
    left, singular, right = scipy.linalg.svd(
        centred.T if wide else centred, full_matrices=False, check_finite=False
    )
    if wide:
        left, right = right.T, left.T
    rounding = np.linalg.norm(right * offset, axis=1)
    kept = singular > rank_cut(singular[:1], centred.shape, rounding)
    return left[:, kept], singular[kept], np.ascontiguousarray(right[kept].T)


def rank_cut(
    largest: FloatArray, shape: tuple[int, ...], offset: FloatArray | float = 0.0
) -> FloatArray:
    """Largest singular value that may be rounding alone.

    The larger of two errors: that of the decomposition, max(n, D) eps times the largest singular
    value as in `numpy.linalg.matrix_rank`, and that of the centred values, a few eps of the offset
    in each of n samples.

    `largest` is (1,).
    """
    return np.maximum(max(shape) * EPS * largest, FEW * shape[0] ** 0.5 * EPS * offset)


def equilibrated_rank(centred: FloatArray, offset: FloatArray | float, rank: int) -> int:
    """Rank with every feature scaled to unit norm, so that small ones count alike.

    `centred` is (n, D), `offset` (D,).
    """
    largest = np.abs(centred).max(axis=0)
    # Squares may underflow.
    norm = largest * np.linalg.norm(centred / np.where(largest > 0, largest, 1.0), axis=0)
    scale = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    if np.count_nonzero(scale) <= rank:
        return rank
    scaled, moved = centred * scale, offset * scale
    # Without singular vectors at half the cost; only they tell which directions an offset's
    # rounding reaches.
    singular = scipy.linalg.svdvals(
        scaled.T if len(scaled) < scaled.shape[1] else scaled, check_finite=False
    )
    most, least = (
        int(np.count_nonzero(singular > rank_cut(singular[:1], scaled.shape, reach)))
        for reach in (0.0, float(np.linalg.norm(moved)))
    )
    if most not in {least, rank}:
        most = len(thin_svd(scaled, moved)[1])
    return max(rank, most)


def mode_product(arrays: FloatArray, A: FloatArray, mode: int) -> FloatArray:
    """Project one axis of several arrays on the columns of A (m_q, k)."""
    shape = arrays.shape
    if mode == len(shape) - 2:
        return arrays @ A
    product = A.T @ arrays.reshape(-1, shape[mode + 1], math.prod(shape[mode + 2 :]))
    return product.reshape(*shape[: mode + 1], A.shape[1], *shape[mode + 2 :])


def kronecker(factors: Iterable[FloatArray]) -> FloatArray:
    """Kronecker product of matrices, from left to right."""
    product, *others = factors
    for A in others:
        product = np.asarray(np.kron(product, A), dtype=np.float64)
    return product


def projected(
    arrays: FloatArray, factors: Sequence[FloatArray], but: int | None = None
) -> FloatArray:
    """Project all axes of several arrays by a matrix each, all but one if it is named."""
    for mode, A in enumerate(factors):
        if mode != but:
            arrays = mode_product(arrays, A, mode)
    return arrays
