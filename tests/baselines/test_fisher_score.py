"""Fisher score against scatter matrices, ``f_classif``, scikit-feature and the trace of the set criterion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples
from sklearn.feature_selection import f_classif

from raysel.baselines.fisher_score import FisherScore, greedy_set

GAMMAS = [0.001, 1.0, 10.0]


def scatters(X, y):
    """S_b and S_t as sums of outer products."""
    mean = X.mean(axis=0)
    between = sum((y == r).sum() * np.outer(m := X[y == r].mean(axis=0) - mean, m) for r in np.unique(y))
    return between, (X - mean).T @ (X - mean)


def trace(scatter, chosen, gamma):
    """J(S), equation (2) of the SMR paper."""
    between, total = (S[np.ix_(chosen, chosen)] for S in scatter)
    return np.trace(between @ np.linalg.inv(total + gamma * np.eye(len(chosen))))


def added(X, y, gamma, n_ranked=500):
    return greedy_set(FisherScore("set").prepare(X, y), gamma, n_ranked)


@settings(max_examples=20)
@given(labelled_samples(least_per_class=2))
def test_the_ratio_is_that_of_the_scatters(samples):
    X, y = samples
    between, total = (np.diag(scatter)[:-1] for scatter in scatters(X, y))
    fisher = FisherScore().fit(X, y)
    np.testing.assert_allclose(fisher.scores_[:-1], between / (total - between), rtol=1e-7)
    assert fisher.scores_[-1] == 0  # the constant


def test_real_images_against_f_classif_and_scikit_feature(orl, usps):
    from skfeature.function.similarity_based.fisher_score import fisher_score  # noqa: PLC0415 - a witness only

    for X, y in (orl, usps):
        ours, c = FisherScore().fit(X, y).scores_, len(np.unique(y))
        varies = np.ptp(X, axis=0) > 0
        expected = f_classif(X[:, varies], y)[0] * (c - 1) / (len(y) - c)
        np.testing.assert_allclose(ours[varies], expected, rtol=1e-9)
        along = ours[varies][fisher_score(X[:, varies], y, mode="index")]
        assert (np.diff(along) <= 1e-9 * along[:-1]).all()  # the same order
        assert not ours[~varies].any()


def test_no_scatter_within_classes_gives_the_largest_score():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 4)
    separates = np.array([0.1, 0.1, 0.7])[y]
    X = np.column_stack([rng.standard_normal(12) + 9 * y, separates, np.full(12, 0.3), rng.standard_normal(12)])
    fisher = FisherScore().fit(X, y)
    assert np.isfinite(fisher.scores_).all()
    assert fisher.ranking_[1] == 1
    assert fisher.scores_[1] > fisher.scores_[0] > fisher.scores_[3] > 0 == fisher.scores_[2]
    samples_alone = FisherScore().fit(X[[0, 4, 8]], [0, 1, 2]).scores_  # no class has a scatter
    assert samples_alone[2] == 0 < samples_alone[0] == samples_alone[1] == samples_alone[3]


@settings(max_examples=15)
@given(labelled_samples(), st.sampled_from(GAMMAS))
def test_every_step_adds_what_raises_the_trace_most(samples, gamma):
    X, y = samples
    scatter = scatters(X, y)
    order, gains = added(X, y, gamma)
    J = [0.0, *np.cumsum(gains)]
    # The reference inverts a matrix of this condition number, because of the copy.
    tolerance = 1e-8 + np.finfo(float).eps * np.diag(scatter[1]).max() / gamma
    varying = range(X.shape[1] - 1)
    for k, feature in enumerate(order):
        chosen = order[:k].tolist()
        found = {j: trace(scatter, [*chosen, j], gamma) for j in varying if j not in chosen}
        assert J[k + 1] == pytest.approx(found[feature], abs=tolerance)
        assert found[feature] >= max(found.values()) - tolerance
    assert J[-1] <= len(np.unique(y)) - 1 + 1e-8


@settings(max_examples=10)
@given(labelled_samples(most_features=8), st.integers(1, 5), st.sampled_from([0.0, *GAMMAS]))
def test_scores_decrease_along_the_order_and_then_with_each_features_own_trace(samples, n_ranked, gamma):
    X, y = samples
    order, gains = added(X, y, gamma, n_ranked)
    fisher = FisherScore("set", gamma, n_ranked).fit(X, y)
    np.testing.assert_array_equal(fisher.scores_[order], np.arange(len(order), 0, -1))
    assert fisher.objective_path_[0] == gains.sum()
    scatter = scatters(X, y)
    rest = np.setdiff1d(np.arange(X.shape[1] - 1), order)
    own = np.array([trace(scatter, [j], gamma) for j in rest])
    assert (fisher.scores_[rest] < 1).all()
    if len(rest) and own.max() > 0:
        np.testing.assert_allclose(fisher.scores_[rest], own / own.max() / 2, atol=1e-8)
    assert fisher.scores_[-1] == 0  # the constant


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-12])
def test_small_units_do_not_make_features_equal(unit):
    """For a gamma far above the scatter J is a small number, whose largest is the feature of largest S_b first."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((20, 8)), np.arange(20) % 4
    order = added(unit * X, y, 1e12 * unit**2)[0]
    np.testing.assert_array_equal(order, np.argsort(-np.diag(scatters(X, y)[0])))
    np.testing.assert_array_equal(added(unit * X, y, unit**2)[0], added(X, y, 1.0)[0])


def test_without_regularisation_copies_are_not_added():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 5)), np.arange(20) % 4
    order, gains = added(np.hstack([X, X]), y, 0.0)
    assert sorted(order % 5) == list(range(5))
    assert gains.sum() == pytest.approx(trace(scatters(X, y), range(5), 0.0), rel=1e-9)
