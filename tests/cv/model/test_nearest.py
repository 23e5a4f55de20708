"""The nearest-neighbour classifier of a model file, against scikit-learn's and against the search's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.core.errors import DataError
from raysel.evaluation.neighbours import NearestNeighborsClassifier, knn_path, knn_scores


def expected_failures(estimator):
    """Scores of the classes are distances to the nearest sample of each, which need not win the vote of several."""
    checks = ("check_classifiers_train", "check_classifier_multioutput")
    return dict.fromkeys(checks, expected_failures.__doc__) if estimator.n_neighbors > 1 else {}


@parametrize_with_checks(
    [NearestNeighborsClassifier(), NearestNeighborsClassifier(3)], expected_failed_checks=expected_failures
)
def test_it_follows_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_without_ties_it_is_scikit_learns(k):
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).random(X.shape)
    ours, theirs = NearestNeighborsClassifier(k).fit(X[::2], y[::2]), KNeighborsClassifier(k).fit(X[::2], y[::2])
    # Of equal votes both take the smaller label.
    np.testing.assert_array_equal(ours.predict(X[1::2]), theirs.predict(X[1::2]))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_ties_are_broken_as_in_the_search_and_in_any_order_of_the_samples(k):
    X, y = load_digits(return_X_y=True)  # whole numbers, of which a few pixels tie often
    X, y = X[:300, 18:22], y[:300]
    order = np.random.default_rng(k).permutation(200)
    features = np.arange(4)
    found = NearestNeighborsClassifier(k).fit(X[:200], y[:200])
    moved = NearestNeighborsClassifier(k).fit(X[order], y[order])
    expected = knn_path(X[:200], y[:200], X[200:], features, [2, 4], k)[1]
    np.testing.assert_array_equal(found.predict(X[200:]), expected)
    np.testing.assert_array_equal(moved.predict(X[200:]), expected)
    scores = knn_scores(X[:200], y[:200], X[200:], features, [4])[0]
    np.testing.assert_array_equal(found.decision_function(X[200:]), scores)


def test_an_indicator_is_predicted_label_by_label():
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).random(X.shape)
    Y = np.stack([y == 0, y == 1, y > 0], axis=1).astype(int)
    model = NearestNeighborsClassifier(3).fit(X[::2], Y[::2])
    np.testing.assert_array_equal(model.predict(X[1::2]), KNeighborsClassifier(3).fit(X[::2], Y[::2]).predict(X[1::2]))
    assert model.decision_function(X[1::2]).shape == (75, 3)
    with pytest.raises(DataError, match="indicator of 0 and 1"):
        model.fit(X, np.stack([y, y], axis=1))
