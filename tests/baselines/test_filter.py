"""Bins against exact fractions, and the information of binned features against scikit-learn's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples
from sklearn.metrics import mutual_info_score
from sklearn.preprocessing import LabelEncoder

from raysel.baselines import filter as module
from raysel.baselines.filter import (
    MOST_BINS,
    Filter,
    bin_range,
    class_codes,
    class_moments,
    constant_columns,
    first_largest,
    information,
    order_scores,
)
from raysel.baselines.univariate_filters import FisherScore, TTest
from raysel.core.errors import DataError


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), bins=st.integers(1, MOST_BINS))
def test_bins_have_equal_widths_and_the_last_one_holds_the_maximum(seed, bins):
    """Of whole numbers, whose bins can be computed without rounding."""
    X = np.random.default_rng(seed).integers(-40, 40, (9, 4)).astype(float)
    X[:, 3] = 7.0
    found = bin_range(X).assign_bins(X, bins)
    for column, own in zip(X.T, found.T, strict=True):
        low, width = Fraction(column.min()), Fraction(np.ptp(column))
        exact = [
            min(int(bins * (Fraction(x) - low) / width), bins - 1) if width else 0 for x in column
        ]
        near = [width and (bins * (Fraction(x) - low) / width).denominator == 1 for x in column]
        # Where a value is the edge of two bins, the quotient may round to either side.
        assert all(
            b == e or (edge and b == e - 1) for b, e, edge in zip(own, exact, near, strict=True)
        )
        assert own[column.argmax()] == (bins - 1 if width else 0)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), bins=st.integers(1, 9), cached=st.sampled_from([1, 40, 2**16]))
def test_information_is_scikit_learns_whatever_the_block_size(seed, bins, cached):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(20) % 3)
    binned = rng.integers(0, bins, (20, 5)).astype(np.uint8)
    binned[:, 0] = codes % bins
    before, module._CACHED = module._CACHED, cached
    try:
        found = information(binned, bins, codes, np.bincount(codes))
    finally:
        module._CACHED = before
    expected = [mutual_info_score(codes, column) / np.log(2) for column in binned.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


FILTERS = [FisherScore(), TTest(), TTest("mean"), FisherScore("set", 0.0)]


def exact_moments(column, y):
    """Mean and sum of squared deviations of each class, without rounding."""
    for r in np.unique(y):
        values = [Fraction(x) for x in column[y == r].tolist()]
        mean = sum(values) / len(values)
        yield mean, sum((x - mean) ** 2 for x in values)


@settings(max_examples=25)
@given(
    labelled_samples(),
    st.sampled_from([0.0, 1.0, 1e8]),
    st.sampled_from([1e-300, 1e-6, 1.0, 1e300]),
    st.integers(1, 99),
)
def test_they_are_exact_up_to_the_last_digits(samples, offset, unit, cached):
    X, y = samples
    X = (X + offset) * unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CACHED", cached)
        means, scatters = class_moments(X, *class_codes(y))
    powers = module.power_units(X)
    assert (np.frexp(powers)[0] == 0.5).all()
    for j, power in enumerate(powers):
        column = X[:, j]
        found = list(exact_moments(column * power, y))
        first, size = Fraction(column[0] * power), np.ptp(column * power)
        np.testing.assert_allclose(
            means[:, j], [float(mean - first) for mean, _ in found], rtol=0, atol=1e-14 * size
        )
        np.testing.assert_allclose(
            scatters[:, j], [float(scatter) for _, scatter in found], rtol=1e-12, atol=0
        )


@settings(max_examples=15)
@given(labelled_samples(least_per_class=2), st.sampled_from(FILTERS))
def test_no_unit_of_a_feature_changes_its_score(samples, method):
    X, y = samples
    here = method.fit(X, y).scores_.copy()
    powers = 2.0 ** np.random.default_rng(len(y)).integers(-900, 900, X.shape[1])
    np.testing.assert_array_equal(method.fit(X * powers, y).scores_, here)


@pytest.mark.parametrize("method", FILTERS)
def test_an_offset_costs_no_digits(method):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 12, (18, 4)).astype(float), np.arange(18) % 3
    unit = 2.0**-26  # the spacing of numbers at 1e8
    np.testing.assert_allclose(
        method.fit(1e8 + unit * X, y).scores_, method.fit(X, y).scores_, rtol=1e-12
    )


@pytest.mark.parametrize("method", [FisherScore(), TTest()])
def test_the_smaller_noise_within_the_classes_has_the_larger_score(method):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 8)
    X = y[:, None] + rng.standard_normal((16, 1)) * [1e-12, 1e-8, 1e-10, 1e-2]
    found = method.fit(X, y)
    assert found.ranking_.tolist() == [1, 3, 2, 4]
    assert found.scores_[0] > 50 * found.scores_[2] > 50**2 * found.scores_[1]


@pytest.mark.filterwarnings("error")
def test_features_whose_scatter_vanishes_beside_gamma_are_not_added():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)) * [1e-250, 1.0, 1e250], np.arange(12) % 3
    assert FisherScore("set").fit(X, y).scores_[0] == 0.0
    assert (FisherScore("set").fit(X, y).scores_[1:] >= 1).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 12), scale=st.sampled_from([1e-8, 1.0, 1e8]))
def test_rounding_does_not_decide_between_copies(seed, n, scale):
    rng = np.random.default_rng(seed)
    values = scale * rng.integers(-3, 4, n).astype(float)
    first = int(np.argmax(values))  # the first of the equal ones
    noise = 1 + 1e-14 * rng.standard_normal(n)
    assert first_largest(values * noise, 3 * scale) == first


def test_differences_of_large_terms_are_compared_by_the_terms_size():
    values = np.array([0.0, 1e-12, -1.0])
    assert first_largest(values, 0.0) == 1
    assert first_largest(values, 1.0) == 0
    assert first_largest(values, np.array([1.0, 1e-6, 1.0])) == 1
    assert first_largest(np.array([-np.inf, -5.0, -np.inf])) == 1


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), d=st.integers(1, 10), n_ordered=st.integers(0, 10))
def test_the_order_of_the_scores_is_the_order(seed, d, n_ordered):
    rng = np.random.default_rng(seed)
    order, others = rng.permutation(d)[:n_ordered], rng.integers(0, 4, d).astype(float)
    given_others = others.copy()
    scores = order_scores(order, others)
    np.testing.assert_array_equal(others, given_others)
    left = np.setdiff1d(np.arange(d), order)
    assert np.argsort(-scores, kind="stable").tolist() == [
        *order,
        *left[np.argsort(-others[left], kind="stable")],
    ]
    assert scores[left].max(initial=0) <= 0.5
    assert scores.min() >= 0


class Largest(Filter):
    """Scores every feature by its maximum."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def prepare(self, X, y):
        return X.max(axis=0)

    def _rate(self, X, prepared):
        return prepared, 2


