"""Filters for quantities against scikit-learn and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import f_regression, mutual_info_regression
from sklearn.metrics import mutual_info_score

from raysel.baselines.quantity_filters import FTest, MRMRQuantities, MutualInformation, RReliefF

X, Y = load_diabetes(return_X_y=True)
BOTH = np.stack([Y, X[:, 3] + 0.01 * np.random.default_rng(0).standard_normal(len(Y))], axis=1)
OTHERS = np.delete(X, 3, axis=1)


def test_the_f_test_is_scikit_learn_s():
    np.testing.assert_allclose(FTest().fit(X, Y).scores_, f_regression(X, Y)[0], rtol=1e-9)
    of_both = [f_regression(OTHERS, y)[0] for y in BOTH.T]
    np.testing.assert_allclose(
        FTest().fit(OTHERS, BOTH).scores_, np.mean(of_both, axis=0), rtol=1e-9
    )


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_the_f_test_of_a_copy_a_constant_and_a_far_offset(offset):
    features = np.column_stack([2.0 * Y, np.full(len(Y), 0.1), X]) + offset
    scores = FTest().fit(features, Y).scores_
    assert scores[0] > 1.5 * scores[2:].max()
    assert scores[1] == 0
    np.testing.assert_allclose(scores[2:], f_regression(X, Y)[0], rtol=1e-3 if offset else 1e-9)


def test_mutual_information_is_scikit_learn_s():
    found = MutualInformation(5, random_state=3).fit(X, Y).scores_
    np.testing.assert_array_equal(
        found, mutual_info_regression(X, Y, n_neighbors=5, random_state=3)
    )


@pytest.mark.parametrize("criterion", ["MID", "MIQ"])
def test_mrmr_is_greedy_over_the_mutual_information_of_bins(criterion):
    bins = 4
    ranks = np.argsort(np.argsort(Y + 1e-9 * np.arange(len(Y))))
    codes = (bins * (ranks + 0.5) / len(Y)).astype(int)
    codes = np.array([codes[value == Y].min() for value in Y])  # equal values stand in one bin
    width = np.ptp(X, axis=0)
    binned = np.minimum(((X - X.min(axis=0)) / width * bins).astype(int), bins - 1)
    model = MRMRQuantities(criterion, bins).fit(X, Y)
    relevance = np.array([mutual_info_score(codes, column) for column in binned.T]) / np.log(2)
    np.testing.assert_allclose(
        model.relevance_, relevance, atol=0.02
    )  # where ties straddle the edge of a bin
    order = [int(model.relevance_.argmax())]
    while len(order) < X.shape[1]:
        left = [j for j in range(X.shape[1]) if j not in order]
        shared = [
            np.mean([mutual_info_score(binned[:, j], binned[:, s]) for s in order]) / np.log(2)
            for j in left
        ]
        values = [
            model.relevance_[j] - r if criterion == "MID" else model.relevance_[j] / (r + 0.01)
            for j, r in zip(left, shared, strict=True)
        ]
        order.append(left[int(np.argmax(values))])
    assert np.argsort(model.ranking_).tolist() == order


@pytest.mark.parametrize("y", [Y[:60], BOTH[:60]], ids=["one", "two"])
def test_rrelieff_is_what_its_equation_says(y):
    features, n, k, sigma = OTHERS[:60], 60, 7, 3.0
    columns = y.reshape(n, -1) / np.ptp(y.reshape(n, -1), axis=0)
    width = np.ptp(features, axis=0)
    distances = cdist(features / width, features / width, "cityblock")
    n_c, n_j, n_both = 0.0, np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for i in range(n):
        near = [h for h in np.argsort(distances[i], kind="stable") if h != i][:k]
        weights = np.exp(-((np.arange(1, k + 1) / sigma) ** 2))
        for weight, h in zip(weights / weights.sum(), near, strict=True):
            apart, differences = (
                np.abs(columns[i] - columns[h]).mean(),
                np.abs(features[i] - features[h]) / width,
            )
            n_c += weight * apart
            n_j += weight * differences
            n_both += weight * apart * differences
    expected = n_both / n_c - (n_j - n_both) / (n - n_c)
    model = RReliefF(k, sigma).fit(features, y)
    np.testing.assert_allclose(model.weights_, expected, atol=1e-12)
    np.testing.assert_allclose(model.scores_, (1 + expected) / 2, atol=1e-12)


@pytest.mark.parametrize(
    "method", [FTest(), MutualInformation(random_state=0), MRMRQuantities(), RReliefF()]
)
def test_telling_features_come_first(method):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((200, 12))
    y = 3.0 * features[:, 2] + 2.0 * features[:, 7] + 0.5 * rng.standard_normal(200)
    assert set(np.argsort(method.fit(features, y).ranking_)[:2].tolist()) == {2, 7}
