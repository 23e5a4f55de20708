"""Regression with l2,1 loss and penalty against a conic solver, scikit-feature and its own dual
problem.
"""

from __future__ import annotations

from itertools import islice

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from skfeature.function.sparse_learning_based.RFS import rfs as scikit_feature
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from raysel.baselines.rfs import RFS, l21_steps, null_model


def problem(seed, n, d, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d))
    return (X - X.mean(axis=0)) / 4.0, np.eye(classes)[y], y


def nth(steps, n):
    *_, last = islice(steps, n)
    return last


def objective(X, T, W, b, alpha):
    return np.linalg.norm(X @ W + b - T, axis=1).sum() + alpha * np.linalg.norm(W, axis=1).sum()


@settings(max_examples=3)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(12, 20), (24, 7)]),
    alpha=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_optimum_is_that_of_a_conic_solver(seed, size, alpha):
    X, T, _ = problem(seed, *size)
    W, b = cp.Variable((size[1], 3)), cp.Variable((1, 3))
    loss = cp.sum(cp.norm(X @ W + np.ones((size[0], 1)) @ b - T, axis=1))
    conic = cp.Problem(cp.Minimize(loss + alpha * cp.sum(cp.norm(W, axis=1))))
    conic.solve(solver=cp.CLARABEL)
    step = nth(l21_steps(X, T, alpha), 2000)
    smoothing = 1e-6 * size[0]  # of residuals that are zero
    assert pytest.approx(conic.value, rel=1e-5, abs=smoothing) == step.J
    assert objective(X, T, step.W, step.b, alpha) == pytest.approx(step.J, rel=1e-6, abs=smoothing)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(6, 20),
    d=st.integers(1, 20),
    alpha=st.sampled_from([1e-3, 0.1, 1.0, 5.0]),
)
def test_the_objective_never_rises(seed, n, d, alpha):
    X, T, _ = problem(seed, n, d)
    path = np.array([step.J for step in islice(l21_steps(X, T, alpha), 60)])
    assert (
        np.diff(path) <= 1e-10 * len(X)
    ).all()  # where X W can be T, J falls far below the loss of W = 0


def test_both_systems_give_the_same_iterations():
    X, T, _ = problem(1, 20, 8)
    wide = np.hstack([X, np.zeros((20, 30))])  # solved by the system of n_samples equations
    steps = list(islice(zip(l21_steps(X, T, 0.3), l21_steps(wide, T, 0.3), strict=True), 200))
    # Between the first ones and the optimum they differ by what is extrapolated from the norms of
    # zeros.
    for narrow, padded in [*steps[:2], steps[-1]]:
        np.testing.assert_allclose(padded.W[:8], narrow.W, atol=1e-8)
        np.testing.assert_allclose(padded.b, narrow.b, atol=1e-8)
        assert not padded.W[8:].any()


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), size=st.sampled_from([(20, 30), (24, 15)]))
def test_without_an_intercept_it_is_scikit_features_program(seed, size):
    # Samples with their mirror images have the intercept 0, and twice the loss.
    X, T, y = problem(seed, *size)
    theirs = scikit_feature(X, y, mode="raw", gamma=1.0)
    signs = 2.0 * T - 1.0
    ours = [
        step.W
        for step in islice(l21_steps(np.vstack([X, -X]), np.vstack([signs, -signs]), 2.0), 500)
    ]
    reached = objective(X, signs, theirs, 0.0, 1.0)
    assert objective(X, signs, ours[-1], 0.0, 1.0) <= reached
    # Theirs stops where an iteration lowers it by less than 0.001.
    assert reached == pytest.approx(objective(X, signs, ours[-1], 0.0, 1.0), rel=2e-3)
    assert np.abs(ours[-1] - theirs).max() <= 0.3 * np.abs(theirs).max()


