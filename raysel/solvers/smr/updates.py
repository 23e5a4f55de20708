"""The objective of sparse matrix regression, the iterations that lower it, and their starts.

The bound on the rank and, for p < 1, the penalty give the objective many local minima, and a start
whose weights already differ much keeps the few cells of low weight. Two methods are combined.
Continuation (graduated non-convexity): the first iterations minimise the penalty for an exponent
that falls from 1 to p and a smoothing that falls by orders of magnitude. Successive halving:
several starts are iterated a few times, and those of the lowest objectives continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import NamedTuple

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray
from raysel.numerics.least_squares import LeastSquaresData, ls21_steps
from raysel.numerics.reweighting import Penalty, l2p_penalty, l2p_weights
from raysel.numerics.tensor_factors import (
    TensorSamples,
    composed,
    largest_rank,
    leading_factors,
    mode_step,
    tensor_samples,
    unit_cells,
    with_first,
)


class _Iterate(NamedTuple):
    """The result of an iteration: the factors of each class, their product P, and its objective."""

    factors: list[FloatArray]
    P: FloatArray
    J: float


def objective(P: FloatArray, data: LeastSquaresData, alpha: float, p: float, zeta: float) -> float:
    """Objective J of given coefficients.

    `P` is (n_classes, n_features) or (n_classes, m_1, .., m_N).
    """
    flat = P.reshape(len(P), -1)
    error = flat @ data.X - data.Y
    return (
        float((error**2).sum())
        + data.residual
        + alpha * l2p_penalty((flat**2).sum(axis=0), p, zeta)
    )


def alternating_steps(
    samples: TensorSamples, start: Sequence[FloatArray], D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Run the paper's iterations and yield the coefficients after the step of each mode.

    `start` has the factors of all modes but the first, (c, m_q, k) each; `D` is (m_1, .., m_N);
    yields `P` (c, m_1, .., m_N).
    """
    P, before, factors = None, None, with_first(start, samples.shape[0])
    for penalty in penalties:
        if penalty != before:
            before, J = penalty, np.inf
        for mode in range(len(factors)):
            if P is not None:
                D = _weights(samples, P, penalty)
            factors, P, J = _mode_step(samples, factors, mode=mode, D=D, penalty=penalty, J=J)
            yield P


