"""Nogueira's index against its published formula, term by term, and against Kuncheva's."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raysel.errors import ConfigError, DataError
from raysel.metrics.stability import nogueira_stability


def published(Z, confidence=0.95):
    """Definition 4, Theorem 7 and Corollary 8 of the paper, one scalar at a time.

    The index is taken from sample variances s_f^2 and the jackknife-like phi from its definition.
    """
    M, d = len(Z), len(Z[0])
    p = [sum(row[f] for row in Z) / M for f in range(d)]
    k = [sum(row) for row in Z]
    k_mean = sum(k) / M
    sample_variance = [sum((row[f] - p[f]) ** 2 for row in Z) / (M - 1) for f in range(d)]
    denominator = k_mean / d * (1 - k_mean / d)
    value = 1 - sum(sample_variance) / d / denominator
    phi = [
        (
            sum(Z[i][f] * p[f] for f in range(d)) / d
            - k[i] * k_mean / d**2
            + value / 2 * (2 * k[i] * k_mean / d**2 - k[i] / d - k_mean / d + 1)
        )
        / denominator
        for i in range(M)
    ]
    variance = 4 / M**2 * sum((x - sum(phi) / M) ** 2 for x in phi)
    half = NormalDist().inv_cdf(1 - (1 - confidence) / 2) * math.sqrt(variance)
    return value, value - half, value + half


selections = st.tuples(st.integers(2, 8), st.integers(2, 12)).flatmap(lambda shape: arrays(np.bool_, shape))


@given(selections, st.floats(0.5, 0.99))
def test_equals_the_published_formula(Z, confidence):
    found = nogueira_stability(Z, confidence)
    if Z.all() or not Z.any():
        assert math.isnan(found.value)
        assert found.reason
        return
    assert found.reason == ""
    value, *interval = published(Z.astype(int).tolist(), confidence)
    interval = [np.nan, np.nan] if len(Z) == 2 else interval
    np.testing.assert_allclose((found.value, found.lower, found.upper), (value, *interval), rtol=1e-9, atol=1e-9)


def test_equals_the_authors_figures():
    """The examples of the authors' demonstration (github.com/nogueirs/JMLR2018, stabilityDemo), with their figures."""
    assert nogueira_stability([[1, 1, 0]] * 3).value == pytest.approx(1)
    assert nogueira_stability([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).value == pytest.approx(-0.5)
    rows = ["1111000000", "0001011100", "0100011100", "1100101000", "0110110000"]
    rows += ["0111001000", "1001000011", "0001011100", "0011110000", "0000100111"]
    found = nogueira_stability([list(map(int, row)) for row in rows])
    assert found.value == pytest.approx(-0.037037037037)
    half = NormalDist().inv_cdf(0.975) * math.sqrt(0.00516666666667)
    assert (found.lower, found.upper) == pytest.approx((found.value - half, found.value + half))


def test_two_sets_have_no_interval():
    found = nogueira_stability([[1, 1, 0, 0], [1, 0, 1, 0]])
    assert found.value == pytest.approx(0)
    assert np.isnan([found.lower, found.upper]).all()


@pytest.mark.parametrize(("n_sets", "d", "k"), [(2, 5, 2), (6, 30, 7), (4, 10, 9)])
def test_equals_kuncheva_for_sets_of_one_size(n_sets, d, k):
    rng = np.random.default_rng(d)
    sets = [set(rng.choice(d, k, replace=False).tolist()) for _ in range(n_sets)]
    pairs = [(len(a & b) - k * k / d) / (k - k * k / d) for a, b in itertools.combinations(sets, 2)]
    Z = [[f in chosen for f in range(d)] for chosen in sets]
    assert nogueira_stability(Z).value == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


def test_identical_sets_are_perfectly_stable():
    found = nogueira_stability(np.tile([True, False, True, False, False], (6, 1)))
    assert (found.value, found.lower, found.upper) == pytest.approx((1, 1, 1), abs=1e-12)


def test_disjoint_pair_has_the_least_value():
    assert nogueira_stability([[1, 0], [0, 1]]).value == pytest.approx(-1)


def test_the_interval_covers_the_zero_of_random_sets_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered, values = 0, []
    for _ in range(400):
        found = nogueira_stability(rng.random((60, 40)) < 0.3)
        covered += found.lower <= 0 <= found.upper
        values.append(found.value)
    assert abs(np.mean(values)) < 4 * np.std(values) / math.sqrt(400)
    assert 0.90 <= covered / 400 <= 0.99  # binomial(400, .95) leaves this with probability < 1e-4


@given(selections, st.randoms(use_true_random=False))
def test_order_of_sets_and_features_and_the_complement_do_not_matter(Z, random):
    rows, columns = list(range(Z.shape[0])), list(range(Z.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    found = nogueira_stability(Z)
    for other in (Z[rows][:, columns], ~Z):
        again = nogueira_stability(other)
        np.testing.assert_allclose([again.value, again.lower], [found.value, found.lower], atol=1e-9)


def test_more_confidence_widens_the_interval():
    Z = np.random.default_rng(1).random((5, 20)) < 0.5
    narrow, wide = nogueira_stability(Z, 0.5), nogueira_stability(Z, 0.99)
    assert wide.lower < narrow.lower < narrow.value == wide.value < narrow.upper < wide.upper


@pytest.mark.parametrize("Z", [np.ones((3, 4)), np.zeros((3, 4)), np.eye(4)[:1]])
def test_undefined_cases_say_why(Z):
    found = nogueira_stability(Z)
    assert np.isnan([found.value, found.lower, found.upper]).all()
    assert found.reason in str(found)


@pytest.mark.parametrize("bad", [[1, 0], [[0, 2]], np.zeros((0, 3)), [[0.5, 0]]])
def test_refuses_what_is_no_selection_matrix(bad):
    with pytest.raises(DataError, match="selections"):
        nogueira_stability(bad)


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan")])
def test_refuses_a_confidence_that_is_no_share(confidence):
    with pytest.raises(ConfigError, match="confidence"):
        nogueira_stability([[1, 0], [0, 1]], confidence)