@pytest.mark.parametrize(("data", "alpha"), [("orl_images", 1.5), ("usps_images", 5.0)])
def test_the_dual_problem_proves_the_optimum_on_real_data(request, data, alpha):
    X, y, _ = request.getfixturevalue(data)
    X, T = X - X.mean(axis=0), np.eye(y.max() + 1)[y]
    step = nth(l21_steps(X, T, alpha), 150)
    # Any Z with rows within the unit ball, sum 0 and ||X_j'Z|| <= alpha bounds J from below by <Z,
    # T>.
    residuals = T - X @ step.W - step.b
    Z = residuals / np.sqrt((residuals**2).sum(axis=1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(Z.sum(axis=0), 0.0, atol=1e-3)
    Z -= Z.mean(axis=0)
    Z /= max(1.0, np.linalg.norm(Z, axis=1).max(), np.linalg.norm(X.T @ Z, axis=1).max() / alpha)
    bound = (Z * T).sum()
    assert bound <= step.J <= 1.01 * bound


@settings(max_examples=25)
@given(counts=st.lists(st.integers(1, 12), min_size=2, max_size=6))
def test_the_null_model_is_the_spatial_median(counts):
    counts = np.array(counts)
    targets = np.eye(len(counts))
    b, gradients = null_model(counts)

    def distance(point):
        return counts @ np.linalg.norm(point - targets, axis=1)

    found = minimize(
        distance,
        counts / counts.sum(),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    )
    assert distance(b) <= found.fun + 1e-9
    np.testing.assert_allclose(counts @ gradients, 0.0, atol=1e-10)
    assert np.linalg.norm(gradients, axis=1).max() <= 1 + 1e-12
    # A subgradient: ||z - t|| >= ||b - t|| + g'(z - b) for every z.
    for point in np.random.default_rng(0).standard_normal((20, len(counts))):
        bound = np.linalg.norm(b - targets, axis=1) + gradients @ (point - b)
        assert (np.linalg.norm(point - targets, axis=1) >= bound - 1e-9).all()


def samples(counts, d=15, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return rng.standard_normal((len(counts), d))[y] + rng.standard_normal((len(y), d)), y


@pytest.mark.parametrize("counts", [(4, 6, 9, 7), (6, 6)])
def test_alpha_max_is_where_the_solution_becomes_zero(counts):
    X, y = samples(counts)
    prepared = RFS().prepare(X, y)
    T = np.eye(len(counts))[y]
    null = np.linalg.norm(T - prepared.null_intercept, axis=1).sum()
    below, above = (
        next(islice(l21_steps(X - X.mean(axis=0), T, share * prepared.alpha_max), 1500, None))
        for share in (0.98, 1.02)
    )
    assert null * (1 - 1e-6) > below.J
    assert np.linalg.norm(below.W, axis=1).max() > 1e-4
    assert pytest.approx(null, rel=1e-9) == above.J
    assert np.linalg.norm(above.W, axis=1).max() < 1e-7
    assert not RFS(0.98).is_zero_solution(prepared)
    assert RFS(1.02).is_zero_solution(prepared)
    assert RFS(1.02 * prepared.alpha_max, "absolute").is_zero_solution(prepared)
    assert not RFS(0.98 * prepared.alpha_max, "absolute").is_zero_solution(prepared)


def test_where_one_class_has_most_samples_alpha_max_is_a_bound():
    X, y = samples((20, 4, 3))
    zero = RFS(1.0).fit(X, y)
    assert not zero.scores_.any()
    np.testing.assert_array_equal(zero.predict(X), 0)
    prepared = RFS().prepare(X, y)
    iterated = next(
        islice(l21_steps(X - X.mean(axis=0), np.eye(3)[y], prepared.alpha_max), 1000, None)
    )
    assert pytest.approx(zero.objective_path_[0], rel=1e-6) == iterated.J


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
def test_a_factor_of_the_features_changes_no_ranking(factor):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    tight = {"tol": 1e-12, "max_iter": 3000}
    plain, scaled = RFS(**tight).fit(X, y), RFS(**tight).fit(factor * X, y)
    np.testing.assert_allclose(
        scaled.scores_ * factor, plain.scores_, atol=1e-5 * plain.scores_.max()
    )
    np.testing.assert_array_equal(scaled.predict(factor * X), plain.predict(X))


def test_the_objective_is_that_of_the_fitted_coefficients():
    X, y = samples((10, 12, 8), d=6)
    rfs = RFS(0.7, "absolute").fit(X + 100.0, y)
    residuals = (X + 100.0) @ rfs.coef_.T + rfs.intercept_ - np.eye(3)[y]
    value = np.linalg.norm(residuals, axis=1).sum() + 0.7 * rfs.scores_.sum()
    smoothing = 1e-6 * len(X)  # of residuals that are zero
    assert value == pytest.approx(rfs.objective_path_[-1], rel=1e-8, abs=smoothing)
