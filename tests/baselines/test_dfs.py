"""DFS against the eigenproblem in all features, discriminant analysis at its limit, and what it
refuses.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning, eigh, subspace_angles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from raysel.baselines.dfs import DFS
from raysel.core.errors import ConfigError


def samples(seed, n, d, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return 0.3 * rng.standard_normal((classes, d))[y] + 0.2 * rng.standard_normal((n, d)) + 0.5, y


def scatters(X, y):
    centred = X - X.mean(axis=0)
    within = sum(
        (X[y == r] - X[y == r].mean(axis=0)).T @ (X[y == r] - X[y == r].mean(axis=0))
        for r in np.unique(y)
    )
    return centred.T @ centred, within


def literal(X, y, gamma, p, n_iter):
    """The same iterations with matrices of size n_features; scores and objective after each."""
    total, within = scatters(X, y)
    m, D, found = len(np.unique(y)) - 1, np.ones(X.shape[1]), []
    for _ in range(n_iter):
        mu, vectors = eigh(total, within + gamma * np.diag(D))
        W = vectors[:, -m:] / np.sqrt(mu[-m:])
        norms = np.sqrt((W**2).sum(axis=1) + 1e-12)
        found.append(
            (np.linalg.norm(W, axis=1), np.trace(W.T @ within @ W) + gamma * (norms**p).sum())
        )
        D = p / 2 * norms ** (p - 2)
    return found


def iterations(X, y, **params):
    dfs = DFS(tol=0.0, **params)
    # The reference starts with D = 1 in these units too.
    assert DFS().prepare(X, y).scale == 1.0
    return [(dfs.scores_.copy(), J) for J in dfs.iterate(X, y)]


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(15, 40), (40, 12)]),
    gamma=st.sampled_from([0.01, 0.3, 2.0]),
    p=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_it_is_the_eigenproblem_in_all_features(seed, size, gamma, p):
    X, y = samples(seed, *size)
    X = (X - X.mean(axis=0)) / np.abs(X - X.mean(axis=0)).max() * 0.9
    ours = iterations(X, y, gamma=gamma, p=p, max_iter=8)
    assert len(ours) == 8 or p == 2.0  # which is no penalty to be reweighted
    for (scores, J), (expected, value) in zip(ours, literal(X, y, gamma, p, 8), strict=False):
        np.testing.assert_allclose(scores, expected, atol=1e-6 * expected.max())
        assert pytest.approx(value, rel=1e-8) == J


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(6, 25),
    d=st.integers(1, 25),
    classes=st.integers(2, 4),
    gamma=st.sampled_from([0.01, 1.0, 100.0]),
    p=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_objective_never_rises_and_the_constraint_holds(seed, n, d, classes, gamma, p):
    X, y = samples(seed, n, d, classes)
    dfs = DFS(gamma, p, max_iter=40, tol=0.0)
    path = np.array(list(dfs.iterate(X, y)))
    assert (np.diff(path) <= 1e-9 * path[:-1]).all()
    total, within = scatters(X, y)
    W = dfs.components_.T
    assert W.shape[1] == min(classes - 1, d)
    np.testing.assert_allclose(W.T @ total @ W, np.eye(W.shape[1]), atol=1e-8)
    smoothed = dfs.scores_**2 + 1e-12 / dfs.prepare(X, y).scale ** 2
    value = np.trace(W.T @ within @ W) + gamma * (smoothed ** (p / 2)).sum()
    assert value == pytest.approx(path[-1], rel=1e-6)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), classes=st.integers(2, 4))
def test_without_penalty_it_is_discriminant_analysis(seed, classes):
    X, y = samples(seed, 60, 10, classes)
    dfs = DFS(gamma=1e-6).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    angles = subspace_angles(dfs.components_.T, lda.scalings_[:, : classes - 1])
    assert np.rad2deg(angles.max()) < 1e-3


def test_a_class_of_one_sample_and_two_equal_features():
    X, y = samples(2, 21, 30)
    y[0] = 3
    X[:, 1] = X[:, 0]
    X = (X - X.mean(axis=0)) / np.abs(X - X.mean(axis=0)).max() * 0.9
    dfs = DFS(max_iter=6, tol=0.0)
    path = list(dfs.iterate(X, y))
    scores, J = literal(X, y, 0.1, 1.0, 6)[-1]
    assert path[-1] == pytest.approx(J, rel=1e-8)
    np.testing.assert_allclose(dfs.scores_, scores, atol=1e-6 * scores.max())
    assert dfs.components_.shape == (3, 30)
    assert dfs.scores_[1] == pytest.approx(dfs.scores_[0], rel=1e-6)


def test_where_no_feature_varies_all_scores_are_zero():
    dfs = DFS().fit(np.ones((6, 4)), np.array([0, 0, 0, 1, 1, 1]))
    assert not dfs.scores_.any()
    assert dfs.components_.shape == (0, 4)


@pytest.mark.parametrize("factor", [1e8, 1e12])
def test_a_feature_of_huge_scale_does_not_hide_the_others(factor):
    X, y = samples(5, 60, 10, 4)
    X -= X.mean(axis=0)
    huge = X * np.r_[factor, np.ones(9)]
    dfs = DFS(tol=1e-10, max_iter=500).fit(huge, y)
    assert dfs.components_.shape == (3, 10)
    # The penalty of the huge feature vanishes: it scores as it does for any other large factor.
    large = DFS(tol=1e-10, max_iter=500).fit(X * np.r_[1e5, np.ones(9)], y)
    np.testing.assert_allclose(dfs.scores_[1:], large.scores_[1:], rtol=1e-3)
    X, y = samples(5, 20, 30, 4)
    with pytest.warns(LinAlgWarning, match="Scale the features"):
        assert DFS().fit(X * np.r_[factor, np.ones(29)], y).components_.shape == (3, 30)


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_gamma_belongs_to_the_units_of_the_features(p):
    X, y = samples(3, 20, 30)
    plain, scaled = DFS(0.1, p).fit(X, y), DFS(0.1 * 8.0**p, p).fit(8.0 * X, y)
    np.testing.assert_allclose(8.0 * scaled.scores_, plain.scores_, rtol=1e-9)
    # Of a factor that is no power of two the start differs, but not the solution.
    plain, scaled = (
        DFS(g, p, tol=1e-10, max_iter=1000).fit(f * X, y)
        for f, g in ((1.0, 0.1), (1.5, 0.1 * 1.5**p))
    )
    np.testing.assert_allclose(1.5 * scaled.scores_, plain.scores_, atol=1e-3 * plain.scores_.max())


def test_too_small_a_gamma_is_refused():
    X, y = samples(4, 20, 30)
    with pytest.raises(
        ConfigError,
        match=r"gamma=0.0005 is too small for 20 samples of 30 features.*at least 0.001",
    ):
        DFS(gamma=5e-4).fit(X, y)
    dfs = DFS(gamma=5e-4)
    dfs.check(30)
    with pytest.raises(ConfigError):
        dfs.check_training(y)
    dfs.check(20)
    with pytest.raises(ConfigError):
        dfs.check_training(y)
    dfs.check(19)
    dfs.check_training(y)  # more samples than features
    DFS(gamma=5e-4).fit(X[:, :10], y)
    DFS(gamma=1e-3).fit(X, y)


def test_a_gamma_that_is_too_small_for_the_features_is_warned_of():
    X, y = samples(6, 20, 30)
    X = (X - X.mean(axis=0)) / np.abs(X - X.mean(axis=0)).max() * 200.0
    with pytest.warns(
        UserWarning, match=r"gamma=0.1 is small .* by 1\d\d or more: .* at least 0.1\d*, or scale"
    ):
        small = DFS(0.1).fit(X, y)
    # What the warning says: a hundredth of gamma gives the same best features.
    smaller = DFS(1e-3)
    with pytest.warns(UserWarning, match="gamma=0.001 is small"):
        assert set(smaller.fit(X, y).ranking_.argsort()[:10]) == set(small.ranking_.argsort()[:10])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DFS(0.2).fit(X, y)
        DFS(1e-3).fit(X / 200.0, y)
        DFS(0.1).fit(X[:, :10], y)  # more samples than features


def test_it_goes_on_while_ten_iterations_lower_the_objective(orl_images):
    X, y, _ = orl_images
    fit, long = DFS().fit(X, y), DFS(tol=1e-5, max_iter=600).fit(X, y)
    assert fit.converged_
    path = fit.objective_path_
    assert path[-11] - path[-1] <= 1e-4 * path[-11]
    assert path[-1] <= (1 + 5e-4) * long.objective_path_[-1]
    assert len(set(np.argsort(-fit.scores_)[:50]) & set(np.argsort(-long.scores_)[:50])) >= 46
