"""ML-kNN against a loop over samples and labels, its degenerate cases, and MSRC-v2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from raysel.baselines.ml_knn import PREPARED_NEIGHBORS, MLkNN, nearest, nearest_others


def draw(seed, n=40, d=5, c=4):
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
    seed=st.integers(0, 2**16), k=st.integers(1, 9), smoothing=st.sampled_from([0.1, 1.0, 3.0]), n=st.integers(6, 30)
)
def test_it_is_the_loop_version(seed, k, smoothing, n):
    X, Y = draw(seed, n)
    X_test, _ = draw(seed + 1, 8)
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
    X, Y = draw(3)
    Y[:, 1], Y[:, 2] = 0, 1
    model = MLkNN(5, smoothing).fit(X, Y)
    predicted = model.predict(draw(4, 200)[0])
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()
    assert model.priors_[1] == pytest.approx(smoothing / (2 * smoothing + len(X)))


def test_as_many_neighbours_as_there_are():
    X, Y = draw(5, 12)
    many, all_others = MLkNN(50).fit(X, Y), MLkNN(11).fit(X, Y)
    np.testing.assert_array_equal(many.decision_function(X), all_others.decision_function(X))
    assert many.likelihoods_.shape == (2, 12, 4)


def test_more_neighbours_than_are_prepared():
    X, Y = draw(6, 120)
    k = PREPARED_NEIGHBORS + 6
    prepared = MLkNN().prepare(X, Y)
    assert prepared.neighbours.shape == (120, PREPARED_NEIGHBORS)
    model = MLkNN(k)
    for _ in model.iterate(X, Y, prepared):
        pass
    np.testing.assert_allclose(model.decision_function(X[:5]) + 0.5, by_loops(X, Y, X[:5], k, 1.0), atol=1e-12)


def test_an_own_neighbour_is_not_counted():
    """A label that alternates along a line is learnt only if a sample is not its own neighbour."""
    X, Y = np.arange(40.0)[:, None], np.tile([[0, 1], [1, 0]], (20, 1))
    np.testing.assert_array_equal(MLkNN(1).fit(X, Y).predict(X), 1 - Y)


def test_msrcv2_has_the_figures_of_another_implementation(msrcv2, figures):
    """Macro precision and F1, micro precision and F1 over five folds; the spread of other folds is about .02."""
    np.testing.assert_allclose(figures(MLkNN(), msrcv2), [0.712, 0.555, 0.841, 0.691], atol=0.02)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**16), unit=st.sampled_from([1.0, 0.1]))
def test_ties_of_distances_that_centring_would_round_apart(seed, unit):
    """Counts and grades: the differences of the samples are exact, those of the centred samples are not."""
    rng = np.random.default_rng(seed)
    X, others = unit * rng.integers(-3, 4, (25, 3)), unit * rng.integers(-3, 4, (8, 3))
    expected = np.argsort(((others[:, None] - X) ** 2).sum(axis=2), axis=1, kind="stable")
    np.testing.assert_array_equal(nearest(others, X, 5), expected[:, :5])


def test_of_equally_near_samples_the_first_are_neighbours_whatever_the_number_of_threads():
    """Binary features have many ties, also with the neighbours that are prepared for all configurations."""
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