def test_the_largest_score_of_a_constant_feature_is_not_used():
    X = np.array([[1.0, 9.0, 4.0, 0.0], [3.0, 9.0, 5.0, 0.0]])
    found = Largest().fit(X, [0, 1])
    assert found.scores_.tolist() == [3, 0, 5, 0]
    assert found.ranking_.tolist() == [2, 3, 1, 4]
    assert found.get_support().tolist() == [True, False, True, False]
    assert (found.objective_path_.tolist(), found.n_iter_, found.converged_) == ([2.0], 1, True)
    assert not hasattr(found, "predict")


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 6),
    kind=st.sampled_from([np.uint8, np.float64, bool]),
)
def test_constant_columns_have_one_value(seed, n, kind):
    X = np.random.default_rng(seed).integers(0, 2, (n, 8)).astype(kind)
    assert constant_columns(X).tolist() == [len(set(column.tolist())) == 1 for column in X.T]


def test_classes_are_numbered_as_by_scikit_learn():
    y = np.array(["c", "a", "c", "b", "c", "a"])
    codes, counts = class_codes(y)
    np.testing.assert_array_equal(codes, LabelEncoder().fit_transform(y))
    assert counts.tolist() == [2, 1, 3]
    with pytest.raises(DataError, match=r"y holds one class only \(a\); at least two are needed"):
        class_codes(np.array(["a", "a"]))
