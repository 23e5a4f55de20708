"""The smoothed l2,p penalty and its weights against derivatives, the ridge step against its normal equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics.reweighting import l2p_penalty, l2p_weights, weighted_ridge

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
    assert l2p_penalty(near, p, zeta) - l2p_penalty(now, p, zeta) == pytest.approx(first_order, rel=1e-3)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), p=EXPONENTS)
def test_the_penalty_is_the_sum_of_powers_of_norms(seed, p):
    coefficients = np.random.default_rng(seed).standard_normal((3, 5))
    energy, zeta = (coefficients**2).sum(axis=0), 1e-3
    padded = np.vstack([coefficients, np.full(5, np.sqrt(zeta))])
    assert l2p_penalty(energy, p, zeta) == pytest.approx((np.linalg.norm(padded, axis=0) ** p).sum())


@settings(max_examples=40)
@given(seed=st.integers(0, 2**16), d=st.integers(1, 12), n=st.integers(1, 12), alpha=st.floats(1e-3, 10.0))
def test_the_ridge_step_solves_its_normal_equations(seed, d, n, alpha):
    rng = np.random.default_rng(seed)
    X, Y, weights = rng.standard_normal((d, n)), rng.standard_normal((3, n)), rng.uniform(0.1, 10.0, d)
    kept = X.copy(), Y.copy()
    expected = np.linalg.solve(X @ X.T + alpha * np.diag(weights), X @ Y.T).T
    np.testing.assert_allclose(weighted_ridge(X, Y, weights, alpha), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(Y, kept[1])


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
