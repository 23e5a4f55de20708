"""Means and scatters of classes against exact rational numbers, and the scores that come from them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples

from raysel.baselines import filter as module
from raysel.baselines.filter import class_codes, class_moments
from raysel.baselines.fisher_score import FisherScore
from raysel.baselines.t_test import TTest

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
        np.testing.assert_allclose(means[:, j], [float(mean - first) for mean, _ in found], rtol=0, atol=1e-14 * size)
        np.testing.assert_allclose(scatters[:, j], [float(scatter) for _, scatter in found], rtol=1e-12, atol=0)


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
    np.testing.assert_allclose(method.fit(1e8 + unit * X, y).scores_, method.fit(X, y).scores_, rtol=1e-12)


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
