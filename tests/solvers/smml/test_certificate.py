"""A certificate keeps the best of what it is offered, and its gap is never below the true one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smml_random import posed_problem
from smml_reference import conic_optimum, indicator

from raysel.solvers.smml.problem import Certificate, relative_gap

WIDTHS = (6, 1, 5)


@settings(max_examples=60)
@given(st.floats(0.0, 1e6), st.floats(0.0, 1.0), st.floats(0.0, 1e6))
def test_the_relative_gap_is_never_below_the_true_one(bound, share, room):
    objective = bound + room
    optimum = bound + share * room
    gap = relative_gap(objective, bound)
    assert gap >= 0
    if optimum > 0:
        assert gap >= (objective - optimum) / optimum * (1 - 1e-12)


def test_the_relative_gap_at_the_ends():
    assert relative_gap(3.0, 2.0) == 0.5
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1.0, 1.0 + 1e-12) == 0.0  # rounding may put the bound above
    assert relative_gap(1.0, 0.0) == np.inf


def test_it_begins_with_zero_and_what_is_known_of_zero():
    _, y, problem = posed_problem(0)
    certificate = Certificate(problem)
    assert not certificate.solution.W.any()
    assert certificate.objective == 2 * sum(min((sign > 0).sum(), (sign < 0).sum()) for sign in indicator(y).T)
    assert 0 < certificate.bound < certificate.objective


@settings(max_examples=15)
@given(seed=st.integers(0, 2**16), gammas=st.sampled_from([(0.1, 0.1), (0.3, 0.0), (0.0, 0.2)]))
def test_it_keeps_the_best_of_each_and_a_true_gap(seed, gammas):
    X, y, problem = posed_problem(seed, *gammas, n=15)
    rng, certificate = np.random.default_rng(seed), Certificate(problem)
    optimum, W = conic_optimum(X, y, WIDTHS, problem.gamma1, problem.gamma2)
    values, bounds = [certificate.objective], [certificate.bound]
    for _ in range(12):
        near = W * problem.prepared.column_units * (1 + rng.choice([1e-3, 0.3, 1.0]) * rng.standard_normal(W.shape))
        solution, dual = problem.solution(near), problem.dual_point(rng.random((3, 15)))
        values.append(solution.objective(problem.gamma1, problem.gamma2))
        bounds.append(dual.bound(problem.gamma1, problem.gamma2))
        before = certificate.gap
        certificate.offer(solution)
        certificate.offer_dual(dual)
        assert (certificate.objective, certificate.bound) == (min(values), max(bounds))
        assert (certificate.objective - optimum) / optimum - 1e-7 <= certificate.gap <= before
    assert certificate.gap == pytest.approx((min(values) - max(bounds)) / max(bounds))
