"""Anderson acceleration against the least-squares formula and GMRES, and its safeguard."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import gmres

from raysel.numerics import reweighting
from raysel.numerics.reweighting import (
    AndersonAccelerator,
    l2p_penalty,
    l2p_weights,
    weighted_ridge,
)


def affine(rng, size, radius):
    """M and c of the iteration x -> M x + c; M is symmetric with eigenvalues from 0 to the
    radius.
    """
    Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return (Q * np.linspace(0.0, radius, size)) @ Q.T, rng.standard_normal(size)


@pytest.mark.parametrize("memory", [2, 3, 10])
def test_a_step_combines_the_remembered_steps_of_least_residual(memory):
    rng = np.random.default_rng(memory)
    M, c = affine(rng, 12, 0.9)
    x, mixing, points, residuals = np.zeros(12), AndersonAccelerator(12, memory), [], []
    for n_steps in range(1, 9):
        points.append(x)
        residuals.append(M @ x + c - x)
        x = mixing.next(points[-1], residuals[-1])
        if n_steps < 3:
            expected = points[-1] + residuals[-1]
        else:
            # Walker & Ni: the affine combination of the last images whose residuals combine to the
            # least
            F = np.array(residuals[-(memory + 1) :]).T
            G = np.array(points[-(memory + 1) :]).T + F
            theta = np.linalg.lstsq(np.diff(F), F[:, -1])[0]
            expected = G[:, -1] - np.diff(G) @ theta
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), radius=st.floats(0.5, 0.95))
def test_on_an_affine_iteration_it_is_gmres_and_a_step(seed, radius):
    M, c = affine(np.random.default_rng(seed), 10, radius)
    x, mixing = np.zeros(10), AndersonAccelerator(10)
    for n_steps in range(7):
        residual = M @ x + c - x
        if n_steps > 2:
            krylov, _ = gmres(np.eye(10) - M, c, rtol=0.0, atol=0.0, restart=n_steps - 1, maxiter=1)
            expected = np.linalg.norm(M @ (c - krylov + M @ krylov))
            assert np.linalg.norm(residual) == pytest.approx(
                expected, rel=1e-2, abs=1e-6 * np.linalg.norm(c)
            )
        x = mixing.next(x, residual)


def test_a_point_that_more_than_doubles_the_residual_is_taken_back():
    M, c = affine(np.random.default_rng(0), 6, 0.9)
    x, mixing = np.zeros(6), AndersonAccelerator(6)
    for _ in range(4):
        point, residual = x, M @ x + c - x
        x = mixing.next(point, residual)
    assert np.abs(x - (point + residual)).max() > 1e-3  # it is extrapolated
    np.testing.assert_array_equal(mixing.next(x, 2.1 * residual), point + residual)
    # Everything is forgotten: two plain steps follow, and no step can be taken back before another
    # extrapolation.
    for factor in (1.0, 10.0):
        np.testing.assert_array_equal(mixing.next(x, factor * residual), x + factor * residual)


def test_restart_forgets():
    M, c = affine(np.random.default_rng(1), 6, 0.9)
    used, fresh = AndersonAccelerator(6, 3), AndersonAccelerator(6, 3)
    x = np.ones(6)
    for _ in range(5):
        x = used.next(x, M @ x + c - x)
    used.restart()
    one = other = x
    for _ in range(5):
        one, other = (
            used.next(one, c - one + M.T @ one / 2),
            fresh.next(other, c - other + M.T @ other / 2),
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(4))
def test_an_averaged_iteration_that_is_not_smooth_still_converges(seed):
    # Proximal gradient steps on a lasso; its fixed points are the lasso's optima.
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((15, 30)), rng.standard_normal(15)
    step, penalty = 1.0 / np.linalg.norm(A, 2) ** 2, 0.3 * np.abs(A.T @ b).max()

    def following(x):
        moved = x - step * A.T @ (A @ x - b)
        return np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0.0)

    x, mixing = 3.0 * rng.standard_normal(30), AndersonAccelerator(30)
    for _ in range(400):
        x = mixing.next(x, following(x) - x)
    x = following(x)
    gradient = A.T @ (A @ x - b)
    np.testing.assert_allclose(gradient[x != 0], -penalty * np.sign(x[x != 0]), atol=1e-6 * penalty)
    assert np.abs(gradient).max() <= penalty * (1 + 1e-6)


EXPONENTS = st.floats(0.1, 2.0)
SMOOTHINGS = st.floats(1e-6, 1.0)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**16), p=EXPONENTS, zeta=SMOOTHINGS)
def test_the_ridge_penalty_of_the_weights_touches_the_l2p_penalty_from_above(seed, p, zeta):
    rng = np.random.default_rng(seed)
    now, other = rng.exponential(size=(2, 7)) * rng.choice([0.0, 0.01, 1.0, 100.0], (2, 7))
    weights = l2p_weights(now, p, zeta)
    tangent = l2p_penalty(now, p, zeta) + weights @ (other - now)
    assert l2p_penalty(other, p, zeta) <= tangent * (1 + 1e-12)
    # A tangent, not just a bound: near the point both agree to the second order.
    near = now + 1e-5 * (now + zeta)
    first_order = weights @ (near - now)
    assert l2p_penalty(near, p, zeta) - l2p_penalty(now, p, zeta) == pytest.approx(
        first_order, rel=1e-3
    )


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), p=EXPONENTS)
def test_the_penalty_is_the_sum_of_powers_of_norms(seed, p):
    coefficients = np.random.default_rng(seed).standard_normal((3, 5))
    energy, zeta = (coefficients**2).sum(axis=0), 1e-3
    padded = np.vstack([coefficients, np.full(5, np.sqrt(zeta))])
    assert l2p_penalty(energy, p, zeta) == pytest.approx(
        (np.linalg.norm(padded, axis=0) ** p).sum()
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    d=st.integers(1, 12),
    n=st.integers(1, 12),
    alpha=st.floats(1e-3, 10.0),
)
def test_the_ridge_step_solves_its_normal_equations(seed, d, n, alpha):
    rng = np.random.default_rng(seed)
    X, Y, weights = (
        rng.standard_normal((d, n)),
        rng.standard_normal((3, n)),
        rng.uniform(0.1, 10.0, d),
    )
    kept = X.copy(), Y.copy()
    expected = np.linalg.solve(X @ X.T + alpha * np.diag(weights), X @ Y.T).T
    np.testing.assert_allclose(weighted_ridge(X, Y, weights, alpha), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(Y, kept[1])


def test_a_large_ridge_regression_holds_no_copy_of_its_samples_and_is_that_of_one_block(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    X, Y, weights = (
        rng.normal(size=(9000, 500)),
        rng.normal(size=(3, 500)),
        rng.uniform(0.1, 10.0, 9000),
    )
    tracemalloc.start()
    W, dual = reweighting.weighted_ridge_with_dual(X, Y, weights, 0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes  # a copy would be 1
    monkeypatch.setattr(reweighting, "_LARGE", X.size)
    for by_blocks, of_one in zip(
        (W, dual), reweighting.weighted_ridge_with_dual(X, Y, weights, 0.5), strict=True
    ):
        np.testing.assert_allclose(by_blocks, of_one, rtol=0, atol=1e-11 * np.abs(of_one).max())


def test_a_feature_of_huge_weight_drops_out():
    rng = np.random.default_rng(0)
    X, Y, weights = rng.standard_normal((6, 9)), rng.standard_normal((2, 9)), np.ones(6)
    weights[[1, 4]] = 1e200
    W = weighted_ridge(X, Y, weights, 0.5)
    rest = np.delete(np.arange(6), [1, 4])
    assert np.abs(W[:, [1, 4]]).max() < 1e-150
    np.testing.assert_allclose(W[:, rest], weighted_ridge(X[rest], Y, np.ones(4), 0.5), rtol=1e-10)


def test_weights_beyond_double_precision_are_refused():
    X = np.ones((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="raise zeta, p or alpha"):
        weighted_ridge(X, X, np.array([1e-200, 1e-200]), 1e-3)
