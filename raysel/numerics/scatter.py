"""Scatter matrices of a labelled sample set in the range of the total scatter, never formed in the original features.

With X centred (n x D), S_t = X'X/n and S_b = sum_k n_k/n m_k m_k' (m_k: the mean of class k). An orthonormal basis Q
of range(S_t) turns them into S_t = diag(total) and S_b = H H' with one column a class. Directions outside that range
are constant in the data: dropping them loses nothing, and no ratio becomes 0/0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics.rounding import EPS

#: Roundings that a value of the data may have come through.
FEW = 8

#: Lower bound of the within-class share of a direction's total scatter.
SMALLEST_WITHIN = 1e-8

#: An eigenvalue of a Gram matrix below this share of the largest has lost half of its digits to rounding.
RESOLVED = EPS**0.5


@dataclass(frozen=True)
class ScatterRange:
    """One labelled sample set in the coordinates of the range of its total scatter."""

    #: Mean of each feature; shape (D,).
    mean: FloatArray
    #: Q itself or, if dual, A with Q = X' A for the centred X: an n x r array instead of D x r; shape (D, r) or (n, r).
    basis: FloatArray
    dual: bool
    #: Eigenvalues of S_t, descending, all positive; shape (r,).
    total: FloatArray
    #: H with Q' S_b Q = H H'; shape (r, c).
    between: FloatArray
    #: Number of samples of each class; shape (c,).
    class_counts: IntArray
    varying: int

    @property
    def rank(self) -> int:
        """Dimension r of the range of the total scatter."""
        return len(self.total)

    @property
    def within_trace(self) -> float:
        """Trace of the within-class scatter, tr(S_t) - tr(S_b), at least what rounding may leave of 0."""
        whole = self.total.sum()
        return float(max(EPS * whole, whole - (self.between**2).sum()))

    def lift(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """Express directions of the range in the original features: Q V.

        `centred` is (n, D), `V` (r, d); returns (D, d).
        """
        return centred.T @ (self.basis @ V) if self.dual else self.basis @ V

    def embed(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """Project the same samples: X Q V, shape (n, d); the dual form does not read the features."""
        if self.dual:
            return self.basis @ ((len(self.basis) * self.total)[:, None] * V)
        return centred @ (self.basis @ V)


def scatter_range(X: FloatArray, codes: IntArray, n_classes: int) -> ScatterRange:
    """Reduce a labelled sample set to the range of its total scatter. `X` is (n, D), `codes` (n,)."""
    n = len(X)
    mean, centred = centre(X)
    counts = np.bincount(codes, minlength=n_classes)
    # Column k of X' membership is sqrt(n_k / n) m_k.
    membership = np.zeros((n, n_classes))
    membership[np.arange(n), codes] = 1.0 / np.sqrt(np.maximum(counts, 1) * n)[codes]
    dual, varies = n < X.shape[1], centred.any(axis=0)
    offset = np.where(varies, mean, 0.0)
    most = min(n - 1, int(np.count_nonzero(varies)))
    values, vectors = scipy.linalg.eigh(
        centred @ centred.T if dual else centred.T @ centred, driver="evd", check_finite=False, overwrite_a=True
    )
    values, vectors = (
        values[len(values) - most :][::-1],
        np.ascontiguousarray(vectors[:, len(values) - most :][:, ::-1]),
    )
    # Here the means may still be n eps off.
    floor = rank_cut(np.sqrt(np.abs(values[:1])), centred.shape, n * float(np.linalg.norm(offset)))
    if (values > np.maximum(RESOLVED * values[:1], floor**2)).all():
        basis = vectors / np.sqrt(values) if dual else vectors
        between = (vectors.T @ membership) * np.sqrt(values)[:, None] if dual else vectors.T @ (centred.T @ membership)
        varying = most
    else:
        dual = False
        centred -= centred.mean(axis=0)  # the rounding of a mean far from 0 may exceed that of its differences
        left, singular, basis = thin_svd(centred, offset)
        values, between = singular**2, singular[:, None] * (left.T @ membership)
        varying = most if len(values) >= most else equilibrated_rank(centred, offset, len(values))
    return ScatterRange(mean, basis, dual, values / n, np.ascontiguousarray(between), counts.astype(np.int64), varying)


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


def thin_svd(centred: FloatArray, offset: FloatArray | float = 0.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Singular vectors and values of a matrix above rounding level.

    `centred` is (n, D), `offset` (D,); returns `left` (n, r), `singular` (r,), `right` (D, r).
    """
    wide = centred.shape[0] < centred.shape[1]  # LAPACK is the faster on tall matrices
    left, singular, right = scipy.linalg.svd(centred.T if wide else centred, full_matrices=False, check_finite=False)
    if wide:
        left, right = right.T, left.T
    rounding = np.linalg.norm(right * offset, axis=1)
    kept = singular > rank_cut(singular[:1], centred.shape, rounding)
    return left[:, kept], singular[kept], np.ascontiguousarray(right[kept].T)


def rank_cut(largest: FloatArray, shape: tuple[int, ...], offset: FloatArray | float = 0.0) -> FloatArray:
    """Largest singular value that may be rounding alone.

    The larger of two errors: that of the decomposition, max(n, D) eps times the largest singular value as in
    `numpy.linalg.matrix_rank`, and that of the centred values, a few eps of the offset in each of n samples.

    `largest` is (1,).
    """
    return np.maximum(max(shape) * EPS * largest, FEW * shape[0] ** 0.5 * EPS * offset)


def equilibrated_rank(centred: FloatArray, offset: FloatArray | float, rank: int) -> int:
    """Rank of the matrix with every feature scaled to unit norm, so that small features count like large ones.

    `centred` is (n, D), `offset` (D,).
    """
    largest = np.abs(centred).max(axis=0)
    norm = largest * np.linalg.norm(centred / np.where(largest > 0, largest, 1.0), axis=0)  # squares may underflow
    scale = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    if np.count_nonzero(scale) <= rank:
        return rank
    scaled, moved = centred * scale, offset * scale
    # Without singular vectors at half the cost; only they tell which directions an offset's rounding reaches.
    singular = scipy.linalg.svdvals(scaled.T if len(scaled) < scaled.shape[1] else scaled, check_finite=False)
    most, least = (
        int(np.count_nonzero(singular > rank_cut(singular[:1], scaled.shape, reach)))
        for reach in (0.0, float(np.linalg.norm(moved)))
    )
    return max(rank, most if most in {least, rank} else len(thin_svd(scaled, moved)[1]))


def fisher_directions(reduced: ScatterRange, size: int, shrinkage: float) -> tuple[FloatArray, FloatArray]:
    """Solve S_b v = ratio S_t v by the eigenvectors of H' D^-1 H, where S_t = D + shrinkage H H' and D is diagonal.

    Returns `V` (r, size), `ratios` (size,).
    """
    diagonal = (1 - shrinkage) * reduced.total + shrinkage * reduced.within_trace / reduced.rank
    weighted = reduced.between / diagonal[:, None]
    values, vectors = scipy.linalg.eigh(reduced.between.T @ weighted, check_finite=False)
    values = np.maximum(values[: -size - 1 : -1], np.finfo(np.float64).tiny)
    within = values * np.maximum(1 - (1 - shrinkage) * values, SMALLEST_WITHIN)
    return weighted @ (vectors[:, : -size - 1 : -1] / np.sqrt(within)), values / (1 + shrinkage * values)
