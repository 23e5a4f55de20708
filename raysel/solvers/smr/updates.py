"""The objective of sparse matrix regression and the iterations that lower it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from raysel.arrays import FloatArray
from raysel.linalg.least_squares import LeastSquaresData
from raysel.linalg.reweighting import Penalty, l2p_penalty, l2p_weights
from raysel.linalg.ridge import left_factors, orthonormal


class _Iterate(NamedTuple):
    """The result of an iteration: ``P = U V'`` for each class, U orthonormal, and its objective."""

    U: FloatArray
    V: FloatArray
    P: FloatArray
    J: float


def objective(P: FloatArray, data: LeastSquaresData, alpha: float, p: float, zeta: float) -> float:
    """Objective J of given coefficients. `P` is (n_classes, n_features) or (n_classes, m, n)."""
    flat = P.reshape(len(P), -1)
    error = flat @ data.X - data.Y
    return float((error**2).sum()) + data.residual + alpha * l2p_penalty((flat**2).sum(axis=0), p, zeta)


def alternating_steps(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Run the paper's iterations and yield the coefficients after each half-step: U-step, V-step, U-step, ...

    `V` is (c, n, k), `D` (m, n); yields `P` (c, m, n).
    """
    P = None
    for alpha, p, zeta in penalties:
        if P is not None:
            D = l2p_weights((P**2).sum(axis=0), p, zeta)
        V = orthonormal(V)  # P does not depend on the basis of either factor
        U = _best_left(data, V, D, alpha)
        P = U @ V.transpose(0, 2, 1)
        yield P
        D = l2p_weights((P**2).sum(axis=0), p, zeta)
        U = orthonormal(U)
        V = _best_right(data, U, D, alpha)
        P = U @ V.transpose(0, 2, 1)
        yield P


def accelerated_steps(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[tuple[FloatArray, float]]:
    """Iterate like `alternating_steps`, but from extrapolated V: fewer iterations reach the same J.

    With U_t orthonormal and ``R = U_t' U_{t-1}``, ``V_{t-1} R'`` is the right factor of P_{t-1} projected on U_t.
    An iteration begins at ``V_t + t / (t + 3) (V_t - V_{t-1} R')``, Nesterov's extrapolation; where it ends above
    the last J, and where the penalty changes, it begins at V_t instead and t is counted anew. So J never rises
    under one penalty.

    Yields `P` (c, m, n).
    """
    penalties = iter(penalties)
    penalty = next(penalties)
    before = now = _iteration(data, V, D, penalty)
    yield now.P, now.J
    t = 1
    for following in penalties:
        if following != penalty:
            penalty, t = following, 0
        step = None
        if t > 0:
            kept = now.U.transpose(0, 2, 1) @ before.U
            V = now.V + t / (t + 3.0) * (now.V - before.V @ kept.transpose(0, 2, 1))
            step = _iteration(data, V, _weights(now.U, V, penalty), penalty)
        if step is None or step.J > now.J:
            step, t = _iteration(data, now.V, _weights(now.U, now.V, penalty), penalty), 0
        before, now, t = now, step, t + 1
        yield now.P, now.J


def _iteration(data: LeastSquaresData, V: FloatArray, D: FloatArray, penalty: Penalty) -> _Iterate:
    """One U-step and one V-step."""
    V = orthonormal(V)
    U = _best_left(data, V, D, penalty.alpha)
    D = _weights(U, V, penalty)
    U = orthonormal(U)
    V = _best_right(data, U, D, penalty.alpha)
    P = U @ V.transpose(0, 2, 1)
    return _Iterate(U, V, P, objective(P, data, *penalty))


def _weights(U: FloatArray, V: FloatArray, penalty: Penalty) -> FloatArray:
    """Weights of the penalty's tangent at U V', one a cell, shape (m, n)."""
    return l2p_weights(((U @ V.transpose(0, 2, 1)) ** 2).sum(axis=0), penalty.p, penalty.zeta)


def _best_left(data: LeastSquaresData, V: FloatArray, D: FloatArray, alpha: float) -> FloatArray:
    """The best U for V with orthonormal columns."""
    c, (m, n) = len(data.Y), D.shape
    return left_factors(data.X.reshape(m, n, -1), V, D, data.Y, data.XY.reshape(c, m, n), alpha)


def _best_right(data: LeastSquaresData, U: FloatArray, D: FloatArray, alpha: float) -> FloatArray:
    """The best V for U with orthonormal columns."""
    c, (m, n) = len(data.Y), D.shape
    X, XY = data.X.reshape(m, n, -1), data.XY.reshape(c, m, n)
    return left_factors(X.transpose(1, 0, 2), U, D.T, data.Y, XY.transpose(0, 2, 1), alpha)  # views: X is kept once
