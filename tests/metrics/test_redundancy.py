"""RED against scipy's correlation, pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import pearsonr

from raysel.errors import DataError
from raysel.metrics.redundancy import redundancy


def correlated(n=40, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 100


def test_is_the_mean_over_pairs_of_the_absolute_correlation():
    X, chosen = correlated(), [7, 0, 3, 11]
    expected = np.mean([abs(pearsonr(X[:, f], X[:, g])[0]) for f, g in itertools.combinations(chosen, 2)])
    assert redundancy(X, chosen) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d", [2, 511, 512, 513, 1030])
def test_equals_corrcoef_however_many_features(d):
    X = correlated(d=d)
    matrix = np.abs(np.corrcoef(X.T))
    assert redundancy(X, np.arange(d)) == pytest.approx((matrix.sum() - d) / (d * (d - 1)), rel=1e-12)


def test_constant_features_count_as_uncorrelated_even_where_their_mean_is_not_exact():
    X = correlated(d=3)
    alone = redundancy(X, [0, 1, 2])
    X = np.column_stack([X, np.full(len(X), 0.1)])  # the mean of forty 0.1 is not 0.1
    assert redundancy(X, [0, 1, 2, 3]) == pytest.approx(alone * 3 / 6, rel=1e-12)
    assert redundancy(np.ones((5, 4)), [0, 1, 2]) == 0


def test_mask_order_scale_and_sign_do_not_matter():
    X, chosen = correlated(), np.array([2, 9, 4])
    expected = redundancy(X, chosen)
    mask = np.isin(np.arange(12), chosen)
    scaled = (X - 3) * np.array([1, -1, 1e-200, 1, 1e200, 1, 1, 1, 1, -7, 1, 1])
    assert redundancy(X, mask) == pytest.approx(expected, rel=1e-12)
    assert redundancy(X, chosen[::-1]) == pytest.approx(expected, rel=1e-12)
    assert redundancy(scaled, chosen) == pytest.approx(expected, rel=1e-9)


def test_copies_are_fully_redundant_and_a_lone_feature_is_not():
    x = np.random.default_rng(0).normal(size=(30, 1))
    assert redundancy(np.hstack([x, -x, 3 * x + 1]), [0, 1, 2]) == pytest.approx(1, rel=1e-12)
    assert redundancy(x, [0]) == 0


def test_leaves_the_data_alone():
    X = correlated()
    X.flags.writeable = False
    redundancy(X, np.arange(12))


@pytest.mark.parametrize("bad", [[0, 12], [-1, 2], [3, 3], [True, False]])
def test_refuses_columns_that_are_not_there(bad):
    with pytest.raises(DataError, match="features"):
        redundancy(correlated(), bad)
