"""The regressors of quantities against other programs: literal forms, scikit-learn, and convex
solvers.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, MultiTaskLasso, Ridge
from sklearn.preprocessing import StandardScaler, scale

from raysel.baselines.glspfs import GLSPFSRegressor
from raysel.baselines.least_squares import BilinearRegressor, MLLSRegressor
from raysel.baselines.rfs import RFSRegressor, spatial_median
from raysel.solvers.smr.smr import SMRRegressor


def problem(seed, n, shape, quantities):
    """Matrices, and quantities of different units that are linear in them."""
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, *shape))
    coefficients = rng.standard_normal((quantities, *shape)) * (rng.random(shape) < 0.4)
    y = np.tensordot(images, coefficients, axes=([1, 2], [1, 2])) + rng.standard_normal(
        (n, quantities)
    )
    return images, 40.0 + 10.0 ** np.arange(quantities) * y


def literal_smr(images, Y, V, D, alpha, p, zeta, iterations):
    """The paper's iterations by Kronecker matrices for any centred targets Y (n, c); returns P
    of each quantity.
    """
    n_samples = len(images)
    centring = np.eye(n_samples) - 1 / n_samples

    def other(samples, known, D):
        rows = samples.shape[1]
        vectors = np.array([sample.ravel(order="F") for sample in samples]).T
        factors = []
        for r, factor in enumerate(known):
            lift = np.kron(factor.T, np.eye(rows))
            F = lift @ vectors
            A = lift @ np.diag(D.ravel(order="F")) @ np.kron(factor, np.eye(rows))
            u = np.linalg.solve(F @ centring @ F.T + alpha * A, F @ centring @ Y[:, r])
            factors.append(u.reshape(rows, factor.shape[1], order="F"))
        return factors

    for _ in range(iterations):
        V = [np.linalg.qr(v)[0] for v in V]
        U = other(images, V, D)
        D = p / 2 * (sum((u @ v.T) ** 2 for u, v in zip(U, V, strict=True)) + zeta) ** (p / 2 - 1)
        U = [np.linalg.qr(u)[0] for u in U]
        V = other(images.transpose(0, 2, 1), U, D.T)
        P = np.array([u @ v.T for u, v in zip(U, V, strict=True)])
        D = p / 2 * ((P**2).sum(axis=0) + zeta) ** (p / 2 - 1)
    return P


@pytest.mark.parametrize(
    ("n", "quantities", "rank", "p"), [(30, 1, 2, 1.0), (30, 3, 2, 0.5), (9, 2, 1, 1.0)]
)
def test_smr_equals_its_literal_form(n, quantities, rank, p):
    images, Y = problem(0, n, (4, 3), quantities)
    X = images.reshape(n, -1)
    y = Y[:, 0] if quantities == 1 else Y
    smr = SMRRegressor((4, 3), 0.7, rank, p, 1e-6, "identity", "absolute", max_iter=6, tol=0).fit(
        X, y
    )
    targets = scale(Y)
    start = [np.eye(3, rank)] * quantities
    P = literal_smr(images, targets, start, np.ones((4, 3)), 0.7, p, 1e-6, 6).reshape(
        quantities, -1
    )
    coef = P * Y.std(axis=0)[:, None]
    np.testing.assert_allclose(
        smr.coef_.reshape(quantities, -1), coef, atol=1e-10 * np.abs(coef).max()
    )
    np.testing.assert_allclose(smr.scores_, np.linalg.norm(P, axis=0), rtol=1e-10)
    expected = (X - X.mean(axis=0)) @ coef.T + Y.mean(axis=0)
    np.testing.assert_allclose(smr.predict(X).reshape(n, -1), expected, rtol=1e-10)


@pytest.mark.parametrize("quantities", [1, 3])
def test_smr_of_plain_columns_is_scikit_learn_s_lasso_and_multi_task_lasso(quantities):
    images, Y = problem(1, 50, (6, 2), quantities)
    X, targets = images.reshape(50, -1), scale(Y)
    alpha = 8.0 if quantities == 1 else 25.0
    y = Y[:, 0] if quantities == 1 else Y
    smr = SMRRegressor(
        alpha=alpha, zeta=1e-14, alpha_scale="absolute", max_iter=3000, tol=1e-12
    ).fit(X, y)
    lasso = Lasso if quantities == 1 else MultiTaskLasso
    other = lasso(alpha=alpha / 100, tol=1e-12, max_iter=100_000).fit(
        X, targets[:, 0] if quantities == 1 else targets
    )
    rows = other.coef_.reshape(quantities, -1)
    assert 2 < (rows != 0).any(axis=0).sum() < 12
    np.testing.assert_allclose(smr.scores_, np.linalg.norm(rows, axis=0), atol=1e-5)
    np.testing.assert_allclose(
        smr.coef_.reshape(quantities, -1), rows * Y.std(axis=0)[:, None], atol=1e-5 * Y.std()
    )


@pytest.mark.parametrize(("n", "quantities"), [(40, 1), (40, 2), (10, 2)])
@pytest.mark.parametrize("alpha_scale", ["max", "absolute"])
def test_rfs_reaches_the_optimum_of_a_convex_solver(n, quantities, alpha_scale):
    images, Y = problem(2, n, (5, 3), quantities)
    X, targets = images.reshape(n, -1), scale(Y)
    y = Y[:, 0] if quantities == 1 else Y
    rfs = RFSRegressor(
        0.3 if alpha_scale == "max" else 3.0, alpha_scale, max_iter=3000, tol=1e-8
    ).fit(X, y)
    _, gradients = spatial_median(targets)
    centred = X - X.mean(axis=0)
    alpha = (
        0.3 * np.linalg.norm(centred.T @ gradients, axis=1).max() if alpha_scale == "max" else 3.0
    )
    W, intercept = cp.Variable((15, quantities)), cp.Variable((1, quantities))
    loss = cp.sum(cp.norm(X @ W + np.ones((n, 1)) @ intercept - targets, axis=1))
    best = cp.Problem(cp.Minimize(loss + alpha * cp.sum(cp.norm(W, axis=1)))).solve(
        solver="CLARABEL"
    )
    assert best * (1 - 1e-6) <= rfs.objective_path_[-1] <= best * (1 + 1e-6)
    coef = rfs.coef_.reshape(quantities, -1) / Y.std(axis=0)[:, None]
    np.testing.assert_allclose(np.linalg.norm(coef, axis=0), rfs.scores_, rtol=1e-9)


@pytest.mark.parametrize("quantities", [1, 2, 3])
@pytest.mark.parametrize("n", [7, 8])
def test_the_null_model_of_quantities_is_the_spatial_median(n, quantities):
    T = np.random.default_rng(n).standard_normal((n, quantities)) * [1, 3, 9][:quantities]
    if n == 7:
        T[1:5] = T[0]  # more than half of the samples have one value
    b, gradients = spatial_median(T)
    total = np.linalg.norm(b - T, axis=1).sum()
    variable = cp.Variable((1, quantities))
    best = cp.Problem(cp.Minimize(cp.sum(cp.norm(np.ones((n, 1)) @ variable - T, axis=1)))).solve(
        solver="CLARABEL"
    )
    assert total <= best * (1 + 1e-8)
    np.testing.assert_allclose(gradients.sum(axis=0), 0, atol=1e-6)
    assert np.linalg.norm(gradients, axis=1).max() <= 1 + 1e-9


def test_glspfs_reaches_the_optimum_of_a_convex_solver_on_a_graph_of_neighbours_in_y():
    images, Y = problem(3, 30, (5, 2), 2)
    X, targets = scale(images.reshape(30, -1)) * np.sqrt(29 / 30), scale(Y)
    local, sparsity, k = 0.02, 0.4, 4
    model = GLSPFSRegressor(local, sparsity, n_neighbors=k, max_iter=3000, tol=1e-9).fit(X, Y)
    squared = cdist(targets, targets, "sqeuclidean")
    near = np.argsort(squared + np.diag(np.full(30, np.inf)), axis=1)[:, :k]
    A = np.zeros((30, 30))
    np.put_along_axis(A, near, 1.0, axis=1)
    A = np.maximum(A, A.T) * np.exp(-squared / squared.mean())
    root = np.linalg.cholesky(np.diag(A.sum(axis=1)) - A + 1e-12 * np.eye(30)).T
    W = cp.Variable((10, 2))
    objective = cp.sum_squares(X @ W - targets) / 30 + local * cp.sum_squares(root @ X @ W)
    best = cp.Problem(cp.Minimize(objective + sparsity * cp.sum(cp.norm(W, axis=1)))).solve(
        solver="CLARABEL"
    )
    assert model.objective_path_[-1] == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.scores_, np.linalg.norm(W.value, axis=1), atol=1e-4)


def test_bilinear_regression_of_columns_and_mlls_of_one_quantity_are_ridge_regression():
    X, y = load_diabetes(return_X_y=True)
    gbr, ridge = BilinearRegressor(alpha=0.3).fit(X, y), Ridge(0.3).fit(X, y)
    np.testing.assert_allclose(gbr.coef_, ridge.coef_, rtol=1e-8)
    assert gbr.intercept_ == pytest.approx(ridge.intercept_)
    beta = 0.01
    mlls = MLLSRegressor(beta=beta).fit(X, y)
    ridge = Ridge(beta * np.linalg.norm(X - X.mean(axis=0), 2) ** 2).fit(X, y)
    np.testing.assert_allclose(mlls.coef_, ridge.coef_, rtol=1e-8)
    np.testing.assert_allclose(mlls.predict(X), ridge.predict(X), rtol=1e-10)


def test_mlls_of_several_quantities_is_the_minimum_over_all_subspaces():
    images, Y = problem(5, 40, (3, 2), 3)
    X, targets = images.reshape(40, -1), scale(Y)
    model = MLLSRegressor(alpha=0.2, beta=0.05, rank=1).fit(X, Y)
    X = X - X.mean(axis=0)
    s2 = np.linalg.norm(X, 2) ** 2 / 40
    a, b = 0.2 * s2, 0.05 * s2

    def minimum(theta):
        outside = np.eye(6) - np.outer(theta, theta) / (theta @ theta)
        U = np.linalg.solve(X.T @ X / 40 + a * outside + b * np.eye(6), X.T @ targets / 40)
        return (
            ((X @ U - targets) ** 2).sum() / 40 + a * (U * (outside @ U)).sum() + b * (U**2).sum()
        )

    found = model.objective_path_[0]
    assert found == pytest.approx(minimum(model.shared_subspace_[:, 0]), rel=1e-9)
    rng = np.random.default_rng(0)
    assert (
        min(
            minimum(model.shared_subspace_[:, 0] + 0.1 * rng.standard_normal(6)) for _ in range(200)
        )
        >= found
    )
    assert min(minimum(rng.standard_normal(6)) for _ in range(200)) >= found


@pytest.mark.parametrize(
    "cls", [SMRRegressor, RFSRegressor, GLSPFSRegressor, BilinearRegressor, MLLSRegressor]
)
def test_the_units_of_quantities_and_of_single_columns_y_change_nothing_but_the_unit(cls):
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    one, other, column = cls().fit(X, y), cls().fit(X, 1e6 * y - 7.0), cls().fit(X, y[:, None])
    np.testing.assert_allclose(other.scores_, one.scores_, atol=1e-6 * one.scores_.max())
    np.testing.assert_allclose(other.predict(X), 1e6 * one.predict(X) - 7.0, rtol=1e-6)
    np.testing.assert_array_equal(column.predict(X)[:, 0], one.predict(X))
    assert column.coef_.shape == (1, 10)
    assert one.coef_.shape == (10,)
