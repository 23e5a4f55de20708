"""Scatter matrices in the range of the total one, never formed in the original features.

With X centred (n x D), S_t = X'X/n and S_b = sum_k n_k/n m_k m_k' (m_k: the mean of class k). One symmetric
eigendecomposition of the smaller Gram matrix, X X' (n x n) or X'X (D x D), gives an orthonormal basis Q of
range(S_t), in which S_t = diag(total) and S_b = H H' with one column a class. Directions outside that range are
constant in the data: dropping them loses nothing and spares every ratio its 0/0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from raysel.arrays import FloatArray, IntArray

#: Eigenvalues of the Gram matrix below this share of the largest count as zero.
RANK_CUT = 1e-10


@dataclass(frozen=True)
class ScatterRange:
    """One labelled sample set in the coordinates of the range of its total scatter.

    Attributes
    ----------
    mean : ndarray of shape (D,)
    basis : ndarray of shape (D, r), or (n, r) if dual
        Q itself, or A with Q = X' A for the centred X: an n x r array instead of D x r.
    dual : bool
    total : ndarray of shape (r,)
        Eigenvalues of S_t, descending, all positive.
    between : ndarray of shape (r, c)
        H with Q' S_b Q = H H'.
    class_counts : ndarray of int64, shape (c,)
    """

    mean: FloatArray
    basis: FloatArray
    dual: bool
    total: FloatArray
    between: FloatArray
    class_counts: IntArray

    @property
    def rank(self) -> int:
        """Dimension r of the range."""
        return len(self.total)

    @property
    def within_trace(self) -> float:
        """tr(S_w)."""
        return max(0.0, float(self.total.sum() - (self.between**2).sum()))

    def lift(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """Q V: directions of the range, in the original features.

        Parameters
        ----------
        centred : ndarray of shape (n, D)
            The samples the range was made of, less ``mean``.
        V : ndarray of shape (r, d)

        Returns
        -------
        ndarray of shape (D, d)
        """
        return centred.T @ (self.basis @ V) if self.dual else self.basis @ V

    def embed(self, centred: FloatArray, V: FloatArray) -> FloatArray:
        """X Q V: the same samples projected, shape (n, d); in the dual form without touching their features."""
        if self.dual:
            return self.basis @ ((len(self.basis) * self.total)[:, None] * V)
        return centred @ (self.basis @ V)


def scatter_range(X: FloatArray, codes: IntArray, n_classes: int) -> ScatterRange:
    """Reduce a labelled sample set to the range of its total scatter.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    codes : ndarray of int64, shape (n,)
        Class of each sample, 0 .. n_classes - 1.
    n_classes : int

    Returns
    -------
    ScatterRange
        Of rank 0 if no feature varies. Time and memory grow linearly in the larger of n and D.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0, 7.0], [2.0, 0.0, 7.0], [4.0, 3.0, 7.0], [6.0, 3.0, 7.0]])
    >>> reduced = scatter_range(X, np.array([0, 0, 1, 1]), 2)
    >>> reduced.rank, float(reduced.total.sum())
    (2, 7.25)
    """
    n, n_features = X.shape
    mean = X.mean(axis=0)
    centred = X - mean
    dual = n < n_features
    gram = centred @ centred.T if dual else centred.T @ centred
    values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False, overwrite_a=True)
    kept = values > max(RANK_CUT * values[-1], _noise(mean, n))
    values, vectors = values[kept][::-1], np.ascontiguousarray(vectors[:, kept][:, ::-1])
    basis = vectors / np.sqrt(values) if dual else vectors
    counts = np.bincount(codes, minlength=n_classes)
    membership = np.zeros((n, n_classes))
    membership[np.arange(n), codes] = 1.0 / np.sqrt(np.maximum(counts, 1) * n)[codes]
    # H = Q' X' membership, whose column k is sqrt(n_k / n) m_k in the range.
    between = (vectors.T @ membership) * np.sqrt(values)[:, None] if dual else vectors.T @ (centred.T @ membership)
    return ScatterRange(mean, basis, dual, values / n, np.ascontiguousarray(between), counts.astype(np.int64))


def _noise(mean: FloatArray, n: int) -> float:
    """What rounding in the mean of constant features can add to the Gram matrix's eigenvalues."""
    return float(n * (mean @ mean) * (n * np.finfo(np.float64).eps) ** 2)
