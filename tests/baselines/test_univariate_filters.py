"""Variance, Welch's t, Fisher score, information gain against NumPy, SciPy, scikit-learn; a
random ranking.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples
from scipy.stats import ttest_ind
from sklearn.feature_selection import f_classif
from sklearn.metrics import mutual_info_score

from raysel.baselines.filter import bin_range
from raysel.baselines.univariate_filters import (
    FisherScore,
    InformationGain,
    RandomRanking,
    TTest,
    Variance,
    greedy_set,
)
from raysel.core.errors import DataError


@settings(max_examples=10)
@given(labelled_samples())
def test_variance_is_numpys(samples):
    X, y = samples
    scores = Variance().fit(X, y).scores_
    np.testing.assert_array_equal(scores[:-1], X.var(axis=0)[:-1])
    assert scores[-1] == 0  # the constant, whose variance NumPy may round


def literal_t(column, y):
    """|t| of each class that has a variance."""
    classes = [r for r in np.unique(y) if 1 < (y == r).sum() < len(y) - 1]
    return [
        abs(ttest_ind(column[y == r], column[y != r], equal_var=False).statistic) for r in classes
    ]


@settings(max_examples=20)
@given(labelled_samples(least_per_class=2))
def test_it_is_scipys_t_of_each_column(samples):
    X, y = samples
    literal = [literal_t(column, y) for column in X.T[:-1]]
    for aggregate, over in (("max", max), ("mean", np.mean)):
        found = TTest(aggregate).fit(X, y).scores_
        np.testing.assert_allclose(found[:-1], [over(t) for t in literal], rtol=1e-9)
        assert found[-1] == 0  # the constant


def test_of_two_classes_of_equal_size_the_square_is_anovas_f():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 5)), np.arange(20) % 2
    np.testing.assert_allclose(TTest().fit(X, y).scores_ ** 2, f_classif(X, y)[0], rtol=1e-9)


def test_a_class_of_one_is_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 4)), np.array([0, 1, 1, 1, 2, 2, 2, 2, 2])
    np.testing.assert_allclose(
        TTest().fit(X, y).scores_, [max(literal_t(column, y)) for column in X.T], rtol=1e-9
    )
    with pytest.raises(DataError, match=r"classes of \[1, 3\] samples"):
        TTest().fit(X[:4], y[:4])


def test_an_infinite_t_is_the_largest_and_finite():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 7)
    X = np.column_stack(
        [
            rng.standard_normal(14),
            np.where(y == 0, 0.1, 0.3),
            np.full(14, 0.1),
            9 * y + rng.random(14),
        ]
    )
    scores = TTest().fit(X, y).scores_
    assert np.isfinite(scores).all()
    assert scores[1] == 2 * scores[3] > scores[3] > scores[0] > scores[2] == 0


GAMMAS = [0.001, 1.0, 10.0]


def scatters(X, y):
    """S_b and S_t as sums of outer products."""
    mean = X.mean(axis=0)
    between = sum(
        (y == r).sum() * np.outer(m := X[y == r].mean(axis=0) - mean, m) for r in np.unique(y)
    )
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
    X = np.column_stack(
        [rng.standard_normal(12) + 9 * y, separates, np.full(12, 0.3), rng.standard_normal(12)]
    )
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
def test_scores_decrease_along_the_order_and_then_with_each_features_own_trace(
    samples, n_ranked, gamma
):
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
    """For a gamma far above the scatter J is a small number, whose largest is the feature of
    largest S_b first.
    """
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


def literal_bins(column, bins):
    low, high = min(column), max(column)
    return [
        0 if high == low else min(math.floor(bins * (x - low) / (high - low)), bins - 1)
        for x in column
    ]


def literal_gain(X, y, bins):
    return np.array(
        [mutual_info_score(y, literal_bins(column, bins)) for column in X.T.tolist()]
    ) / np.log(2)


@settings(max_examples=25)
@given(labelled_samples(), st.integers(2, 12))
def test_it_is_the_mutual_information_of_each_column(samples, bins):
    X, y = samples
    gain = InformationGain(bins).fit(X, y)
    np.testing.assert_allclose(gain.scores_, literal_gain(X, y, bins), atol=1e-12)
    assert gain.scores_[-2] == gain.scores_[0]  # the copy
    assert gain.scores_[-1] == 0  # the constant


def test_values_on_the_edges_of_bins_and_the_maximum():
    X = np.arange(11.0)[:, None]
    assert bin_range(X).assign_bins(X, 5).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert bin_range(X).assign_bins(X, 256).max() == 255


def test_a_feature_that_is_the_class_gains_all_of_its_entropy():
    y = np.repeat([0, 1, 2], [2, 4, 6])
    entropy = -sum(p * math.log2(p) for p in (1 / 6, 1 / 3, 1 / 2))
    assert InformationGain(3).fit(y[:, None].astype(float), y).scores_[0] == pytest.approx(
        entropy, abs=1e-12
    )


def test_a_random_ranking_is_drawn_from_random_state_alone(usps):
    X, y = usps
    found = RandomRanking(random_state=3).fit(X, y).ranking_
    varies = np.ptp(X, axis=0) > 0
    other = np.random.default_rng(0).random(X.shape)
    other[:, ~varies] = 0.5
    np.testing.assert_array_equal(RandomRanking(random_state=3).fit(other, y[::-1]).ranking_, found)
    assert (RandomRanking(random_state=4).fit(X, y).ranking_ != found).any()


def test_every_feature_is_equally_likely_to_be_first():
    X, y = np.random.default_rng(0).standard_normal((4, 4)), [0, 0, 1, 1]
    first = [RandomRanking(random_state=seed).fit(X, y).scores_.argmax() for seed in range(400)]
    counts = np.bincount(first, minlength=4)
    assert abs(counts - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)
