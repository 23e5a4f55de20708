"""MRMR and ReliefF against their definitions, and MRMR against scikit-feature."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples
from sklearn.metrics import mutual_info_score

from raysel.baselines import multivariate_filters as module
from raysel.baselines.filter import bin_range
from raysel.baselines.multivariate_filters import MRMR, PairInformation, ReliefF, select_features


def selected(X, y, criterion="MID", bins=5, n_ranked=500):
    return select_features(MRMR(bins=bins).prepare(X, y), bins, criterion, n_ranked)


def bits(a, b):
    return mutual_info_score(a, b) / np.log(2)


@settings(max_examples=20)
@given(labelled_samples(), st.integers(2, 6), st.sampled_from(["MID", "MIQ"]))
def test_every_step_selects_the_largest_value(samples, bins, criterion):
    X, y = samples
    binned = bin_range(X).assign_bins(X, bins).T
    order, values = selected(X, y, criterion, bins)
    assert sorted(order) == list(range(X.shape[1] - 1))  # all but the constant
    relevances = [bits(column, y) for column in binned]
    shared = cache(lambda j, s: bits(binned[j], binned[s]))
    for k, feature in enumerate(order):
        found = {}
        for j in set(range(len(binned) - 1)) - set(order[:k]):
            relevance, redundancy = relevances[j], [shared(j, s) for s in order[:k]]
            mean = np.mean(redundancy) if redundancy else 0.0
            found[j] = (
                relevance
                if k == 0
                else relevance - mean
                if criterion == "MID"
                else relevance / (mean + 0.01)
            )
        assert values[k] == pytest.approx(found[feature], abs=1e-9)
        assert found[feature] >= max(found.values()) - 1e-8


@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_words_and_blocks_of_features_do_not_change_the_information(n, monkeypatch):
    monkeypatch.setattr(module, "_CACHED", 30)
    rng = np.random.default_rng(n)
    binned = rng.integers(0, 4, (n, 7), dtype=np.uint8)
    binned[:, 1], binned[:, 2] = binned[:, 0], 3
    found = PairInformation(binned, 4).with_feature(0)
    np.testing.assert_allclose(
        found, [bits(binned[:, 0], column) for column in binned.T], atol=1e-12
    )


class OneOverSelected:
    """The factor 1/k of LCSI's redundancy, of which the fork takes a constant only: counts the
    products.
    """

    def __init__(self, n_features):
        self.n_features, self.k, self.products = n_features, 1, 0

    def __mul__(self, redundancy):
        value = redundancy / self.k
        self.products += 1
        if self.products == self.n_features - self.k:
            self.k, self.products = self.k + 1, 0
        return value


def lcsi_order(binned, y, n):
    from skfeature.function.information_theoretical_based.LCSI import lcsi  # noqa: PLC0415 - a witness only

    beta = OneOverSelected(binned.shape[1])
    return lcsi(binned, y, mode="index", gamma=0, beta=beta, n_selected_features=n)


def test_scikit_feature_selects_the_same(orl, usps):
    for X, y, n in ((orl[0][:, ::16], orl[1], 8), (usps[0], usps[1], 10)):
        binned = bin_range(X).assign_bins(X, 5)
        varies = np.flatnonzero(np.ptp(binned, axis=0))
        np.testing.assert_array_equal(
            selected(X, y, n_ranked=n)[0], varies[lcsi_order(binned[:, varies], y, n)]
        )


@pytest.mark.parametrize("criterion", ["MID", "MIQ"])
def test_a_copy_goes_last_and_a_constant_has_no_score(criterion):
    y = np.arange(32) % 8
    X = np.column_stack([y // 4, y // 4, y // 2 % 2, np.full(32, 7), y % 2]).astype(float)
    mrmr = MRMR(criterion, bins=2).fit(X, y)
    np.testing.assert_array_equal(mrmr.scores_, [4, 1, 3, 0, 2])
    np.testing.assert_allclose(mrmr.relevance_, [1, 1, 1, 0, 1], atol=1e-12)


@settings(max_examples=10)
@given(labelled_samples(most_features=8), st.integers(1, 4))
def test_after_the_selected_features_come_the_others_by_relevance(samples, n_ranked):
    X, y = samples
    mrmr, (order, values) = MRMR(n_ranked=n_ranked).fit(X, y), selected(X, y, n_ranked=n_ranked)
    np.testing.assert_array_equal(mrmr.scores_[order], np.arange(len(order), 0, -1))
    assert mrmr.objective_path_[0] == values.mean()
    rest = np.setdiff1d(np.arange(X.shape[1] - 1), order)
    assert (mrmr.scores_[rest] < 1).all()
    np.testing.assert_array_equal(
        np.argsort(-mrmr.scores_[rest]), np.argsort(-mrmr.relevance_[rest])
    )
    assert mrmr.scores_[-1] == 0  # the constant


def literal_weights(X, y, k):
    """The sum as printed, over every sample; distances that differ by rounding are equal."""
    n, d = X.shape
    ranges = X.max(axis=0) - X.min(axis=0)
    classes, counts = np.unique(y, return_counts=True)
    shares = dict(zip(classes, counts / n, strict=True))
    weights = np.zeros(d)

    def diff(a, b):
        return np.array(
            [abs(X[a, j] - X[b, j]) / ranges[j] if ranges[j] > 0 else 0.0 for j in range(d)]
        )

    for i in range(n):
        for r in classes:
            others = [h for h in range(n) if h != i and y[h] == r]
            nearest = sorted(others, key=lambda h, i=i: round(sum(diff(i, h)), 9))[:k]
            if nearest:
                mean = sum(diff(i, h) for h in nearest) / len(nearest)
                weights += -mean if r == y[i] else shares[r] / (1 - shares[y[i]]) * mean
    return weights / n


@settings(max_examples=20)
@given(labelled_samples(), st.integers(1, 8))
def test_it_is_the_published_sum(samples, k):
    X, y = samples
    found = ReliefF(k).fit(X, y)
    np.testing.assert_allclose(found.weights_, literal_weights(X, y, k), atol=1e-12)
    np.testing.assert_allclose(found.scores_[:-1], (1 + found.weights_[:-1]) / 2, rtol=1e-15)
    assert found.weights_[-2] == pytest.approx(found.weights_[0], abs=1e-15)  # the copy
    assert (found.weights_[-1], found.scores_[-1]) == (0, 0)  # the constant


def whole_numbers(seed):
    """Samples with many equal distances, which rounding makes different: ranges are no powers of
    two.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], 5))
    return rng.integers(0, rng.integers(3, 12), (15, 5)).astype(float), y