def accelerated_steps(
    samples: TensorSamples, start: Sequence[FloatArray], D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[tuple[FloatArray, float]]:
    """Iterate like `alternating_steps`, from extrapolated factors, which takes fewer steps.

    An iteration begins at the factors plus ``t / (t + 3)`` of their last change, Nesterov's
    extrapolation; where it ends above the last J, and where the penalty changes, it begins at the
    factors themselves and t is counted anew. So J never rises under one penalty.

    Yields `P` (c, m_1, .., m_N), with a mask (c, n_features).
    """
    penalties = iter(penalties)
    penalty = next(penalties)
    before = now = _iteration(samples, with_first(start, samples.shape[0]), D, penalty)
    yield samples.features(now.P), now.J
    t = 1
    for following in penalties:
        changed = following != penalty
        if changed:
            penalty, t = following, 0
        step = None
        if t > 0:
            factors = _extrapolated(now.factors, before.factors, t / (t + 3.0))
            step = _iteration(
                samples, factors, _weights(samples, composed(factors), penalty), penalty
            )
        if step is None or step.J > now.J:
            J = now.J
            if changed:
                J = objective(samples.features(now.P), samples.data, *penalty)
            step, t = (
                _iteration(
                    samples, now.factors, D=_weights(samples, now.P, penalty), penalty=penalty, J=J
                ),
                0,
            )
            if len(now.factors) > 2 and not changed and step.J > now.J:
                step = now  # nearly dependent factors, whose product is no more exact than this
        before, now, t = now, step, t + 1
        yield samples.features(now.P), now.J


def _iteration(
    samples: TensorSamples,
    factors: list[FloatArray],
    D: FloatArray,
    penalty: Penalty,
    J: float = np.inf,
) -> _Iterate:
    """One step of each mode from factors of objective J, if it is known."""
    for mode in range(len(factors)):
        factors, P, J = _mode_step(samples, factors, mode=mode, D=D, penalty=penalty, J=J)
        D = _weights(samples, P, penalty)
    return _Iterate(factors, P, objective(samples.features(P), samples.data, *penalty))


def _mode_step(
    samples: TensorSamples,
    factors: list[FloatArray],
    mode: int,
    D: FloatArray,
    penalty: Penalty,
    J: float,
) -> tuple[list[FloatArray], FloatArray, float]:
    """Return the factors after a step of one mode, their product, and the objective.

    With a mask nothing bounds the coefficients outside. Where these are so much larger than those
    inside that rounding takes the latter, the objective would rise, and the factors stay as they
    were.
    """
    stepped = mode_step(samples, factors, mode=mode, D=D, alpha=penalty.alpha)
    P = composed(stepped)
    if samples.inside is None:
        return stepped, P, J
    reached = objective(samples.features(P), samples.data, *penalty)
    if reached <= J:
        return stepped, P, reached
    return factors, composed(factors), J


def _extrapolated(
    now: list[FloatArray], before: list[FloatArray], share: float
) -> list[FloatArray]:
    """Add a share of their last change to the factors of all modes but the first.

    Of a matrix U V', with U_t orthonormal and ``R = U_t' U_{t-1}``, ``V_{t-1} R'`` is the right
    factor of P_{t-1} projected on U_t. The columns of factors of higher order are the same but for
    rounding whatever the basis.
    """
    first, *others = now
    last = before[1:]
    if len(now) == 2:
        kept = first.transpose(0, 2, 1) @ before[0]
        last = [last[0] @ kept.transpose(0, 2, 1)]
    return [first, *(A + share * (A - B) for A, B in zip(others, last, strict=True))]


def _weights(samples: TensorSamples, P: FloatArray, penalty: Penalty) -> FloatArray:
    """Weights (m_1, .., m_N) of the penalty's tangent at P, 0 outside the mask."""
    weights = l2p_weights((P**2).sum(axis=0), penalty.p, penalty.zeta)
    if samples.inside is None:
        return weights
    return np.where(samples.inside.reshape(weights.shape), weights, 0.0)


# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to
# 0.3 of alpha_max: with more, the weights D differ too much for matrices of rank k.
_LS21_STEPS = 8
# The continuation's iterations and its first and last smoothing, in squared units of the
# coefficients.
_CONTINUATION_STEPS = 5
_SMOOTHING = (1e-2, 1e-6)
# Iterations of each start in the first round, after which two continue, and in the second. [I; 0]
# is the first to settle, so comparing sooner favours it (experiments/claims/smr-start). For p = 1
# there are two starts, and the second ends at a glance where it is behind: 6 uncounted iterations,
# a quarter of a fit's (experiments/benchmarks/smr-speed).
_FIRST_ROUND, _SECOND_ROUND = 10, 2
_GLANCE = 6


def unit_weight(data: LeastSquaresData, p: float) -> float:
    """Weight of the penalty's tangent where coefficients have their typical size."""
    return float(l2p_weights(np.array(data.coefficient_unit() ** 2), p, 0.0))


def continuation(data: LeastSquaresData, penalty: Penalty) -> list[Penalty]:
    """Penalties that lead from a smooth one with exponent 1 towards the given one."""
    alpha, p, zeta = penalty
    unit = data.penalty_unit(p)
    exponents = np.linspace(1.0, p, _CONTINUATION_STEPS, endpoint=False).tolist()
    smoothing = (
        data.coefficient_unit() ** 2 * np.geomspace(*_SMOOTHING, _CONTINUATION_STEPS)
    ).tolist()
    return [
        Penalty(alpha * data.penalty_unit(q) / unit if unit > 0.0 else alpha, q, max(z, zeta))
        for q, z in zip(exponents, smoothing, strict=True)
    ]


def multistart_steps(
    data: LeastSquaresData,
    shape: tuple[int, ...],
    rank: int,
    penalty: Penalty,
    seed: int | None = None,
    inside: BoolArray | None = None,
) -> Iterator[tuple[FloatArray, float]]:
    """Iterate `accelerated_steps` from the best of several starts.

    For p < 1 each start is iterated 10 times, the two of the lowest objectives 2 times more, and
    the one of the lowest objective continues. The starts are factors of all modes but the first:

    - `leading_factors` of the solution without a bound on the rank for p = 1, for p < 1 with
      continuation;
    - those of the ridge solution, with continuation;
    - random ones, the same for all classes and at every call, at the penalty itself;
    - `unit_cells`, ``[I; 0]``, at the penalty itself.

    For p = 1 the first is already at the penalty itself: its 10 iterations come first, so that J is
    low soon. The second follows if its J is lower after 6 and after 10 iterations, and the others
    are not tried. Where the rank is `largest_rank` it bounds nothing, so that LS21 is solved
    instead, which is convex for p = 1; for p < 1 from the ridge solution, with continuation and
    without, compared likewise. No start depends on the unit of the data or on the order of the
    classes.

    With a ``seed`` nothing is compared: the start is random, with other factors for each class.
    """
    c = len(data.Y)
    endless, smooth = repeat(penalty), continuation(data, penalty)
    # Continuation begins at p = 1, where the unbounded problem is convex.
    flat, sharp = (np.full(len(data.X), unit_weight(data, p)) for p in (1.0, penalty.p))
    if rank >= largest_rank(shape):
        if seed is not None:
            sharp = sharp * np.random.default_rng(seed).exponential(size=len(sharp))
        direct = with_objective(ls21_steps(data, sharp, endless), data, penalty)
        if penalty.p == 1.0 or seed is not None:
            return direct
        continued = ls21_steps(data, flat, chain(smooth, endless))
        return _best([direct, with_objective(continued, data, penalty)], _FIRST_ROUND)

    samples = tensor_samples(data, shape, inside)
    if seed is not None:
        rng = np.random.default_rng(seed)
        drawn = [rng.standard_normal((c, side, rank)) for side in shape[1:]]
        return accelerated_steps(samples, drawn, samples.cells(sharp), endless)
    convex = Penalty(smooth[0].alpha, 1.0, penalty.zeta)
    ridge, ls21 = (samples.cells(P) for P in _unbounded(data, flat, convex))
    flat, sharp = samples.cells(flat), samples.cells(sharp)
    rng = np.random.default_rng(0)
    fixed = [np.repeat(rng.standard_normal((1, side, rank)), c, axis=0) for side in shape[1:]]
    others = [
        accelerated_steps(samples, leading_factors(ridge, rank), flat, chain(smooth, endless)),
        accelerated_steps(samples, fixed, sharp, endless),
        accelerated_steps(samples, unit_cells(c, shape, rank), sharp, endless),
    ]
    leading = leading_factors(ls21, rank)
    if penalty.p < 1.0:
        return _best(
            [accelerated_steps(samples, leading, flat, chain(smooth, endless)), *others],
            _SECOND_ROUND,
        )
    first = accelerated_steps(samples, leading, _weights(samples, ls21, penalty), endless)
    return _opened_by(first, others[0])


def _unbounded(
    data: LeastSquaresData, weights: FloatArray, penalty: Penalty
) -> tuple[FloatArray, FloatArray]:
    """The first and the last of the LS21 steps, kept until another penalty asks."""
    depends, steps = data.kept.get("ls21", (None, None))
    if depends != penalty:
        first, *_, last = islice(ls21_steps(data, weights, repeat(penalty)), _LS21_STEPS)
        steps = first, last
        data.kept["ls21"] = penalty, steps
    return steps


def iterations(
    samples: TensorSamples, start: Sequence[FloatArray], D: FloatArray, penalties: Iterable[Penalty]
) -> Iterator[FloatArray]:
    """Coefficients after each whole iteration of `alternating_steps`, every N-th step."""
    n_modes = len(samples.shape)
    return map(
        samples.features,
        islice(alternating_steps(samples, start, D, penalties), n_modes - 1, None, n_modes),
    )


def with_objective(
    steps: Iterable[FloatArray], data: LeastSquaresData, penalty: Penalty
) -> Iterator[tuple[FloatArray, float]]:
    """Pair the coefficients of each step with their objective."""
    return ((P, objective(P, data, *penalty)) for P in steps)


def _opened_by(
    first: Iterator[tuple[FloatArray, float]], rival: Iterator[tuple[FloatArray, float]]
) -> Iterator[tuple[FloatArray, float]]:
    """Yield the first start's iterations of round one, then those of the better start."""
    reached = []
    for P, J in islice(first, _FIRST_ROUND):
        reached.append(J)
        yield P, J
    before = 0
    for n in (_GLANCE, _FIRST_ROUND):
        J = next(islice(rival, n - before - 1, None))[1]
        before = n
        if _lowest([reached[n - 1], J], 1) == [0]:
            yield from first
            return
    yield from rival


def _best(
    starts: list[Iterator[tuple[FloatArray, float]]], second_round: int
) -> Iterator[tuple[FloatArray, float]]:
    """Compare the starts by their objectives in two rounds; the best one continues."""
    for n_iterations, n_survivors in ((_FIRST_ROUND, 2), (second_round, 1)):
        if len(starts) > n_survivors:
            reached = [next(islice(start, n_iterations - 1, None))[1] for start in starts]
            starts = [starts[i] for i in _lowest(reached, 2)]
    return starts[0]


def _lowest(values: list[float], n: int) -> list[int]:
    """Indices of the n lowest values; of values equal but for rounding the first."""
    left: list[int] = list(range(len(values)))
    lowest: list[int] = []
    for _ in range(n):
        bound = (1.0 + 1e-6) * min(values[i] for i in left)
        lowest.append(
            next((i for i in left if values[i] <= bound), left[0])
        )  # none where an objective is NaN
        left.remove(lowest[-1])
    return lowest
