"""Where sparse matrix regression starts.

For p < 1 the penalty has many local minima, and starts whose weights are already sharp settle on the few
cells that they begin with. Two remedies are combined. *Continuation* (graduated non-convexity): the first
iterations minimise the penalty for an exponent that falls from 1 to p and a smoothing that falls by
orders of magnitude. *Several starts*: each is iterated a little, and that of the lowest objective goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat

import numpy as np

from raysel.arrays import FloatArray
from raysel.linalg.least_squares import LeastSquaresData, ls21_steps
from raysel.linalg.reweighting import Penalty, l2p_weights
from raysel.solvers.smr_steps import accelerated_steps, alternating_steps, objective

# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to 0.3
# of alpha_max: more make D sharper than matrices of rank k can follow.
_LS21_STEPS = 8
# The continuation's iterations and its first and last smoothing, in squared units of the coefficients.
_CONTINUATION_STEPS = 5
_SMOOTHING = (1e-2, 1e-6)
# Iterations of each start, and how many starts then remain: 44 in all keep a fit of 50 within about twice the
# time of one start. [I; 0] is the first to settle, so comparing sooner favours it (experiments/smr-start).
_ROUNDS = ((10, 2), (2, 1))


def unit_weight(data: LeastSquaresData, p: float) -> float:
    """The penalty's weight for a feature whose coefficients have the length ``data.coefficient_unit()``."""
    return float(l2p_weights(np.array(data.coefficient_unit() ** 2), p, 0.0))


def continuation(data: LeastSquaresData, penalty: Penalty) -> list[Penalty]:
    """Penalties that lead from a smooth one with exponent 1 towards the given one, which they do not include.

    Parameters
    ----------
    data : LeastSquaresData
    penalty : Penalty

    Returns
    -------
    list of Penalty
        p falls linearly, zeta geometrically, never below the given; alpha is the same share of
        ``data.penalty_unit`` at each p.
    """
    alpha, p, zeta = penalty
    unit = data.penalty_unit(p)
    exponents = np.linspace(1.0, p, _CONTINUATION_STEPS, endpoint=False).tolist()
    smoothing = (data.coefficient_unit() ** 2 * np.geomspace(*_SMOOTHING, _CONTINUATION_STEPS)).tolist()
    return [
        Penalty(alpha * data.penalty_unit(q) / unit if unit > 0.0 else alpha, q, max(z, zeta))
        for q, z in zip(exponents, smoothing, strict=True)
    ]


def multistart_steps(
    data: LeastSquaresData, shape: tuple[int, int], rank: int, penalty: Penalty
) -> Iterator[tuple[FloatArray, float]]:
    """Coefficients after each iteration, extrapolated, from the best of several starts, and their objective.

    These are iterated and compared in rounds:

    - V from the ridge solution, then continuation;
    - V from the solution without a bound on the rank for p = 1, then continuation;
    - one random V for all classes, the same at every call, at the penalty itself;
    - V = [I; 0] at the penalty itself.

    Where the rank is min(shape) it bounds nothing, so that LS21 is solved instead, which is convex for p = 1; for
    p < 1 from the ridge solution, with continuation and without. No start depends on the unit of the data or on
    the order of the classes.

    Parameters
    ----------
    data : LeastSquaresData
    shape : tuple of (int, int)
        (m, n).
    rank : int
    penalty : Penalty

    Returns
    -------
    iterator of (ndarray, float), endless
        Coefficients of shape (c, n_features) or (c, m, n).
    """
    (m, n), c = shape, len(data.Y)
    endless, smooth = repeat(penalty), continuation(data, penalty)
    # Continuation begins at p = 1, where the unbounded problem is convex.
    flat, sharp = (np.full((m, n), unit_weight(data, p)) for p in (1.0, penalty.p))
    if rank >= min(m, n):
        solutions = [ls21_steps(data, sharp.ravel(), endless)]
        if penalty.p < 1.0:
            solutions.append(ls21_steps(data, flat.ravel(), chain(smooth, endless)))
        return _best([with_objective(steps, data, penalty) for steps in solutions])

    convex = Penalty(smooth[0].alpha, 1.0, penalty.zeta)
    steps = list(islice(ls21_steps(data, flat.ravel(), repeat(convex)), _LS21_STEPS))
    fixed = np.random.default_rng(0).standard_normal((1, n, rank))
    continued = [_leading_rows(P.reshape(c, m, n), rank) for P in (steps[0], steps[-1])]
    direct = [np.repeat(fixed, c, axis=0), identity(c, n, rank)]
    starts = [accelerated_steps(data, V, flat, chain(smooth, endless)) for V in continued]
    starts += [accelerated_steps(data, V, sharp, endless) for V in direct]
    return _best(starts)


def iterations(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Coefficients after each iteration: every second of `alternating_steps`."""
    return islice(alternating_steps(data, V, D, penalties), 1, None, 2)


def with_objective(
    steps: Iterable[FloatArray], data: LeastSquaresData, penalty: Penalty
) -> Iterator[tuple[FloatArray, float]]:
    """Coefficients with their objective."""
    return ((P, objective(P, data, *penalty)) for P in steps)


def identity(c: int, n: int, rank: int) -> FloatArray:
    """The paper's V = [I; 0] for each class, shape (c, n, rank)."""
    return np.tile(np.eye(n, rank), (c, 1, 1))


def _leading_rows(P: FloatArray, rank: int) -> FloatArray:
    """The leading right singular vectors of each matrix: (c, m, n) to (c, n, rank)."""
    leading: FloatArray = np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)
    return leading


def _best(starts: list[Iterator[tuple[FloatArray, float]]]) -> Iterator[tuple[FloatArray, float]]:
    """The start that is left after rounds of iterations, each of which only those of the lowest objectives survive."""
    for n_iterations, n_survivors in _ROUNDS:
        if len(starts) > n_survivors:
            reached = [next(islice(start, n_iterations - 1, None))[1] for start in starts]
            starts = [starts[i] for i in _lowest(reached, n_survivors)]
    return starts[0]


def _lowest(values: list[float], n: int) -> list[int]:
    """The places of the n lowest; of those equal but for rounding the first."""
    left: list[int] = list(range(len(values)))
    lowest: list[int] = []
    for _ in range(n):
        bound = (1.0 + 1e-6) * min(values[i] for i in left)
        lowest.append(next(i for i in left if values[i] <= bound))
        left.remove(lowest[-1])
    return lowest
