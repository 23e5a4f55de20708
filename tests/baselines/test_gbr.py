"""Bilinear regression against ridge regression and the published alternation, and real images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from raysel.baselines.gbr import BilinearRegression


def samples(seed, n, shape, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    d = shape[0] * shape[1]
    return rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d)) + 2.0, y


def literal(X, y, shape, alpha, n_iter):
    """The alternation a class, each step a linear system; coefficients (n_classes, n_features) and objectives."""
    images = (X - X.mean(axis=0)).reshape(-1, *shape)
    coefs, paths = [], []
    for r in np.unique(y):
        target = (y == r) - np.mean(y == r)
        v = np.linalg.svd(np.einsum("i,iab->ab", target, images))[2][0]
        path = []
        for _ in range(n_iter):
            F = images @ v
            u = np.linalg.solve(F.T @ F + alpha * (v @ v) * np.eye(shape[0]), F.T @ target)
            u /= np.linalg.norm(u)
            G = np.einsum("iab,a->ib", images, u)
            v = np.linalg.solve(G.T @ G + alpha * np.eye(shape[1]), G.T @ target)
            path.append(((G @ v - target) ** 2).sum() + alpha * (v @ v))
        coefs.append(np.outer(u, v).ravel())
        paths.append(path)
    return np.array(coefs), np.sum(paths, axis=0)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), n=st.sampled_from([12, 40]), alpha=st.sampled_from([0.01, 0.3, 5.0]))
def test_it_is_the_published_alternation(seed, n, alpha):
    X, y = samples(seed, n, (5, 4))
    ours = BilinearRegression((5, 4), alpha=alpha, max_iter=12, tol=0.0)
    path = list(ours.iterate(X, y))
    coefs, values = literal(X, y, (5, 4), alpha, 12)
    np.testing.assert_allclose(path, values, rtol=1e-8)
    np.testing.assert_allclose(ours.coef_, coefs, atol=1e-6)
    np.testing.assert_allclose(ours.scores_, np.linalg.norm(coefs, axis=0), atol=1e-6)


@pytest.mark.parametrize("flat", [0, 3])
def test_the_start_sees_all_columns(flat):
    X, y = samples(4, 40, (5, 4))
    images = X.reshape(-1, 5, 4).copy()
    images[:, :, flat] = 2.0
    without = np.delete(images, flat, axis=2).reshape(-1, 15)
    ours = BilinearRegression((5, 4), max_iter=3, tol=0.0)
    others = BilinearRegression((5, 3), max_iter=3, tol=0.0)
    np.testing.assert_allclose(
        list(ours.iterate(images.reshape(-1, 20), y)), list(others.iterate(without, y)), rtol=1e-9
    )
    scores = ours.scores_.reshape(5, 4)
    assert not scores[:, flat].any()
    np.testing.assert_allclose(np.delete(scores, flat, axis=1).ravel(), others.scores_, rtol=1e-6)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(30, 8), (10, 25), (12, 12)]),
    shape=st.sampled_from([None, "row"]),
)
def test_matrices_of_one_column_or_row_are_ridge_regression(seed, size, shape):
    X, y = samples(seed, size[0], (size[1], 1))
    ours = BilinearRegression(None if shape is None else (1, size[1]), alpha=0.7, tol=1e-12).fit(X, y)
    ridge = Ridge(alpha=0.7).fit(X, np.eye(3)[y])
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, ridge.intercept_, atol=1e-9)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(4, 20),
    shape=st.sampled_from([(3, 4), (1, 5), (6, 2)]),
    alpha=st.sampled_from([1e-6, 0.01, 10.0]),
)
def test_the_objective_never_rises(seed, n, shape, alpha):
    gbr = BilinearRegression(shape, alpha, max_iter=30, tol=0.0)
    X, y = samples(seed, n, shape)
    path = np.array(list(gbr.iterate(X, y)))
    assert (np.diff(path) <= 1e-10 * path[:-1] + 1e-12).all()
    assert all(np.linalg.matrix_rank(row.reshape(shape), tol=1e-9) <= 1 for row in gbr.coef_)
    values = X @ gbr.coef_.T
    T = np.eye(3)[y]
    errors = values - values.mean(axis=0) - (T - T.mean(axis=0))
    assert (errors**2).sum() + alpha * (gbr.scores_**2).sum() == pytest.approx(path[-1], rel=1e-7)


@pytest.mark.parametrize("factor", [1e-3, 3.0])
def test_alpha_belongs_to_the_units_of_the_features(factor):
    X, y = samples(5, 20, (5, 4))
    plain = BilinearRegression((5, 4), 0.5).fit(X, y)
    scaled = BilinearRegression((5, 4), 0.5 * factor**2).fit(factor * X, y)
    np.testing.assert_allclose(factor * scaled.scores_, plain.scores_, rtol=1e-9)
    np.testing.assert_array_equal(scaled.predict(factor * X), plain.predict(X))


def test_an_alpha_that_rounding_swallows_is_named():
    X, y = samples(2, 4, (5, 4))
    with pytest.raises(np.linalg.LinAlgError, match=r"alpha=1e-25 vanishes .* raise alpha, or divide the features by"):
        BilinearRegression((5, 4), alpha=1e-25).fit(X, y)
