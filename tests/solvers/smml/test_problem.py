"""The problem's parts against the formulas of the paper and of the dual, its bounds against
conic solvers.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smml_reference import conic_optimum, indicator, objective, posed, posed_problem

from raysel.solvers.smml.problem import Certificate, relative_gap

WIDTHS = (6, 1, 5)


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_maxima_are_the_norms_of_the_mean_differences(multilabel):
    X, y, problem = posed_problem(1, multilabel=multilabel)
    G = []
    for sign in indicator(y).T:
        fewer = min((sign > 0).sum(), (sign < 0).sum())
        G.append(fewer * (X[sign > 0].mean(axis=0) - X[sign < 0].mean(axis=0)))
    G = np.array(G)
    blocks = np.split(G, np.cumsum(WIDTHS)[:-1], axis=1)
    assert problem.prepared.gamma1_max == pytest.approx(
        max(np.linalg.norm(b, axis=1).max() for b in blocks)
    )
    assert problem.prepared.gamma2_max == pytest.approx(np.linalg.norm(G, axis=0).max())
    np.testing.assert_allclose(problem.fractions, 0.1)
    assert not problem.is_zero_solution
    assert posed(X, y, WIDTHS, 0.6, 0.4 + 1e-9).is_zero_solution


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), gammas=st.sampled_from([(0.1, 0.2), (0.3, 0.0), (0.0, 0.3)]))
def test_a_solution_costs_what_the_paper_says_and_no_bias_is_better(seed, gammas):
    X, y, problem = posed_problem(seed, *gammas)
    W = np.random.default_rng(seed).standard_normal((3, 12))
    solution = problem.solution(W)
    coef, intercept = problem.prepared.coefficients(W, solution.bias)
    own = solution.objective(problem.gamma1, problem.gamma2)
    assert own == pytest.approx(
        objective(X, y, WIDTHS, problem.gamma1, problem.gamma2, coef, intercept), rel=1e-9
    )
    assert solution.objective(1.0, 2.0) == pytest.approx(
        objective(X, y, WIDTHS, 1.0, 2.0, coef, intercept)
    )
    for shift in (-0.1, -1e-3, 1e-3, 0.1):
        moved = objective(X, y, WIDTHS, problem.gamma1, problem.gamma2, coef, intercept + shift)
        assert own <= moved * (1 + 1e-12)


def dual_optimum(X, y, widths, gamma1, gamma2):
    """The largest dual value with its alpha (c, n) and V (c, d), by Clarabel, in the units of X."""
    Y, X = indicator(y).T, X - X.mean(axis=0)
    alpha, V = cp.Variable(Y.shape), cp.Variable((len(Y), X.shape[1]))
    U = cp.multiply(alpha, Y) @ X - V
    starts = np.cumsum(widths) - widths
    conditions = [alpha >= 0, alpha <= 1, cp.sum(cp.multiply(alpha, Y), axis=1) == 0]
    conditions += [
        cp.norm(U[:, s : s + w], 2, axis=1) <= gamma1 for s, w in zip(starts, widths, strict=True)
    ]
    conditions.append(cp.norm(V, 2, axis=0) <= gamma2)
    value = cp.Problem(cp.Maximize(cp.sum(alpha)), conditions).solve(cp.CLARABEL)
    return value, alpha.value, V.value


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("gammas", [(0.1, 0.1), (0.3, 0.02), (0.2, 0.0), (0.0, 0.2)])
def test_the_best_dual_point_is_worth_the_optimum(gammas, multilabel):
    X, y, problem = posed_problem(2, *gammas, multilabel=multilabel)
    optimum, _ = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    value, alpha, V = dual_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    assert value == pytest.approx(optimum, rel=1e-5)
    V = V / problem.prepared.column_units
    assert problem.dual_point(alpha, V).bound(problem.gamma1, problem.gamma2) == pytest.approx(
        optimum, rel=1e-3
    )
    # Without a guess of the split the alternating projections find one.
    found = problem.dual_point(alpha, rounds=3000).bound(problem.gamma1, problem.gamma2)
    assert found == pytest.approx(optimum, rel=1e-3)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    gammas=st.sampled_from([(0.1, 0.1), (0.3, 0.02), (0.2, 0.0), (0.0, 0.2)]),
    factor=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_no_dual_point_is_worth_more_than_the_optimum_whatever_the_gammas(seed, gammas, factor):
    X, y, problem = posed_problem(seed, *gammas, n=15)
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(-0.5, 1.5, (3, 15)) * rng.choice([0.01, 1.0], (3, 1))
    V = rng.standard_normal((3, 12)) if rng.random() < 0.5 else None
    gamma1, gamma2 = factor * problem.gamma1, problem.gamma2 / factor
    optimum, _ = conic_optimum(X, y, WIDTHS, gamma1, gamma2)
    for point in (problem.dual_point(alpha, V), problem.null_dual_point()):
        assert 0 <= point.bound(gamma1, gamma2) <= optimum * (1 + 1e-6)
        # Where W = 0 is optimal, at gammas however large, the smaller sides alone count.
        zero = 2 * sum(min((sign > 0).sum(), (sign < 0).sum()) for sign in indicator(y).T)
        assert point.bound(1e9 * gamma1, 1e9 * gamma2) <= zero * (1 + 1e-12)


@pytest.mark.parametrize("gammas", [(0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.9, 0.4)])
def test_where_zero_is_the_solution_its_dual_point_proves_it(gammas):
    _, y, problem = posed_problem(3, *gammas)
    zero = problem.solution(np.zeros((3, 12)))
    smaller_sides = sum(min((sign > 0).sum(), (sign < 0).sum()) for sign in indicator(y).T)
    assert zero.objective(problem.gamma1, problem.gamma2) == 2 * smaller_sides
    assert problem.null_dual_point().bound(problem.gamma1, problem.gamma2) == pytest.approx(
        2 * smaller_sides
    )


def test_constant_features_are_zero_and_pose_no_problem():
    X, y, _ = posed_problem(4)
    X[::2, 6], X[1::2, 6] = 0.1, np.nextafter(0.1, 1.0)
    X[:, 2] = 1 / 3
    prepared = posed(X, y, WIDTHS, 0.1, 0.1).prepared
    assert not prepared.X[:, [2, 6]].any()
    assert np.isfinite(prepared.X).all()
    nothing = posed(np.ones((30, 12)), y, WIDTHS, 0.1, 0.1)
    assert nothing.is_zero_solution
    zero = nothing.solution(np.zeros((3, 12)))
    assert nothing.null_dual_point().bound(0.0, 0.0) == pytest.approx(zero.objective(0.0, 0.0))


@settings(max_examples=60)
@given(st.floats(0.0, 1e6), st.floats(0.0, 1.0), st.floats(0.0, 1e6))
def test_the_relative_gap_is_never_below_the_true_one(bound, share, room):
    objective = bound + room
    optimum = bound + share * room
    gap = relative_gap(objective, bound)
    assert gap >= 0
    if optimum > 0:
        assert gap >= (objective - optimum) / optimum * (1 - 1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**16), gammas=st.sampled_from([(0.1, 0.1), (0.3, 0.0), (0.0, 0.2)]))
def test_a_certificate_keeps_the_best_points_and_a_valid_gap(seed, gammas):
    X, y, problem = posed_problem(seed, *gammas, n=15)
    rng, certificate = np.random.default_rng(seed), Certificate(problem)
    optimum, W = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    values, bounds = [certificate.objective], [certificate.bound]
    for _ in range(12):
        near = (
            W
            * problem.prepared.column_units
            * (1 + rng.choice([1e-3, 0.3, 1.0]) * rng.standard_normal(W.shape))
        )
        solution, dual = problem.solution(near), problem.dual_point(rng.random((3, 15)))
        values.append(solution.objective(problem.gamma1, problem.gamma2))
        bounds.append(dual.bound(problem.gamma1, problem.gamma2))
        before = certificate.gap
        certificate.offer(solution)
        certificate.offer_dual(dual)
        assert (certificate.objective, certificate.bound) == (min(values), max(bounds))
        assert (certificate.objective - optimum) / optimum - 1e-7 <= certificate.gap <= before
    assert certificate.gap == pytest.approx((min(values) - max(bounds)) / max(bounds))
