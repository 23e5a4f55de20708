"""Regions of neighbouring columns: means, joined p values, connected sets."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, label

from raysel.numerics.parcels import grid_neighbours
from raysel.numerics.regions import (
    connected_sets,
    join_p_values,
    region_means,
    region_p_values,
)


def test_means_are_those_of_the_columns():
    rng = np.random.default_rng(2)
    X, regions = rng.standard_normal((20, 9)), rng.permutation([0, 0, 0, 1, 1, 2, 2, 2, 2])
    means = region_means(X, regions)
    for number in range(3):
        expected = X[:, regions == number].mean(axis=1)
        expected = (expected - expected.mean()) / expected.std()
        np.testing.assert_allclose(means[:, number], expected, atol=1e-12)


def test_joined_p_values_by_brute_force():
    """Twice the median is the smallest level that half of the p values reach when doubled."""
    p_values = np.random.default_rng(3).random((7, 50)) ** 2
    joined = join_p_values(p_values)
    for column, found in zip(p_values.T, joined, strict=True):
        levels = [p for p in column if (column <= p).mean() >= 0.5]
        assert found == min(1.0, 2 * min(levels))


def test_joined_p_values_keep_their_level_when_they_depend():
    """The same p value in all clusterings, and p values that do not depend at all."""
    rng = np.random.default_rng(4)
    alone = rng.random(4000)
    for p_values in (np.tile(alone, (5, 1)), rng.random((5, 4000))):
        assert (join_p_values(p_values) <= 0.1).mean() < 0.1


def test_connected_sets_are_those_of_an_image():
    chosen = np.random.default_rng(5).random((15, 15)) < 0.5
    sets = connected_sets(chosen.ravel(), grid_neighbours(np.arange(225).reshape(15, 15)))
    expected, n = label(chosen)
    assert sets.max() + 1 == n
    pairs = set(zip(sets.tolist(), expected.ravel().tolist(), strict=True))
    assert len(pairs) == n + 1
    assert (-1, 0) in pairs


def test_only_regions_with_an_effect_of_their_own_have_small_p_values():
    """A column beside the regions explains the second; the first one tells more than it."""
    rng = np.random.default_rng(6)
    n, regions = 200, np.repeat(np.arange(6), 5)
    beside = rng.standard_normal((n, 1))
    X = gaussian_filter(rng.standard_normal((n, 30)), (0, 1))
    X[:, regions == 1] += beside
    y = 2 * X[:, regions == 0].mean(axis=1) + beside[:, 0] + 0.5 * rng.standard_normal(n)
    Y = ((y - y.mean()) / y.std())[:, None]
    folds = [(np.flatnonzero(np.arange(n) % 4 != k), np.arange(k, n, 4)) for k in range(4)]
    given = {"beside": (beside - beside.mean()) / beside.std(), "folds": folds}
    p_values = region_p_values(X, Y, regions, np.arange(n), **given)
    assert p_values[0] < 1e-6
    assert p_values[1:].min() > 0.01
    without = region_p_values(X, Y, regions, np.arange(n), beside=np.empty((n, 0)), folds=folds)
    assert without[1] < 1e-6
