"""Stability at chance against all selections there are, and against random rankings."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from raysel.errors import ConfigError
from raysel.metrics.chance import stability_at_chance
from raysel.metrics.stability import nogueira_stability


def enumerated(sizes, d, c):
    """Index of every combination of sets of these sizes among the first c of d features."""
    found = []
    for sets in product(*(combinations(range(c), k) for k in sizes)):
        Z = np.zeros((len(sizes), d), dtype=bool)
        for row, chosen in zip(Z, sets, strict=True):
            row[list(chosen)] = True
        found.append(nogueira_stability(Z).value)
    return np.array(found)


@pytest.mark.parametrize(
    ("sizes", "d", "c"), [((2, 2), 6, 6), ((1, 2, 2), 5, 4), ((2, 2, 2), 5, 5), ((0, 3, 1), 5, 5), ((3, 3), 5, 3)]
)
def test_mean_and_range_are_those_of_all_selections(sizes, d, c):
    values, found = enumerated(sizes, d, c), stability_at_chance(sizes, d, c)
    assert found.mean == pytest.approx(values.mean(), abs=1e-12)
    # No more than 2.5 % on either side, up to the error of 1000 draws.
    assert (values < found.lower - 1e-9).mean() < 0.045
    assert (values > found.upper + 1e-9).mean() < 0.045
    assert values.min() - 1e-9 <= found.lower <= found.upper <= values.max() + 1e-9


def test_chance_is_zero_for_sets_of_one_size_when_all_features_can_be_chosen():
    assert stability_at_chance([7] * 4, 30).mean == pytest.approx(0, abs=1e-12)
    assert stability_at_chance([7, 3, 9, 9], 30).mean < 0
    assert stability_at_chance([7] * 4, 30, 20).mean > 0


def test_the_range_is_that_of_random_rankings():
    rng = np.random.default_rng(5)
    sizes, d, c = [6, 10, 10, 8, 10], 60, 45
    values = []
    for _ in range(4000):
        Z = np.zeros((len(sizes), d), dtype=bool)
        for row, k in zip(Z, sizes, strict=True):
            row[rng.permutation(c)[:k]] = True
        values.append(nogueira_stability(Z).value)
    found = stability_at_chance(sizes, d, c)
    spread = np.std(values)
    assert abs(found.mean - np.mean(values)) < 4 * spread / np.sqrt(4000)
    np.testing.assert_allclose(
        [found.lower, found.upper], np.quantile(values, [0.025, 0.975]), atol=0.4 * spread
    )  # the index has steps


def test_sets_of_one_size_spread_as_their_overlaps_do():
    """Overlaps of independent sets are pairwise independent, so the variance of their mean is known."""
    m, d, k = 20, 200, 50
    overlap = k * (k / d) * (1 - k / d) * (d - k) / (d - 1)  # variance of the hypergeometric distribution
    expected = np.sqrt(overlap / (m * (m - 1) / 2)) / (k - k * k / d)
    found = stability_at_chance([k] * m, d)
    assert (found.upper - found.lower) / (2 * 1.96) == pytest.approx(expected, rel=0.12)


def test_the_same_sizes_give_the_same_range():
    assert stability_at_chance([4, 5], 20) == stability_at_chance([4, 5], 20)


@pytest.mark.parametrize(("sizes", "c"), [((3,), 5), ((), 5), ((0, 0), 5), ((5, 5), 5)])
def test_undefined_where_the_index_is(sizes, c):
    found = stability_at_chance(sizes, c)
    assert np.isnan([found.mean, found.lower, found.upper]).all()


@pytest.mark.parametrize(("sizes", "c"), [((3, 6), 5), ((-1, 2), 5), ((1, 2), 9)])
def test_refuses_sizes_that_cannot_be(sizes, c):
    with pytest.raises(ConfigError, match="must lie between 0 and"):
        stability_at_chance(sizes, 8, c)
