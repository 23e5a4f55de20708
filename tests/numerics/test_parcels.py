"""Parcels of neighbouring columns: neighbours and connected clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import label
from sklearn.feature_extraction.image import grid_to_graph

from raysel.numerics.parcels import form_regions, grid_neighbours


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
