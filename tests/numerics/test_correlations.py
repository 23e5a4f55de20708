"""Groups of columns that correlate, against scipy's clusters of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics import correlations
from raysel.numerics.correlations import correlated_groups


def modules(n_samples: int = 40, n_modules: int = 12, seed: int = 0) -> FloatArray:
    """Columns in modules of three that follow a factor, half of them with the other sign."""
    rng = np.random.default_rng(seed)
    factors = np.repeat(rng.normal(size=(n_samples, n_modules)), 3, axis=1)
    signs = rng.choice([-1.0, 1.0], factors.shape[1])
    noise = rng.normal(size=factors.shape)
    return (signs * (factors + 0.5 * noise))[:, rng.permutation(factors.shape[1])]


def members(numbers: IntArray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(numbers == number).tolist()) for number in numbers}


@pytest.mark.parametrize("at", [0.2, 0.5, 0.7, 0.95])
def test_equal_to_complete_linkage_of_the_whole_matrix(
    at: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correlations, "_AT_ONCE", 100)  # several blocks of columns
    X = modules()
    distances = squareform(1 - np.abs(np.corrcoef(X.T)), checks=False)
    expected = fcluster(linkage(distances, "complete"), 1 - at, "distance").astype(int)
    assert members(correlated_groups(X, at)) == members(expected)


def test_no_two_columns_of_a_group_correlate_less() -> None:
    X = modules(n_modules=40, seed=1)
    numbers = correlated_groups(X, 0.4)
    r = np.abs(np.corrcoef(X.T))
    assert (r[numbers[:, None] == numbers] >= 0.4).all()
    assert len(set(numbers.tolist())) < X.shape[1]


def test_order_units_and_signs_of_the_columns_do_not_matter() -> None:
    X, rng = modules(seed=2), np.random.default_rng(3)
    order = rng.permutation(X.shape[1])
    changed = (X * rng.uniform(-9, 9, X.shape[1]) + 5)[:, order]
    found = {frozenset(order[list(group)]) for group in members(correlated_groups(changed, 0.7))}
    assert found == members(correlated_groups(X, 0.7))


def test_groups_are_numbered_by_their_first_column_and_constant_ones_are_alone() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    X = np.column_stack([a, np.full(30, 0.1), b, -2 * a, np.full(30, 0.1), b + 1])
    before = X.copy()
    for at in (0.7, 1.0):
        assert correlated_groups(X, at).tolist() == [0, 1, 2, 0, 3, 2]
    np.testing.assert_array_equal(X, before)
