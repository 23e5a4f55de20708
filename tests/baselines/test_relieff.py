"""ReliefF against a plain loop of the published sum, and against fast-select."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples

from raysel.baselines.relieff import ReliefF


def literal_weights(X, y, k):
    """The sum as printed, over every sample; distances that differ by rounding are equal."""
    n, d = X.shape
    ranges = X.max(axis=0) - X.min(axis=0)
    classes, counts = np.unique(y, return_counts=True)
    shares = dict(zip(classes, counts / n, strict=True))
    weights = np.zeros(d)

    def diff(a, b):
        return np.array([abs(X[a, j] - X[b, j]) / ranges[j] if ranges[j] > 0 else 0.0 for j in range(d)])

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
    """Samples with many equal distances, which rounding makes different: ranges are no powers of two."""
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
    np.testing.assert_allclose(ReliefF().fit(1e8 + unit * X, y).weights_, ReliefF().fit(X, y).weights_, atol=1e-14)


def test_classes_of_one_and_more_neighbours_than_samples():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((8, 4)), np.array([0, 1, 1, 1, 2, 2, 2, 2])
    np.testing.assert_allclose(ReliefF(50).fit(X, y).weights_, literal_weights(X, y, 50), atol=1e-14)
    alone = ReliefF().fit(X[:3], [0, 1, 2])  # no hits at all
    np.testing.assert_allclose(alone.weights_, literal_weights(X[:3], np.arange(3), 5), atol=1e-14)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_neighbors")
@pytest.mark.parametrize("k", [1, 5])
def test_fast_select_agrees_on_real_images(orl, usps, k):
    from fast_select import ReliefF as Witness  # noqa: PLC0415 - compiles for seconds

    for X, y in (orl, usps, (usps[0][7:], usps[1][7:])):  # the last unbalanced
        theirs = Witness(n_features_to_select=1, n_neighbors=k, discrete_limit=1, backend="cpu").fit(X, y)
        ours = ReliefF(k).fit(X, y).weights_
        np.testing.assert_allclose(ours, theirs.feature_importances_, atol=5e-5)  # theirs are single precision
        assert np.corrcoef(ours, theirs.feature_importances_)[0, 1] > 1 - 1e-6
