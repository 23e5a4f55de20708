"""The objective of sparse matrix regression and the half-steps that lower it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from raysel.arrays import FloatArray
from raysel.linalg.least_squares import LeastSquaresData
from raysel.linalg.reweighting import Penalty, l2p_penalty, l2p_weights
from raysel.linalg.ridge import left_factors, orthonormal


def objective(P: FloatArray, data: LeastSquaresData, alpha: float, p: float, zeta: float) -> float:
    """J of the coefficients.

    Parameters
    ----------
    P : ndarray of shape (n_classes, n_features) or (n_classes, m, n)
        Of the features as ``data`` stores them.
    data : LeastSquaresData
    alpha, p, zeta : float
        The penalty on P.

    Returns
    -------
    float
    """
    flat = P.reshape(len(P), -1)
    error = flat @ data.X - data.Y
    return float((error**2).sum()) + data.residual + alpha * l2p_penalty((flat**2).sum(axis=0), p, zeta)


def alternating_steps(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Coefficients after each half-step: U-step, V-step, U-step, ...

    Parameters
    ----------
    data : LeastSquaresData
    V : ndarray of shape (c, n, k)
    D : ndarray of shape (m, n), positive
        Weights of the first U-step.
    penalties : iterable of Penalty
        One an iteration, that is two half-steps; the same throughout for steps that descend.

    Yields
    ------
    P : ndarray of shape (c, m, n)
    """
    c, (m, n) = len(data.Y), D.shape
    X, XY = data.X.reshape(m, n, -1), data.XY.reshape(c, m, n)
    X_t, XY_t = X.transpose(1, 0, 2), XY.transpose(0, 2, 1)  # views: X is kept once
    P = None
    for alpha, p, zeta in penalties:
        if P is not None:
            D = l2p_weights((P**2).sum(axis=0), p, zeta)
        V = orthonormal(V)  # P does not depend on the basis of either factor
        U = left_factors(X, V, D, data.Y, XY, alpha)
        P = U @ V.transpose(0, 2, 1)
        yield P
        D = l2p_weights((P**2).sum(axis=0), p, zeta)
        U = orthonormal(U)
        V = left_factors(X_t, U, D.T, data.Y, XY_t, alpha)
        P = U @ V.transpose(0, 2, 1)
        yield P
