"""Nearest-neighbour classifiers against scikit-learn, distances written out and the definition
of ML-kNN.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from raysel.baselines.nearest_neighbours import (
    PREPARED_NEIGHBORS,
    MLkNN,
    NearestNeighbor,
    nearest,
    nearest_others,
)
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
        NearestNeighbor(k).fit(X, names).predict(X_test),
        KNeighborsClassifier(k).fit(X, names).predict(X_test),
    )
    indicator = (np.random.default_rng(seed).random((len(X), 3)) < 0.4).astype(int)
    expected = KNeighborsClassifier(k).fit(X, indicator).predict(X_test)
    np.testing.assert_array_equal(NearestNeighbor(k).fit(X, indicator).predict(X_test), expected)
    np.testing.assert_array_equal(
        NearestNeighbor(k).fit(X, 2 * indicator - 1).predict(X_test), expected
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_differences_of_distances(classes):
    X, y = draw(0, c=classes)
    X_test, _ = draw(1)
    D = cdist(X_test, X)
    expected = np.column_stack(
        [D[:, y != r].min(axis=1) - D[:, y == r].min(axis=1) for r in range(classes)]
    )
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
    np.testing.assert_allclose(
        values[:, 0], D[:, ~own].min(axis=1) - D[:, own].min(axis=1), atol=1e-9
    )
    np.testing.assert_array_equal(model.predict(X[40:]), values > 0)


def test_labels_that_all_or_none_have_are_answered_by_their_sign():
    X, y = draw(3)
    model = NearestNeighbor().fit(
        X, np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y)]).astype(int)
    )
    np.testing.assert_array_equal(model.predict(X)[:, 1:], np.tile([0, 1], (30, 1)))
    np.testing.assert_array_equal(model.decision_function(X)[:, 1:], np.tile([-1, 1], (30, 1)))


def test_more_neighbours_than_samples_are_all_of_them():
    X, y = draw(4)
    y[0] = 1
    assert (NearestNeighbor(500).fit(X, y).predict(X) == 1).all()
    with pytest.raises(ConfigError):
        NearestNeighbor(0).check(4)


def draw_ml_knn(seed, n=40, d=5, c=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, c)) + rng.standard_normal((n, c)) > 0.3).astype(int)


def by_loops(X, Y, X_test, k, s):
    """Probabilities as Zhang & Zhou print them."""
    n, c = Y.shape
    k = min(k, n - 1)
    probabilities = np.empty((len(X_test), c))

    def count(x, label, leave_out=None):
        order = sorted((float(np.sum((x - X[i]) ** 2)), i) for i in range(n) if i != leave_out)
        return sum(Y[i, label] for _, i in order[:k])

    for label in range(c):
        having, without = [0] * (k + 1), [0] * (k + 1)
        for i in range(n):
            (having if Y[i, label] else without)[count(X[i], label, leave_out=i)] += 1
        prior = (s + Y[:, label].sum()) / (2 * s + n)
        for t, x in enumerate(X_test):
            j = count(x, label)
            one = prior * (s + having[j]) / (s * (k + 1) + sum(having))
            zero = (1 - prior) * (s + without[j]) / (s * (k + 1) + sum(without))
            probabilities[t, label] = one / (one + zero)
    return probabilities


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**16),
    k=st.integers(1, 9),
    smoothing=st.sampled_from([0.1, 1.0, 3.0]),
    n=st.integers(6, 30),
)
def test_it_is_the_loop_version(seed, k, smoothing, n):
    X, Y = draw_ml_knn(seed, n)
    X_test, _ = draw_ml_knn(seed + 1, 8)
    model = MLkNN(k, smoothing).fit(X, Y)
    expected = by_loops(X, Y, X_test, k, smoothing)
    np.testing.assert_allclose(model.decision_function(X_test) + 0.5, expected, atol=1e-12)
    clear = np.abs(expected - 0.5) > 1e-12
    np.testing.assert_array_equal(model.predict(X_test)[clear], (expected >= 0.5)[clear])
    # A tie is positive.
    np.testing.assert_array_equal(model.predict(X_test), model.decision_function(X_test) >= 0)


def test_one_label_a_sample_is_the_largest_of_the_one_hot_problems():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    for classes in (2, 3):
        chosen = y < classes
        own, labels = X[chosen], y[chosen]
        one_hot = np.eye(classes, dtype=int)[labels]
        together, single = MLkNN(7).fit(own[::2], one_hot[::2]), MLkNN(7).fit(own[::2], labels[::2])
        values = together.decision_function(own[1::2])
        found = single.decision_function(own[1::2])
        np.testing.assert_allclose(found, values if classes > 2 else values[:, 1], atol=1e-12)
        np.testing.assert_array_equal(single.predict(own[1::2]), values.argmax(axis=1))
        assert single.score(own[1::2], labels[1::2]) > 0.9


@pytest.mark.parametrize("smoothing", [1e-3, 1.0, 100.0])
def test_an_empty_label_is_never_predicted_and_a_full_one_always(smoothing):
    X, Y = draw_ml_knn(3)
    Y[:, 1], Y[:, 2] = 0, 1
    model = MLkNN(5, smoothing).fit(X, Y)
    predicted = model.predict(draw_ml_knn(4, 200)[0])
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()
    assert model.priors_[1] == pytest.approx(smoothing / (2 * smoothing + len(X)))


def test_as_many_neighbours_as_there_are():
    X, Y = draw_ml_knn(5, 12)
    many, all_others = MLkNN(50).fit(X, Y), MLkNN(11).fit(X, Y)
    np.testing.assert_array_equal(many.decision_function(X), all_others.decision_function(X))
    assert many.likelihoods_.shape == (2, 12, 4)


def test_more_neighbours_than_are_prepared():
    X, Y = draw_ml_knn(6, 120)
    k = PREPARED_NEIGHBORS + 6
    prepared = MLkNN().prepare(X, Y)
    assert prepared.neighbours.shape == (120, PREPARED_NEIGHBORS)
    model = MLkNN(k)
    for _ in model.iterate(X, Y, prepared):
        pass
    np.testing.assert_allclose(
        model.decision_function(X[:5]) + 0.5, by_loops(X, Y, X[:5], k, 1.0), atol=1e-12
    )


def test_an_own_neighbour_is_not_counted():
    """A label that alternates along a line is learnt only if a sample is not its own neighbour."""
    X, Y = np.arange(40.0)[:, None], np.tile([[0, 1], [1, 0]], (20, 1))
    np.testing.assert_array_equal(MLkNN(1).fit(X, Y).predict(X), 1 - Y)


@pytest.mark.slow
def test_msrcv2_has_the_figures_of_another_implementation(msrcv2, figures):
    """Macro precision and F1, micro precision and F1 over five folds; the spread of other folds
    is about .02.
    """
    np.testing.assert_allclose(figures(MLkNN(), msrcv2), [0.712, 0.555, 0.841, 0.691], atol=0.02)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), unit=st.sampled_from([1.0, 0.1]))
def test_ties_of_distances_that_centring_would_round_apart(seed, unit):
    """Counts and grades: the differences of the samples are exact, those of the centred samples
    are not.
    """
    rng = np.random.default_rng(seed)
    X, others = unit * rng.integers(-3, 4, (25, 3)), unit * rng.integers(-3, 4, (8, 3))
    expected = np.argsort(((others[:, None] - X) ** 2).sum(axis=2), axis=1, kind="stable")
    np.testing.assert_array_equal(nearest(others, X, 5), expected[:, :5])


def test_of_equally_near_samples_the_first_are_neighbours_whatever_the_number_of_threads():
    """Binary features have many ties, also with the neighbours that are prepared for all
    configurations.
    """
    rng = np.random.default_rng(0)
    X, Y = (rng.random((700, 8)) < 0.5).astype(float), (rng.random((700, 3)) < 0.4).astype(int)
    squared = cdist(X, X, "sqeuclidean") + np.diag(np.full(700, np.inf))
    expected = np.argsort(squared, axis=1, kind="stable")
    np.testing.assert_array_equal(nearest_others(X, 64), expected[:, :64])
    np.testing.assert_array_equal(nearest_others(X, 10), expected[:, :10])
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(MLkNN().fit(X[:600], Y[:600]).decision_function(X[600:]))
    np.testing.assert_array_equal(*found)
    alone = [MLkNN().fit(X[:600], Y[:600]).decision_function(X[i : i + 1])[0] for i in (600, 650)]
    np.testing.assert_array_equal(found[0][[0, 50]], alone)
    offset = X[:100] + 1e7  # squared norms lose these digits
    np.testing.assert_array_equal(nearest_others(offset, 5), nearest_others(X[:100], 5))