@settings(max_examples=15)
@given(st.integers(0, 2**16), st.integers(1, 3))
def test_of_equal_distances_the_first_samples_count(seed, k):
    X, y = whole_numbers(seed)
    np.testing.assert_allclose(ReliefF(k).fit(X, y).weights_, literal_weights(X, y, k), atol=1e-14)


@settings(max_examples=15)
@given(st.integers(0, 2**16), st.integers(1, 3))
def test_features_in_another_order_and_other_units_have_the_same_weights(seed, k):
    X, y = whole_numbers(seed)
    rng = np.random.default_rng(seed)
    order, units = rng.permutation(5), 10.0 ** rng.integers(-300, 300, 5)
    here = ReliefF(k).fit(X, y).weights_
    np.testing.assert_allclose(ReliefF(k).fit(X[:, order], y).weights_, here[order], atol=1e-14)
    np.testing.assert_allclose(ReliefF(k).fit(X * units, y).weights_, here, atol=1e-14)


def test_a_large_offset_does_not_cost_the_differences():
    X, y = whole_numbers(0)
    unit = 2.0**-26  # the spacing of numbers at 1e8
    np.testing.assert_allclose(
        ReliefF().fit(1e8 + unit * X, y).weights_, ReliefF().fit(X, y).weights_, atol=1e-14
    )


def test_classes_of_one_and_more_neighbours_than_samples():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((8, 4)), np.array([0, 1, 1, 1, 2, 2, 2, 2])
    np.testing.assert_allclose(
        ReliefF(50).fit(X, y).weights_, literal_weights(X, y, 50), atol=1e-14
    )
    alone = ReliefF().fit(X[:3], [0, 1, 2])  # no hits at all
    np.testing.assert_allclose(alone.weights_, literal_weights(X[:3], np.arange(3), 5), atol=1e-14)
