"""Rank-biased overlap against a plain reading of its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.core.errors import ConfigError, DataError
from raysel.numerics.rankings import persistence, rank_biased_overlap, top_weight


def defined(first, second, p, depths=1000):
    """The infinite sum of the paper (equation 4), cut where its weights vanish, by sets.

    The features behind the end of a ranking are unknown; the agreement there is extrapolated as the paper
    does: what the shorter one would add agrees as often as it did; behind both ends the agreement stays as it is.
    """
    short, long = sorted((list(first), list(second)), key=len)
    s, total, agreement = len(short), 0.0, 0.0
    agreement_of_short = len(set(short) & set(long[:s])) / s
    for d in range(1, depths + 1):
        if d <= len(long):
            common = len(set(short[:d]) & set(long[:d])) + agreement_of_short * max(d - s, 0)
            agreement = common / d
        total += (1 - p) * p ** (d - 1) * agreement
    return total


rankings = st.integers(1, 9).flatmap(lambda n: st.permutations(range(12)).map(lambda order: order[:n]))
parameters = st.floats(0.05, 0.96)


@given(rankings, rankings, parameters)
def test_equals_the_sum_that_defines_it(first, second, p):
    assert rank_biased_overlap(first, second, p) == pytest.approx(defined(first, second, p), abs=1e-9)


@given(rankings, rankings, parameters, st.permutations(range(12)))
def test_neither_the_order_of_the_two_nor_the_numbering_matters(first, second, p, numbers):
    found = rank_biased_overlap(first, second, p)
    assert rank_biased_overlap(second, first, p) == pytest.approx(found, abs=1e-12)
    renamed = [[numbers[i] for i in ranking] for ranking in (first, second)]
    assert rank_biased_overlap(*renamed, p) == pytest.approx(found, abs=1e-12)
    assert -1e-12 <= found <= 1 + 1e-12
    assert rank_biased_overlap(first, first, p) == pytest.approx(1)
    assert rank_biased_overlap(first, [20 + i for i in second], p) == 0


@pytest.mark.parametrize(("second", "value"), [([2, 3, 4, 1, 5], 0.828), ([1, 2, 3, 4, 5], 1.0)])
def test_equals_the_figures_of_another_implementation(second, value):
    """The example of the Scala package b4ny4n/rankmeasures, an implementation of equation 32."""
    assert rank_biased_overlap([1, 2, 3, 4, 5], second, 0.9) == pytest.approx(value, abs=5e-4)


@given(st.floats(0.05, 0.97), st.integers(1, 40))
def test_the_weight_of_the_first_ranks_is_what_they_add_at_all_depths(p, n):
    depths = np.arange(1, 4000)
    added = (1 - p) * p ** (depths - 1) * np.minimum(depths, n) / depths
    assert top_weight(p, n) == pytest.approx(added.sum(), abs=1e-9)


def test_the_published_weight():
    assert round(top_weight(0.9, 10), 2) == 0.86  # the paper's example below equation 21


@given(st.integers(1, 20_000), st.floats(0.05, 0.98))
def test_the_parameter_gives_the_share_that_is_asked_for(n, share):
    assert top_weight(persistence(n, share), n) == pytest.approx(share, abs=1e-6)


def test_an_empty_ranking_has_no_overlap():
    assert np.isnan(rank_biased_overlap([], [1, 2], 0.9))
    assert np.isnan(rank_biased_overlap([], [], 0.9))


@pytest.mark.parametrize("bad", [[1, 1], [-1, 2], [0.5, 1.0], [[1], [2]]])
def test_refuses_what_is_no_ranking(bad):
    with pytest.raises(DataError, match="ranking"):
        rank_biased_overlap(bad, [1, 2], 0.9)


@pytest.mark.parametrize("bad", [0, 1, -0.5, float("nan")])
def test_refuses_parameters_that_are_no_shares(bad):
    with pytest.raises(ConfigError, match="must lie between 0 and 1"):
        rank_biased_overlap([1], [2], bad)
    with pytest.raises(ConfigError, match="must lie between 0 and 1"):
        persistence(3, bad)
    with pytest.raises(ConfigError, match="n=0 must be"):
        persistence(0)
