"""Regions of neighbouring columns: neighbours, connected clusters, joined p values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, label
from sklearn.feature_extraction.image import grid_to_graph

from raysel.numerics.regions import (
    connected_sets,
    form_regions,
    grid_neighbours,
    join_p_values,
    region_means,
    region_p_values,
)


def cells_of(mask):
    """Array of the numbers of a mask's cells, -1 outside."""
    cells = np.full(mask.shape, -1)
    cells[mask] = np.arange(mask.sum())
    return cells


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 5)])
def test_neighbours_are_those_of_scikit_learn(shape):
    mask = np.random.default_rng(0).random(shape) < 0.7
    ours = grid_neighbours(cells_of(mask)).toarray()
    theirs = grid_to_graph(*shape, mask=mask).toarray()
    np.testing.assert_array_equal(ours, theirs - np.diag(np.diag(theirs)))


@pytest.mark.parametrize("gap", [False, True])
def test_regions_are_connected_also_where_the_mask_is_not(gap):
    mask = np.ones((12, 9), dtype=bool)
    mask[:, 4] = not gap
    X = np.random.default_rng(0).standard_normal((30, mask.sum()))
    neighbours = grid_neighbours(cells_of(mask))
    regions = form_regions(X, neighbours, 10)
    assert regions.max() + 1 in ((10,) if not gap else (10, 11))
    for number in range(regions.max() + 1):
        image = np.zeros(mask.shape)
        image[mask] = regions == number
        assert label(image)[1] == 1
    np.testing.assert_array_equal(regions, form_regions(X, neighbours, 10))


def test_regions_follow_what_varies_together():
    """Four quarters, each with a signal of its own in common, are the four regions."""
    rng = np.random.default_rng(1)
    quarter = np.kron([[0, 1], [2, 3]], np.ones((4, 4), dtype=int)).ravel()
    X = rng.standard_normal((40, 4))[:, quarter] + 0.3 * rng.standard_normal((40, 64))
    regions = form_regions(X, grid_neighbours(np.arange(64).reshape(8, 8)), 4)
    assert len(set(zip(regions.tolist(), quarter.tolist(), strict=True))) == 4


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
