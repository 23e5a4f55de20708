"""The losses' intercepts, gradients and bounds, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from raysel.solvers.losses import LogisticLoss, MultinomialLoss, SquaredLoss

N, K = 12, 3


def make(name, rng):
    """A loss of targets, and its definition for fits with their intercepts."""
    if name == "squared":
        Y = rng.normal(size=(N, K))
        Y -= Y.mean(axis=0)
        return SquaredLoss(Y), lambda Z: ((Y - Z) ** 2).sum() / (2 * N)
    if name == "logistic":
        Y = np.where(rng.permuted(np.arange(N)[:, None] + np.zeros(K), axis=0) < 5, 1.0, -1.0)
        return LogisticLoss(Y), lambda Z: np.logaddexp(0, -Y * Z).sum() / N
    Y = np.eye(K)[rng.permutation(N) % K]
    return MultinomialLoss(Y), lambda Z: -(Y * log_softmax(Z, axis=1)).sum() / N


NAMES = pytest.mark.parametrize("name", ["squared", "logistic", "multinomial"])


@NAMES
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 30))
def test_the_intercepts_are_the_best(name, seed, size):
    rng = np.random.default_rng(seed)
    loss, defined = make(name, rng)
    Z = size * rng.normal(size=(N, K))
    Z -= Z.mean(axis=0)
    values, b = loss.values(Z)
    assert values.sum() == pytest.approx(defined(Z + b), rel=1e-9, abs=1e-12)
    # A convex loss is smallest where its slope along each intercept is 0.
    assert np.abs(loss.gradient(Z + b).sum(axis=0)).max() < 1e-11


@NAMES
def test_the_gradient_is_that_of_the_definition(name):
    rng = np.random.default_rng(0)
    loss, defined = make(name, rng)
    Z = rng.normal(size=(N, K))
    slopes = approx_fprime(Z.ravel(), lambda z: defined(z.reshape(N, K)), 1e-7)
    np.testing.assert_allclose(loss.gradient(Z).ravel(), slopes, atol=1e-6)


@NAMES
@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0.01, 30))
def test_a_dual_point_bounds_the_loss_of_any_fits(name, seed, scale, size):
    rng = np.random.default_rng(seed)
    loss, defined = make(name, rng)
    Z = size * rng.normal(size=(N, K))
    theta = scale * loss.balance(-loss.gradient(Z + loss.values(Z)[1]))
    bound = loss.bounds(theta).sum()
    for _ in range(10):
        other, b = size * rng.normal(size=(N, K)), size * rng.normal(size=K)
        assert bound - np.vdot(theta, other) <= defined(other + b) + 1e-9 * size
