"""The reduced training set keeps the loss of the raw one; LS21 descends to the optimum of a
conic solver.
"""

from __future__ import annotations

from itertools import islice, repeat

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics import least_squares
from raysel.numerics.least_squares import (
    inverse_cholesky,
    least_squares_data,
    left_factors,
    ls21_steps,
)
from raysel.numerics.reweighting import Penalty


def sample(seed, n_samples, n_features, n_classes=3):
    """Features of unlike means and sizes, one of them constant, and labels that they tell apart."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_samples - n_classes)])
    means = rng.standard_normal((n_classes, n_features))
    X = (means[y] + rng.standard_normal((n_samples, n_features))) * np.geomspace(
        0.1, 10.0, n_features
    ) + 3.0
    X[:, n_features // 2] = 0.1
    return X, np.array(["x", "y", "z", "u"])[y]


def centred(X, y):
    Y = (y[:, None] == np.unique(y)).astype(float)
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def penalised_loss(P, X, y, alpha, p, zeta):
    """The objective of coefficients of the raw features, with the best intercept."""
    Xc, Y = centred(X, y)
    return ((Xc @ P.T - Y) ** 2).sum() + alpha * (((P**2).sum(axis=0) + zeta) ** (p / 2)).sum()


@settings(max_examples=40)
@given(seed=st.integers(0, 2**16), n_samples=st.integers(4, 30), n_features=st.integers(2, 12))
def test_it_keeps_the_loss_of_any_coefficients(seed, n_samples, n_features):
    X, y = sample(seed, n_samples, n_features)
    data = least_squares_data(X, y)
    assert data.X.shape == (n_features, min(n_samples, n_features))
    P = np.random.default_rng(seed).standard_normal((3, n_features))
    own = ((P @ data.X - data.Y) ** 2).sum() + data.residual
    assert own == pytest.approx(penalised_loss(P / data.scale, X, y, 0.0, 1.0, 1.0), rel=1e-9)
    Xc, Y = centred(X, y)
    np.testing.assert_allclose(data.XY, Y.T @ Xc / data.scale, atol=1e-9)
    assert data.alpha_max == pytest.approx(2 * np.linalg.norm(Y.T @ Xc, axis=0).max())
    np.testing.assert_allclose(data.X_mean, X.mean(axis=0))
    np.testing.assert_allclose(data.Y_mean, [(y == name).mean() for name in data.classes])
    np.testing.assert_array_equal(data.constant, np.ptp(X, axis=0) == 0)
    assert data.constant[n_features // 2]
    assert not data.X[data.constant].any()


@pytest.mark.parametrize("p", [0.25, 0.5, 0.75, 1.0])
def test_the_unit_of_alpha_is_where_no_single_feature_is_worth_its_penalty(p):
    X, y = sample(3, 25, 12)
    data = least_squares_data(X * np.geomspace(1e-3, 1e3, 12), y)
    unit = data.penalty_unit(p)

    def largest_gain(alpha):
        """The largest fall of the loss less the penalty, over single features and the lengths of
        their coefficients.
        """
        gains = []
        for x, correlation in zip(data.X, np.linalg.norm(data.XY, axis=0), strict=True):
            if x.any():
                length = np.geomspace(1e-9, 2.0, 20001) * correlation / (x @ x)
                gains.append(
                    (2 * correlation * length - (x @ x) * length**2 - alpha * length**p).max()
                )
        return max(gains)

    assert largest_gain(0.999 * unit) > 0
    assert largest_gain(1.001 * unit) < 0


def test_the_unit_of_coefficients_is_half_of_the_least_squares_coefficients_of_one_feature():
    X, y = sample(1, 20, 1)
    X[:, 0] = np.random.default_rng(0).standard_normal(20)
    data = least_squares_data(X, y)
    Xc, Y = centred(X, y)
    coefficients = np.linalg.lstsq(Xc, Y)[0]
    assert data.coefficient_unit() / data.scale == pytest.approx(np.linalg.norm(coefficients) / 2)
    constant = least_squares_data(np.ones((4, 2)), np.array([0, 0, 1, 1]))
    assert (constant.penalty_unit(0.5), constant.coefficient_unit(), constant.scale) == (
        0.0,
        1.0,
        1.0,
    )


@pytest.mark.parametrize("n_samples", [10, 40])
@pytest.mark.parametrize("share", [0.05, 0.4, 1.02])
def test_ls21_ends_at_the_optimum_of_a_conic_solver(n_samples, share):
    X, y = sample(4, n_samples, 15)
    data = least_squares_data(X, y)
    alpha = share * data.alpha_max
    steps = ls21_steps(data, np.ones(15), repeat(Penalty(alpha / data.scale, 1.0, 1e-14)))
    P = next(islice(steps, 2000, None)) / data.scale
    Xc, Y = centred(X, y)
    Q = cp.Variable((3, 15))
    optimum = cp.sum_squares(Xc @ Q.T - Y) + alpha * cp.sum(cp.norm(Q, 2, axis=0))
    value = cp.Problem(cp.Minimize(optimum)).solve(cp.CLARABEL)
    assert penalised_loss(P, X, y, alpha, 1.0, 0.0) == pytest.approx(value, rel=1e-4)
    np.testing.assert_allclose(P, Q.value, atol=1e-3 * max(1e-2, np.abs(Q.value).max()))


@pytest.mark.parametrize("p", [1.0, 0.5, 0.25])
@pytest.mark.parametrize("n_samples", [8, 60])
def test_ls21_steps_never_raise_the_objective(p, n_samples):
    X, y = sample(5, n_samples, 12)
    data = least_squares_data(X, y)
    alpha, p, zeta = Penalty(0.05 * data.penalty_unit(p), p, 1e-8)
    path = [
        penalised_loss(P / data.scale, X, y, alpha * data.scale**p, p, zeta / data.scale**2)
        for P in islice(ls21_steps(data, np.ones(12), repeat(Penalty(alpha, p, zeta))), 40)
    ]
    assert np.all(np.diff(path) <= 1e-10 * np.array(path[1:]))
    assert path[-1] < 0.999 * path[0]


def test_the_first_step_is_the_ridge_regression_of_the_given_weights():
    X, y = sample(6, 20, 7)
    data, weights = least_squares_data(X, y), np.linspace(0.5, 3.0, 7)
    P = next(ls21_steps(data, weights, [Penalty(0.8, 0.5, 1e-3)])) / data.scale
    Xc, Y = centred(X, y)
    expected = np.linalg.solve(Xc.T @ Xc + 0.8 * data.scale**2 * np.diag(weights), Xc.T @ Y).T
    np.testing.assert_allclose(P, expected, rtol=1e-8, atol=1e-12)


def normal_equations(X, V, D, Y, alpha):
    """U of every class: min over vec(U_r) of ||<U_r V_r', X_i> - Y_ri||^2 + alpha sum D (U_r
    V_r')^2, written out.
    """
    m, n, _ = X.shape
    factors = []
    for V_r, y in zip(V, Y, strict=True):
        k = V_r.shape[1]
        # Row a of U_r V_r' is V_r U_r[a]: the design matrix and the penalty of all entries of U_r.
        lift = np.kron(np.eye(m), V_r)  # (m n, m k): U_r.ravel() to (U_r V_r').ravel()
        design = X.reshape(m * n, -1).T @ lift
        matrix = design.T @ design + alpha * lift.T @ (D.ravel()[:, None] * lift)
        factors.append(np.linalg.solve(matrix, design.T @ y).reshape(m, k))
    return np.array(factors)


def problem(seed, m, n, n_samples, c, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n, n_samples))
    V = np.linalg.qr(rng.standard_normal((c, n, k)))[0]
    return X, V, rng.uniform(0.01, 5.0, (m, n)), rng.standard_normal((c, n_samples))


@pytest.mark.parametrize("block_bytes", [1, 1 << 21])
@pytest.mark.parametrize(
    ("m", "n", "n_samples", "c", "k"),
    [
        pytest.param(5, 4, 60, 3, 2, id="primal"),
        pytest.param(7, 6, 9, 4, 3, id="dual"),
        pytest.param(4, 6, 8, 2, 2, id="as many samples as coefficients"),
        pytest.param(3, 5, 20, 3, 5, id="full rank"),
        pytest.param(8, 1, 5, 3, 1, id="vectors"),
    ],
)
def test_factors_solve_the_normal_equations(m, n, n_samples, c, k, block_bytes, monkeypatch):
    monkeypatch.setattr(
        least_squares, "_BLOCK_BYTES", block_bytes
    )  # one class at a time, or all together
    X, V, D, Y = problem(m, m, n, n_samples, c, k)
    U = left_factors(X, V, D, Y, np.einsum("abi,ri->rab", X, Y), 0.7)
    np.testing.assert_allclose(U, normal_equations(X, V, D, Y, 0.7), rtol=1e-8, atol=1e-10)


def test_batched_inverse_cholesky_is_the_inverse_of_the_factor():
    factors = np.random.default_rng(0).standard_normal((7, 7, 50))
    A = np.einsum("ijb,kjb->ikb", factors, factors) + 0.1 * np.eye(7)[:, :, None]
    expected = np.linalg.inv(np.linalg.cholesky(A.transpose(2, 0, 1))).transpose(1, 2, 0)
    M = inverse_cholesky(A.copy())
    np.testing.assert_allclose(M, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(M[np.triu_indices(7, 1)], 0)


def test_a_numerically_singular_matrix_has_a_finite_inverse_factor():
    v = np.array([1.0, 1 / 3, 0.1])
    assert np.isfinite(inverse_cholesky(np.outer(v, v)[:, :, None])).all()


def test_weights_beyond_double_precision_are_refused():
    X, V, D, Y = problem(0, 3, 3, 4, 2, 2)
    X[:, :, 1:] = X[:, :, :1]
    XY = np.einsum("abi,ri->rab", X, Y)
    with pytest.raises(np.linalg.LinAlgError):
        left_factors(X, V, 1e-40 * D, Y, XY, 1e-3)
