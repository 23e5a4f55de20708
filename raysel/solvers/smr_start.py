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
from raysel.solvers.smr_steps import alternating_steps, objective

# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to 0.3
# of alpha_max: more make D sharper than matrices of rank k can follow.
_LS21_STEPS = 8
# The continuation's iterations and its first and last smoothing, in squared units of the coefficients.
_CONTINUATION_STEPS = 8
_SMOOTHING = (1e-2, 1e-6)
# Iterations at the penalty itself after which starts are compared: after continuation, and from [I; 0]. Fewer
# favour [I; 0], which is the first to settle; 43 in all keep a fit of 50 within twice its time (experiments/smr-start).
_COMPARED_STEPS = 7
_IDENTITY_STEPS = 13


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
) -> Iterator[FloatArray]:
    """Coefficients after each iteration from the best of several starts.

    For p = 1 there is one: the solution without a bound on the rank, cut to the rank. For p < 1 all of these are
    iterated, then compared:

    - V = [I; 0] at the penalty itself;
    - V from the ridge solution, then continuation;
    - V from the unbounded solution for p = 1, then continuation.

    Where the rank is min(shape) it bounds nothing, so that LS21 is solved instead: for p < 1 from the ridge solution,
    with continuation and without. No start depends on the unit of the data.

    Parameters
    ----------
    data : LeastSquaresData
    shape : tuple of (int, int)
        (m, n).
    rank : int
    penalty : Penalty

    Returns
    -------
    iterator of ndarray, endless
        Each of shape (c, n_features) or (c, m, n).
    """
    (m, n), c = shape, len(data.Y)
    endless, smooth = repeat(penalty), continuation(data, penalty)
    n_continued = len(smooth) + _COMPARED_STEPS
    # Continuation begins at p = 1, where the unbounded problem is convex.
    flat = np.full((m, n), unit_weight(data, 1.0))
    if rank >= min(m, n):
        if penalty.p == 1.0:
            return ls21_steps(data, flat.ravel(), endless)
        direct = ls21_steps(data, np.full(m * n, unit_weight(data, penalty.p)), endless)
        continued = ls21_steps(data, flat.ravel(), chain(smooth, endless))
        return _best([(direct, n_continued), (continued, n_continued)], data, penalty)

    convex = Penalty(smooth[0].alpha, 1.0, penalty.zeta)
    steps = list(islice(ls21_steps(data, flat.ravel(), repeat(convex)), _LS21_STEPS))
    ridge, ls21 = steps[0].reshape(c, m, n), steps[-1].reshape(c, m, n)
    if penalty.p == 1.0:
        D = l2p_weights((ls21**2).sum(axis=0), penalty.p, penalty.zeta)
        return iterations(data, _leading_rows(ls21, rank), D, endless)
    paper = iterations(data, identity(c, n, rank), np.full((m, n), unit_weight(data, penalty.p)), endless)
    others = [iterations(data, _leading_rows(P, rank), flat, chain(smooth, endless)) for P in (ridge, ls21)]
    return _best([(paper, _IDENTITY_STEPS), *((start, n_continued) for start in others)], data, penalty)


def iterations(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Coefficients after each iteration: every second of `alternating_steps`."""
    return islice(alternating_steps(data, V, D, penalties), 1, None, 2)


def identity(c: int, n: int, rank: int) -> FloatArray:
    """The paper's V = [I; 0] for each class, shape (c, n, rank)."""
    return np.tile(np.eye(n, rank), (c, 1, 1))


def _leading_rows(P: FloatArray, rank: int) -> FloatArray:
    """The leading right singular vectors of each matrix: (c, m, n) to (c, n, rank)."""
    leading: FloatArray = np.linalg.svd(P, full_matrices=False)[2][:, :rank].transpose(0, 2, 1)
    return leading


def _best(
    starts: list[tuple[Iterator[FloatArray], int]], data: LeastSquaresData, penalty: Penalty
) -> Iterator[FloatArray]:
    """That of the starts which has the lowest objective after its given number of iterations, from there on."""
    reached = np.array([objective(next(islice(start, n - 1, None)), data, *penalty) for start, n in starts])
    # Starts that reached the same point differ by rounding, which must not choose.
    return starts[int(np.argmax(reached <= (1.0 + 1e-6) * reached.min()))][0]
