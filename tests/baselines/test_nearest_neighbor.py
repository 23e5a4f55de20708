"""NearestNeighbor against scikit-learn and distances written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from raysel.baselines.nearest_neighbor import NearestNeighbor
from raysel.core.errors import ConfigError


def draw(seed, n=30, d=4, c=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    return rng.standard_normal((c, d))[y] + rng.standard_normal((n, d)), y


@settings(max_examples=15)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 7), classes=st.integers(2, 4))
def test_it_is_scikit_learns(seed, k, classes):
    X, y = draw(seed, c=classes)
    names = np.array(list("dbca"))[y]
    X_test, _ = draw(seed + 1)
    np.testing.assert_array_equal(
        NearestNeighbor(k).fit(X, names).predict(X_test), KNeighborsClassifier(k).fit(X, names).predict(X_test)
    )
    indicator = (np.random.default_rng(seed).random((len(X), 3)) < 0.4).astype(int)
    expected = KNeighborsClassifier(k).fit(X, indicator).predict(X_test)
    np.testing.assert_array_equal(NearestNeighbor(k).fit(X, indicator).predict(X_test), expected)
    np.testing.assert_array_equal(NearestNeighbor(k).fit(X, 2 * indicator - 1).predict(X_test), expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_differences_of_distances(classes):
    X, y = draw(0, c=classes)
    X_test, _ = draw(1)
    D = cdist(X_test, X)
    expected = np.column_stack([D[:, y != r].min(axis=1) - D[:, y == r].min(axis=1) for r in range(classes)])
    model = NearestNeighbor().fit(X, y)
    found = model.decision_function(X_test)
    np.testing.assert_allclose(found, expected if classes > 2 else expected[:, 1], atol=1e-9)
    np.testing.assert_array_equal(model.predict(X_test), expected.argmax(axis=1))


def test_scores_of_labels_have_the_sign_of_the_prediction():
    X, _ = draw(2, 60)
    Y = (X[:, :3] > 0.3).astype(int)
    model = NearestNeighbor().fit(X[:40], Y[:40])
    values = model.decision_function(X[40:])
    D = cdist(X[40:], X[:40])
    own = Y[:40, 0] > 0
    np.testing.assert_allclose(values[:, 0], D[:, ~own].min(axis=1) - D[:, own].min(axis=1), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X[40:]), values > 0)


def test_labels_that_all_or_none_have_are_answered_by_their_sign():
    X, y = draw(3)
    model = NearestNeighbor().fit(X, np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y)]).astype(int))
    np.testing.assert_array_equal(model.predict(X)[:, 1:], np.tile([0, 1], (30, 1)))
    np.testing.assert_array_equal(model.decision_function(X)[:, 1:], np.tile([-1, 1], (30, 1)))


def test_more_neighbours_than_samples_are_all_of_them():
    X, y = draw(4)
    y[0] = 1
    assert (NearestNeighbor(500).fit(X, y).predict(X) == 1).all()
    with pytest.raises(ConfigError, match="'n_neighbors' parameter of NearestNeighbor"):
        NearestNeighbor(0).check(4)
