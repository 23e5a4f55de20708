"""Nearest neighbours down a ranking against scikit-learn's, one fit a number of features."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from operator import eq, lt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.core.errors import DataError
from raysel.evaluation.neighbours import NearestNeighborsClassifier, knn_path, knn_scores


def data(seed: int, n_train: int = 80, n_test: int = 50, d: int = 30):
    generator = np.random.default_rng(seed)
    y = generator.permutation(np.array(["ape", "bee", "cat"] * n_train)[:n_train])
    centres = {name: generator.standard_normal(d) for name in np.unique(y)}
    X = np.array([centres[name] for name in y]) + 1.5 * generator.standard_normal((n_train, d))
    arrays = X, y, generator.standard_normal((n_test, d)), generator.permutation(d)
    for array in arrays:
        array.flags.writeable = False  # nothing is written into the samples
    return arrays


def reference(X, y, test, order, n_features, k):
    return [
        KNeighborsClassifier(k, algorithm="brute")
        .fit(X[:, order[:n]], y)
        .predict(test[:, order[:n]])
        for n in n_features
    ]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_it_is_scikit_learns_at_every_number_of_features(k):
    X, y, test, order = data(k)
    every = [*range(1, 12), 17, 23, 30]
    actual = list(knn_path(X, y, test, order, every, k))
    expected = reference(X, y, test, order, every, k)
    if (
        k > 1
    ):  # a tie between three classes is scikit-learn's to break: compare where there is a majority
        for n, here, there in zip(every, actual, expected, strict=True):
            nearest = (
                KNeighborsClassifier(k)
                .fit(X[:, order[:n]], y)
                .kneighbors(test[:, order[:n]], return_distance=False)
            )
            clear = [
                len(c) == 1 or c[0][1] > c[1][1]
                for c in (Counter(y[row]).most_common(2) for row in nearest)
            ]
            assert np.array_equal(here[clear], there[clear])
            assert sum(clear) > len(test) // 2
    assert np.array_equal(actual, expected)  # both break them to the smaller label


def test_a_few_numbers_of_features_are_those_of_the_whole_path():
    X, y, test, order = data(7, n_train=300, n_test=700)
    whole = list(knn_path(X, y, test, order, range(1, 31), 3))
    some = list(knn_path(X, y, test, order, [2, 11, 30], 3))
    assert np.array_equal(some, [whole[1], whole[10], whole[29]])
    assert np.array_equal(some, reference(X, y, test, order, [2, 11, 30], 3))


@pytest.mark.parametrize("shift", [1e6, -1e6])
def test_moving_everything_changes_nothing(shift):
    X, y, test, order = data(1)
    every = range(1, 31)
    here = list(knn_path(X, y, test, order, every, 1))
    assert np.array_equal(list(knn_path(X + shift, y, test + shift, order, every, 1)), here)


def test_one_wild_training_sample_does_not_blur_the_others():
    X, y, test, order = data(2)
    for wild in (0, 5, len(X) - 1):
        X_wild = X.copy()
        X_wild[wild] = 1e9
        expected = reference(
            np.delete(X, wild, axis=0), np.delete(y, wild), test, order, [1, 5, 30], 1
        )
        assert np.array_equal(list(knn_path(X_wild, y, test, order, [1, 5, 30], 1)), expected)


@given(
    n_train=st.integers(2, 30),
    n_test=st.integers(1, 12),
    d=st.integers(1, 6),
    k=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_tied_samples_share_the_votes_and_tied_votes_go_to_the_smaller_label(
    n_train, n_test, d, k, seed
):
    """Small whole numbers tie all the time; the rule is written out sample by sample, in
    fractions.
    """
    generator = np.random.default_rng(seed)
    X = generator.integers(-2, 3, (n_train, d)).astype(float)
    test = generator.integers(-2, 3, (n_test, d)).astype(float)
    y = generator.permutation(np.array([3, 1, 2] * n_train)[:n_train])
    order = generator.permutation(d)
    n_features = list(range(1, d + 1))
    for n, actual in zip(n_features, knn_path(X, y, test, order, n_features, k), strict=True):
        for row, label in zip(test, actual, strict=True):
            distance = [sum((row[f] - other[f]) ** 2 for f in order[:n]) for other in X]
            last = sorted(distance)[min(k, n_train) - 1]
            nearer, tied = (
                Counter(int(y[i]) for i in range(n_train) if at(distance[i], last))
                for at in (lt, eq)
            )
            share = Fraction(min(k, n_train) - nearer.total(), tied.total())
            votes = {name: nearer[name] + share * tied[name] for name in (1, 2, 3)}
            assert label == min(votes, key=lambda name: (-votes[name], name))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("multilabel", [False, True])
def test_the_order_of_the_training_samples_does_not_matter(k, multilabel):
    """Few grey levels tie often; divided by 3 they are no whole numbers any more."""
    X, y = load_digits(return_X_y=True)
    X, test = np.floor(X[:300] / 4) / 3, np.floor(X[300:500] / 4) / 3
    y = (
        (y[:300, None] == np.arange(10)).astype(int) | (y[:300, None] % 3 == np.arange(10))
        if multilabel
        else y[:300]
    )
    order, every = np.random.default_rng(0).permutation(64), [1, 3, 8, 20, 64]
    expected = knn_path(X, y, test, order, every, k)
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(300)
        np.testing.assert_array_equal(knn_path(X[rows], y[rows], test, order, every, k), expected)
    # Tied scores stay tied, also those of test samples that are training samples.
    test = np.vstack([X[100:200], test])
    expected = knn_scores(X, y, test, order, every)
    assert len(np.unique(expected)) < expected.size
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(300)
        np.testing.assert_array_equal(knn_scores(X[rows], y[rows], test, order, every), expected)


@pytest.mark.parametrize("seed", range(4))
def test_distances_that_single_precision_cannot_tell_apart_are_told_apart(seed):
    """Two samples of different classes, of which one is nearer by 1e-9 of its distance."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((40, 9)) + 20.0
    test = X[:15] + 0.5 * generator.standard_normal((15, 9))
    y = np.repeat([0, 1], 20)
    X[20:] = X[:20] + 1e-9 * (2 * generator.integers(0, 2, (20, 1)) - 1)
    order, every = generator.permutation(9), [2, 5, 9]
    for n, predicted in zip(every, knn_path(X, y, test, order, every), strict=True):
        distance = [
            [
                sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(s[best], t[best], strict=True))
                for s in X
            ]
            for best in [order[:n]]
            for t in test
        ]
        np.testing.assert_array_equal(predicted, y[[row.index(min(row)) for row in distance]])
        assert len(np.unique(predicted)) == 2


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-30, 1e30])
def test_the_set_of_features_alone_decides(scale):
    """Few grey levels tie often; computed with the features in another order, and with other
    numbers of features.
    """
    X, y = load_digits(return_X_y=True)
    X, test, y = scale * X[:300], scale * X[300:500], y[:300]
    generator = np.random.default_rng(3)
    order, every = generator.permutation(64), [2, 5, 11, 30]
    whole = knn_path(X, y, test, order, every)
    for n, expected in zip(every, whole, strict=True):
        for _ in range(3):
            other = generator.permutation(order[:n])
            np.testing.assert_array_equal(
                knn_path(X, y, test, other, sorted({1, n // 2, n}))[-1], expected
            )
    # Scaling by a factor that is no power of two rounds, and changes nothing either.
    np.testing.assert_array_equal(whole, knn_path(X / scale, y, test / scale, order, every))


# --- scores of the classes -----------------------------------------------------------------------


def class_distances(X, having, test, features):
    """The definition: the distance to the nearest sample without a class or label, less that to
    one with it.
    """
    D = np.sqrt(((test[:, None, features] - X[None][:, :, features]) ** 2).sum(axis=2))
    columns = [
        D[:, ~part].min(axis=1, initial=np.inf) - D[:, part].min(axis=1, initial=np.inf)
        for part in having
    ]
    return np.stack(columns, axis=1)


@given(
    st.integers(4, 30),
    st.integers(1, 12),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_scores_are_differences_of_class_distances(n_train, n_test, d, multilabel, seed):
    rng = np.random.default_rng(seed)
    X, test = rng.standard_normal((n_train, d)), rng.standard_normal((n_test, d))
    test[0] = X[1]
    order, every = rng.permutation(d), list(range(1, d + 1))
    if multilabel:
        y = (rng.random((n_train, 3)) < 0.4).astype(int)
        y[:, 2] = 0  # a label that no training sample has
        having = list(y.T == 1)
    else:
        y = rng.permutation(np.array(["b", "c", "a"] * n_train)[:n_train])
        having = [y == name for name in np.unique(y)]
    for n, actual in zip(every, knn_scores(X, y, test, order, every), strict=True):
        np.testing.assert_allclose(
            actual, class_distances(X, having, test, order[:n]), rtol=1e-6, atol=1e-6
        )


def expected_failures(estimator):
    """Scores of the classes are distances to the nearest sample of each, which need not win the
    vote of several.
    """
    checks = ("check_classifiers_train", "check_classifier_multioutput")
    return dict.fromkeys(checks, expected_failures.__doc__) if estimator.n_neighbors > 1 else {}


@parametrize_with_checks([NearestNeighborsClassifier(3)], expected_failed_checks=expected_failures)
def test_it_follows_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_ties_are_broken_as_in_the_search_and_in_any_order_of_the_samples(k):
    X, y = load_digits(return_X_y=True)  # whole numbers, of which a few pixels tie often
    X, y = X[:300, 18:22], y[:300]
    order = np.random.default_rng(k).permutation(200)
    features = np.arange(4)
    actual = NearestNeighborsClassifier(k).fit(X[:200], y[:200])
    moved = NearestNeighborsClassifier(k).fit(X[order], y[order])
    expected = knn_path(X[:200], y[:200], X[200:], features, [2, 4], k)[1]
    np.testing.assert_array_equal(actual.predict(X[200:]), expected)
    np.testing.assert_array_equal(moved.predict(X[200:]), expected)
    scores = knn_scores(X[:200], y[:200], X[200:], features, [4])[0]
    np.testing.assert_array_equal(actual.decision_function(X[200:]), scores)


def test_an_indicator_is_predicted_label_by_label():
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).random(X.shape)
    Y = np.stack([y == 0, y == 1, y > 0], axis=1).astype(int)
    model = NearestNeighborsClassifier(3).fit(X[::2], Y[::2])
    np.testing.assert_array_equal(
        model.predict(X[1::2]), KNeighborsClassifier(3).fit(X[::2], Y[::2]).predict(X[1::2])
    )
    assert model.decision_function(X[1::2]).shape == (75, 3)
    with pytest.raises(DataError, match="indicator of 0 and 1"):
        model.fit(X, np.stack([y, y], axis=1))
