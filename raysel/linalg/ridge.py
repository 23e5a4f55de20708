"""Ridge regression on matrix-shaped samples when one factor of the low-rank coefficients is given.

For each class r and given V_r, the U_r (m x k) that minimises

    sum_i (<U_r V_r', X_i> - Y_ri)^2 + alpha sum_{a,b} D[a,b] (U_r V_r')[a,b]^2.

Row a of U_r meets the penalty through ``A_r[a] = V_r' diag(D[a,:]) V_r`` alone. With ``A = L L'`` and
``W_r[a] = L^{-1} V_r'`` (k x n), whose rows are orthonormal under D[a,:], the coefficients are
``(U_r V_r')[a,:] = q_r[:,a]' W_r[a]`` and q_r solves a plain ridge problem in the k m features
``G_r[(j,a), i] = sum_b W_r[a][j,b] X_i[a,b]``: (G G' + alpha I) q = G y or, in the dual,
q = G z with (G' G + alpha I) z = y. No matrix of size (m n) x (m n) is formed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from raysel.arrays import FloatArray

# As many classes share one matrix product as fill this many bytes of cache with their G: it bounds
# the working memory, and 1 to 2 MiB was the fastest.
_BLOCK_BYTES = 1 << 21


def orthonormal(factor: FloatArray) -> FloatArray:
    """Orthonormal bases of the columns of several matrices, completed where columns are dependent.

    `factor` is (c, n, k); returns (c, n, k).
    """
    basis: FloatArray = np.linalg.qr(factor)[0]
    return basis


def inverse_cholesky(A: FloatArray) -> FloatArray:
    """Inverses of the Cholesky factors of many small matrices.

    The matrices run along the last axis, so that each step is one array operation over all of them.

    `A` is (k, k, n_matrices); returns `M` (k, k, n_matrices).
    """
    k = len(A)
    inverse = np.zeros_like(A)
    diagonal = np.arange(k)
    inverse[diagonal, diagonal] = 1.0
    # Rounding must not turn a pivot negative when D spans more than a double's precision.
    least = np.finfo(np.float64).eps * A[diagonal, diagonal]
    for j in range(k):
        pivot = np.maximum(A[j, j], least[j])
        factors = A[j + 1 :, j] / pivot
        A[j + 1 :, j + 1 :] -= factors[:, None] * A[j, j + 1 :]
        inverse[j + 1 :, : j + 1] -= factors[:, None] * inverse[j, : j + 1]
        inverse[j, : j + 1] /= np.sqrt(pivot)
    return inverse


def left_factors(
    X: FloatArray, V: FloatArray, D: FloatArray, Y: FloatArray, XY: FloatArray, alpha: float
) -> FloatArray:
    """Best U of every class for given V; transposed arguments give the best V for given U.

    `X` is (m, n, n_samples), `V` (c, n, k), `D` (m, n), `Y` (c, n_samples), `XY` (c, m, n); returns `U`
    (c, m, k).
    """
    m, n, n_samples = X.shape
    c, _, k = V.shape
    Vt = np.ascontiguousarray(V.transpose(0, 2, 1))
    by_component = Vt.transpose(1, 0, 2)
    A = (by_component[:, None] * by_component).reshape(k * k * c, n) @ D.T
    whitening = inverse_cholesky(A.reshape(k, k, c * m)).reshape(k, k, c, m)
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
            q[r] = _ridge(features, Y[r], q[r], alpha, system)
    U: FloatArray = np.einsum("cja,acji->cai", q.reshape(c, k, m), whitening)
    return U


def _ridge(G: FloatArray, y: FloatArray, Gy: FloatArray, alpha: float, system: FloatArray) -> FloatArray:
    """Solve min_q ||G' q - y||^2 + alpha ||q||^2 in whichever of the two spaces is smaller."""
    dual = G.shape[0] > G.shape[1]
    # G' is Fortran-ordered: BLAS and LAPACK work on the arrays as they lie, lower triangle (the faster) only.
    system = blas.dsyrk(1.0, G.T, trans=0 if dual else 1, lower=1, c=system, overwrite_c=1)
    system.reshape(-1, order="F")[:: len(system) + 1] += alpha  # a view of the diagonal
    _, solution, info = lapack.dposv(system, y if dual else Gy, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("The penalty's weights span more than double precision: raise zeta, p or alpha.")
    return G @ solution if dual else solution
