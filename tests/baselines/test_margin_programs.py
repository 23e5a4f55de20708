"""Cutting planes against the whole program and a conic solver, and their linear programs against duality."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import soft_margin

from raysel.baselines import margin_programs
from raysel.baselines.margin_programs import highest_point, shared_weights, solve_program


def random_scores(seed, n_classifiers=4, n_classes=3, n=30):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    signs = np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
    return signs + rng.standard_normal((n_classifiers, n_classes, n)), codes


def conic(scores, codes, nu, shared):
    K, c, n = scores.shape
    B = cp.Variable((K, 1 if shared else c), nonneg=True)
    total = [[cp.sum(cp.multiply(B[:, 0 if shared else j], scores[:, j, i])) for j in range(c)] for i in range(n)]
    rho, xi = cp.Variable(), cp.Variable(n, nonneg=True)
    constraints = [total[i][codes[i]] - total[i][j] + xi[i] >= rho for i in range(n) for j in range(c) if j != codes[i]]
    problem = cp.Problem(cp.Minimize(-rho + cp.sum(xi) / (nu * n)), [*constraints, cp.sum(B, axis=0) == 1])
    return problem.solve("CLARABEL")


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 0.33, 0.5, 0.95, 1.0]), st.integers(2, 4))
def test_cutting_planes_find_the_optimum_of_the_whole_program(seed, nu, n_classes):
    scores, codes = random_scores(seed, n_classes=n_classes)
    weights, margin = shared_weights(scores, codes, nu)
    whole, value = solve_program(scores, codes, nu, shared=True)
    np.testing.assert_allclose(margin, -value, atol=1e-6)
    np.testing.assert_allclose(soft_margin(scores, codes, nu, weights[:, None]), margin, atol=1e-9)
    np.testing.assert_allclose(soft_margin(scores, codes, nu, whole), -value, atol=1e-6)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(), 1)


@pytest.mark.parametrize("shared", [True, False])
def test_the_whole_program_has_the_optimum_of_a_conic_solver(shared):
    scores, codes = random_scores(1, n=15)
    weights, value = solve_program(scores, codes, 0.3, shared=shared)
    np.testing.assert_allclose(value, conic(scores, codes, 0.3, shared), atol=1e-6)
    np.testing.assert_allclose(soft_margin(scores, codes, 0.3, weights), -value, atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=0), 1)


def test_the_weights_are_those_of_the_whole_program_where_they_are_unique():
    scores, codes = random_scores(2, n=300)
    for nu in (0.1, 0.5, 0.95):
        whole, _ = solve_program(scores, codes, nu, shared=True)
        np.testing.assert_allclose(shared_weights(scores, codes, nu)[0], whole[:, 0], atol=1e-5)


def test_too_many_cutting_planes_give_way_to_the_whole_program(monkeypatch):
    scores, codes = random_scores(3)
    expected, margin = shared_weights(scores, codes, 0.3)
    monkeypatch.setattr(margin_programs, "_MOST_CUTS", 1)
    found, whole = shared_weights(scores, codes, 0.3)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(whole, margin, atol=1e-6)


def test_below_one_sample_the_smallest_margin_is_maximised():
    scores, codes = random_scores(4, n_classifiers=2)
    _, margin = shared_weights(scores, codes, 0.001)
    grid = [soft_margin(scores, codes, 1 / 30, np.array([[t], [1 - t]])) for t in np.linspace(0, 1, 2001)]
    np.testing.assert_allclose(margin, max(grid), atol=2e-3)
    np.testing.assert_allclose(margin, shared_weights(scores, codes, 1 / 30)[1], atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_the_highest_point_is_proved_by_its_shares(seed, n_cuts, n_weights):
    """No weights exceed the largest coefficient of any mean of the functions, and this one is attained."""
    cuts = np.random.default_rng(seed).uniform(-1, 1, (n_cuts, n_weights))
    weights, maximum, shares = highest_point(cuts)
    for found in (weights, shares):
        assert found.min() >= 0
        np.testing.assert_allclose(found.sum(), 1)
    np.testing.assert_allclose((cuts @ weights).min(), maximum, atol=1e-8)
    np.testing.assert_allclose((shares @ cuts).max(), maximum, atol=1e-8)


def test_the_highest_point_of_two_lines_is_their_crossing():
    weights, maximum, _ = highest_point(np.array([[1.0, 0.0], [0.0, 3.0]]))
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-9)
    assert maximum == pytest.approx(0.75)
