"""The ridge step of one factor against its dense normal equations."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.numerics import least_squares
from raysel.numerics.least_squares import inverse_cholesky, left_factors, orthonormal


def normal_equations(X, V, D, Y, alpha):
    """U of every class: min over vec(U_r) of ||<U_r V_r', X_i> - Y_ri||^2 + alpha sum D (U_r V_r')^2, written out."""
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
    monkeypatch.setattr(least_squares, "_BLOCK_BYTES", block_bytes)  # one class at a time, or all together
    X, V, D, Y = problem(m, m, n, n_samples, c, k)
    U = left_factors(X, V, D, Y, np.einsum("abi,ri->rab", X, Y), 0.7)
    np.testing.assert_allclose(U, normal_equations(X, V, D, Y, 0.7), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n_samples", [6, 50])
def test_transposed_arguments_give_the_other_factor(n_samples):
    X, _, D, Y = problem(1, 5, 4, n_samples, 3, 2)
    XY = np.einsum("abi,ri->rab", X, Y)
    U = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 5, 2)))[0]
    found = left_factors(X.transpose(1, 0, 2), U, D.T, Y, XY.transpose(0, 2, 1), 0.3)
    expected = normal_equations(np.ascontiguousarray(X.transpose(1, 0, 2)), U, D.T, Y, 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


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


def test_orthonormal_bases_span_the_columns():
    factor = np.random.default_rng(0).standard_normal((4, 6, 3))
    basis = orthonormal(factor)
    np.testing.assert_allclose(basis.transpose(0, 2, 1) @ basis, np.tile(np.eye(3), (4, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(basis @ (basis.transpose(0, 2, 1) @ factor), factor, atol=1e-12)
    factor[:, :, 1] = 0.0
    basis = orthonormal(factor)
    np.testing.assert_allclose(basis.transpose(0, 2, 1) @ basis, np.tile(np.eye(3), (4, 1, 1)), atol=1e-12)


def test_weights_beyond_double_precision_are_refused():
    X, V, D, Y = problem(0, 3, 3, 4, 2, 2)
    X[:, :, 1:] = X[:, :, :1]
    XY = np.einsum("abi,ri->rab", X, Y)
    with pytest.raises(np.linalg.LinAlgError, match="raise zeta, p or alpha"):
        left_factors(X, V, 1e-40 * D, Y, XY, 1e-3)
