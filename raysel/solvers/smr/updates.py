"""The objective of sparse matrix regression, the iterations that lower it, and their starts.

The bound on the rank and, for p < 1, the penalty give the objective many local minima, and a start whose weights
already differ much keeps the few cells of low weight. Two methods are combined. Continuation (graduated
non-convexity): the first iterations minimise the penalty for an exponent that falls from 1 to p and a smoothing that
falls by orders of magnitude. Successive halving: several starts are iterated a few times, and those of the lowest
objectives continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat, tee
from typing import NamedTuple

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.numerics.least_squares import LeastSquaresData, left_factors, ls21_steps, orthonormal
from raysel.numerics.reweighting import Penalty, l2p_penalty, l2p_weights


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


# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to 0.3
# of alpha_max: with more, the weights D differ too much for matrices of rank k.
_LS21_STEPS = 8
# The continuation's iterations and its first and last smoothing, in squared units of the coefficients.
_CONTINUATION_STEPS = 5
_SMOOTHING = (1e-2, 1e-6)
# Iterations of each start in the first round, after which two continue, and in the second, for p < 1 and for p = 1,
# where ten of the first round count as the fit's own: 44 and 42 uncounted ones keep a fit of 50 within about twice the
# time of one start. [I; 0] is the first to settle, so comparing sooner favours it (experiments/claims/smr-start).
_FIRST_ROUND = 10
_SECOND_ROUND, _SECOND_ROUND_CONVEX = 2, 6


def unit_weight(data: LeastSquaresData, p: float) -> float:
    """Weight of the penalty's tangent for a feature whose coefficients have the length ``data.coefficient_unit()``."""
    return float(l2p_weights(np.array(data.coefficient_unit() ** 2), p, 0.0))


def continuation(data: LeastSquaresData, penalty: Penalty) -> list[Penalty]:
    """Penalties that lead from a smooth one with exponent 1 towards the given one, which they do not include."""
    alpha, p, zeta = penalty
    unit = data.penalty_unit(p)
    exponents = np.linspace(1.0, p, _CONTINUATION_STEPS, endpoint=False).tolist()
    smoothing = (data.coefficient_unit() ** 2 * np.geomspace(*_SMOOTHING, _CONTINUATION_STEPS)).tolist()
    return [
        Penalty(alpha * data.penalty_unit(q) / unit if unit > 0.0 else alpha, q, max(z, zeta))
        for q, z in zip(exponents, smoothing, strict=True)
    ]


def multistart_steps(
    data: LeastSquaresData, shape: tuple[int, int], rank: int, penalty: Penalty, place: int = 0
) -> Iterator[tuple[FloatArray, float]]:
    """Iterate `accelerated_steps` from the best of several starts.

    Each start is iterated 10 times, the two of the lowest objectives 2 times more (6 for p = 1), and the one of the
    lowest objective continues. The starts are:

    - V from the solution without a bound on the rank for p = 1, for p < 1 with continuation;
    - V from the ridge solution, with continuation;
    - one random V for all classes, the same at every call, at the penalty itself;
    - V = [I; 0] at the penalty itself.

    For p = 1 the first is already at the penalty itself: its 10 iterations come first, and are followed by those
    of the best start, so that J is low soon. Where the rank is min(shape) it bounds nothing, so that LS21 is solved
    instead, which is convex for p = 1; for p < 1 from the ridge solution, with continuation and without, compared
    likewise. No start depends on the unit of the data or on the order of the classes.
    """
    (m, n), c = shape, len(data.Y)
    endless, smooth = repeat(penalty), continuation(data, penalty)
    # Continuation begins at p = 1, where the unbounded problem is convex.
    flat, sharp = (np.full((m, n), unit_weight(data, p)) for p in (1.0, penalty.p))
    if rank >= min(m, n):
        direct = with_objective(ls21_steps(data, sharp.ravel(), endless), data, penalty)
        if penalty.p == 1.0:
            return direct
        continued = ls21_steps(data, flat.ravel(), chain(smooth, endless))
        return _best([direct, with_objective(continued, data, penalty)], _FIRST_ROUND, place)

    convex = Penalty(smooth[0].alpha, 1.0, penalty.zeta)
    steps = list(islice(ls21_steps(data, flat.ravel(), repeat(convex)), _LS21_STEPS))
    ridge, ls21 = (P.reshape(c, m, n) for P in (steps[0], steps[-1]))
    fixed = np.repeat(np.random.default_rng(0).standard_normal((1, n, rank)), c, axis=0)
    others = [
        accelerated_steps(data, _leading_rows(ridge, rank), flat, chain(smooth, endless)),
        accelerated_steps(data, fixed, sharp, endless),
        accelerated_steps(data, identity(c, n, rank), sharp, endless),
    ]
    V = _leading_rows(ls21, rank)
    if penalty.p < 1.0:
        return _best([accelerated_steps(data, V, flat, chain(smooth, endless)), *others], _SECOND_ROUND, place)
    D = l2p_weights((ls21**2).sum(axis=0), penalty.p, penalty.zeta)
    first = accelerated_steps(data, V, D, endless)
    return _best([first, *others], _SECOND_ROUND_CONVEX, 1) if place else _opened_by(first, others)


def iterations(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Coefficients after each whole iteration of `alternating_steps`: every second of what it yields."""
    return islice(alternating_steps(data, V, D, penalties), 1, None, 2)


def with_objective(
    steps: Iterable[FloatArray], data: LeastSquaresData, penalty: Penalty
) -> Iterator[tuple[FloatArray, float]]:
    """Pair the coefficients of each step with their objective."""
    return ((P, objective(P, data, *penalty)) for P in steps)


def identity(c: int, n: int, rank: int) -> FloatArray:
    """The paper's V = [I; 0] for each class, shape (c, n, rank)."""
    return np.tile(np.eye(n, rank), (c, 1, 1))


def _leading_rows(P: FloatArray, rank: int) -> FloatArray:
    """Leading right singular vectors of each matrix: (c, m, n) to (c, n, rank)."""
    return np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)


def _opened_by(
    first: Iterator[tuple[FloatArray, float]], others: list[Iterator[tuple[FloatArray, float]]]
) -> Iterator[tuple[FloatArray, float]]:
    """Yield the first start's iterations of the first round, then the best start's; J never rises."""
    shown, first = tee(first)
    yield from islice(shown, _FIRST_ROUND)
    del shown  # or all that follows would be kept for it
    yield from _best([first, *others], _SECOND_ROUND_CONVEX, 0)


def _best(
    starts: list[Iterator[tuple[FloatArray, float]]], second_round: int, place: int
) -> Iterator[tuple[FloatArray, float]]:
    """Order the starts by their objectives in two rounds, the second of two; one continues where it is."""
    for n_iterations, n_survivors in ((_FIRST_ROUND, 2), (second_round, 1)):
        if len(starts) > n_survivors:
            reached = [next(islice(start, n_iterations - 1, None))[1] for start in starts]
            starts = [starts[i] for i in _lowest(reached, 2)]
    return starts[place]


def _lowest(values: list[float], n: int) -> list[int]:
    """Indices of the n lowest values; of values equal but for rounding the first."""
    left: list[int] = list(range(len(values)))
    lowest: list[int] = []
    for _ in range(n):
        bound = (1.0 + 1e-6) * min(values[i] for i in left)
        lowest.append(next((i for i in left if values[i] <= bound), left[0]))  # none where an objective is NaN
        left.remove(lowest[-1])
    return lowest
