"""The starts of sparse matrix regression, and the choice among them.

The bound on the rank and, for p < 1, the penalty give the objective many local minima, and a start whose weights
already differ much keeps the few cells of low weight. Two methods are combined. Continuation (graduated
non-convexity): the first iterations minimise the penalty for an exponent that falls from 1 to p and a smoothing that
falls by orders of magnitude. Successive halving: several starts are iterated a few times, and those of the lowest
objectives continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat, tee

import numpy as np

from raysel.arrays import FloatArray
from raysel.linalg.least_squares import LeastSquaresData, ls21_steps
from raysel.linalg.reweighting import Penalty, l2p_weights
from raysel.solvers.smr.updates import accelerated_steps, alternating_steps, objective

# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to 0.3
# of alpha_max: with more, the weights D differ too much for matrices of rank k.
_LS21_STEPS = 8
# The continuation's iterations and its first and last smoothing, in squared units of the coefficients.
_CONTINUATION_STEPS = 5
_SMOOTHING = (1e-2, 1e-6)
# Iterations of each start in the first round, after which two continue, and in the second, for p < 1 and for p = 1,
# where ten of the first round count as the fit's own: 44 and 42 uncounted ones keep a fit of 50 within about twice the
# time of one start. [I; 0] is the first to settle, so comparing sooner favours it (experiments/smr-start).
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
    leading: FloatArray = np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)
    return leading


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
