"""RFS: where its solution is zero, its units, and real images."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from raysel.baselines.rfs import RFS, l21_steps
from raysel.core.errors import ConfigError, DataError


def samples(counts, d=15, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return rng.standard_normal((len(counts), d))[y] + rng.standard_normal((len(y), d)), y


@pytest.mark.parametrize("counts", [(8, 8, 8), (4, 6, 9, 7), (6, 6)])
def test_alpha_max_is_where_the_solution_becomes_zero(counts):
    X, y = samples(counts)
    prepared = RFS().prepare(X, y)
    T = np.eye(len(counts))[y]
    null = np.linalg.norm(T - prepared.null_intercept, axis=1).sum()
    below, above = (
        next(islice(l21_steps(X - X.mean(axis=0), T, share * prepared.alpha_max), 1500, None)) for share in (0.98, 1.02)
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
    iterated = next(islice(l21_steps(X - X.mean(axis=0), np.eye(3)[y], prepared.alpha_max), 1000, None))
    assert pytest.approx(zero.objective_path_[0], rel=1e-6) == iterated.J


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
def test_a_factor_of_the_features_changes_no_ranking(factor):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    tight = {"tol": 1e-12, "max_iter": 3000}
    plain, scaled = RFS(**tight).fit(X, y), RFS(**tight).fit(factor * X, y)
    np.testing.assert_allclose(scaled.scores_ * factor, plain.scores_, atol=1e-5 * plain.scores_.max())
    np.testing.assert_array_equal(scaled.predict(factor * X), plain.predict(X))


def test_units_of_alpha():
    X, y = samples((8, 8, 8))
    alpha_max = RFS().prepare(X, y).alpha_max
    relative, absolute = RFS(0.2).fit(X, y), RFS(0.2 * alpha_max, "absolute").fit(X, y)
    np.testing.assert_allclose(absolute.coef_, relative.coef_, rtol=1e-9)


def test_the_objective_is_that_of_the_fitted_coefficients():
    X, y = samples((10, 12, 8), d=6)
    rfs = RFS(0.7, "absolute").fit(X + 100.0, y)
    residuals = (X + 100.0) @ rfs.coef_.T + rfs.intercept_ - np.eye(3)[y]
    value = np.linalg.norm(residuals, axis=1).sum() + 0.7 * rfs.scores_.sum()
    smoothing = 1e-6 * len(X)  # of residuals that are zero
    assert value == pytest.approx(rfs.objective_path_[-1], rel=1e-8, abs=smoothing)


@pytest.mark.parametrize(("data", "accuracy"), [("orl", 0.95), ("usps", 0.85)])
def test_real_images(request, data, accuracy):
    X, y, _ = request.getfixturevalue(data)
    order = np.random.default_rng(0).permutation(X.shape[1])
    rfs, turned = RFS().fit(X, y), RFS().fit(X[:, order], y)
    assert rfs.converged_
    assert rfs.score(X, y) > accuracy
    np.testing.assert_allclose(turned.scores_, rfs.scores_[order], atol=1e-6 * rfs.scores_.max())


def test_bad_input_is_named():
    X, y = samples((5, 5))
    with pytest.raises(ConfigError, match="'alpha' parameter of RFS"):
        RFS(alpha=0.0).check(5)
    with pytest.raises(ConfigError, match="'alpha_scale' parameter of RFS"):
        RFS(alpha_scale="none").check(5)
    with pytest.raises(DataError, match="one class only"):
        RFS().fit(X, np.zeros_like(y))
    assert RFS(0.5).complexity_key() < RFS(0.1).complexity_key()
