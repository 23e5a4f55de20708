"""Nogueira's index against its published formula, term by term, and against Kuncheva's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raysel.core.errors import DataError
from raysel.numerics.rankings import nogueira_stability, stability_at_every_n


def published(Z):
    """Definition 4 and Theorem 7 of the paper, one scalar at a time, with sample variances s_f^2."""
    M, d = len(Z), len(Z[0])
    p = [sum(row[f] for row in Z) / M for f in range(d)]
    k_mean = sum(map(sum, Z)) / M
    sample_variance = [sum((row[f] - p[f]) ** 2 for row in Z) / (M - 1) for f in range(d)]
    return 1 - sum(sample_variance) / d / (k_mean / d * (1 - k_mean / d))


selections = st.tuples(st.integers(2, 8), st.integers(2, 12)).flatmap(lambda shape: arrays(np.bool_, shape))


@given(selections)
def test_equals_the_published_formula(Z):
    found = nogueira_stability(Z)
    if Z.all() or not Z.any():
        assert math.isnan(found.value)
        assert found.reason
        return
    assert found.reason == ""
    assert found.value == pytest.approx(published(Z.astype(int).tolist()), rel=1e-9, abs=1e-9)


@given(st.integers(1, 5), st.integers(1, 9), st.randoms(use_true_random=False))
def test_the_index_at_every_n_is_that_of_the_n_best(n_sets, d, random):
    """Some rankings score fewer features than others, and then select no more."""
    orders = [random.sample(range(d), d) for _ in range(n_sets)]
    n_scored = np.array([random.randint(0, d) for _ in range(n_sets)])
    ranks = np.array([[order.index(f) + 1.0 for f in range(d)] for order in orders])
    found = stability_at_every_n(ranks, n_scored)
    for n in range(1, d + 1):
        Z = [[f in order[: min(n, k)] for f in range(d)] for order, k in zip(orders, n_scored, strict=True)]
        assert found[n - 1] == pytest.approx(nogueira_stability(Z).value, abs=1e-9, nan_ok=True)


def test_equals_the_authors_figures():
    """The examples of the authors' demonstration (github.com/nogueirs/JMLR2018, stabilityDemo), with their figures."""
    assert nogueira_stability([[1, 1, 0]] * 3).value == pytest.approx(1)
    assert nogueira_stability([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).value == pytest.approx(-0.5)
    rows = ["1111000000", "0001011100", "0100011100", "1100101000", "0110110000"]
    rows += ["0111001000", "1001000011", "0001011100", "0011110000", "0000100111"]
    found = nogueira_stability([list(map(int, row)) for row in rows])
    assert found.value == pytest.approx(-0.037037037037)


@pytest.mark.parametrize(("n_sets", "d", "k"), [(2, 5, 2), (6, 30, 7), (4, 10, 9)])
def test_equals_kuncheva_for_sets_of_one_size(n_sets, d, k):
    rng = np.random.default_rng(d)
    sets = [set(rng.choice(d, k, replace=False).tolist()) for _ in range(n_sets)]
    pairs = [(len(a & b) - k * k / d) / (k - k * k / d) for a, b in itertools.combinations(sets, 2)]
    Z = [[f in chosen for f in range(d)] for chosen in sets]
    assert nogueira_stability(Z).value == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


def test_identical_sets_are_perfectly_stable():
    found = nogueira_stability(np.tile([True, False, True, False, False], (6, 1)))
    assert found.value == pytest.approx(1, abs=1e-12)


def test_disjoint_pair_has_the_least_value():
    assert nogueira_stability([[1, 0], [0, 1]]).value == pytest.approx(-1)


def test_independent_random_sets_have_the_mean_0():
    rng = np.random.default_rng(0)
    values = [nogueira_stability(rng.random((60, 40)) < 0.3).value for _ in range(400)]
    assert abs(np.mean(values)) < 4 * np.std(values) / math.sqrt(400)


@given(selections, st.randoms(use_true_random=False))
def test_order_of_sets_and_features_and_the_complement_do_not_matter(Z, random):
    rows, columns = list(range(Z.shape[0])), list(range(Z.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    found = nogueira_stability(Z)
    for other in (Z[rows][:, columns], ~Z):
        np.testing.assert_allclose(nogueira_stability(other).value, found.value, atol=1e-9)


@pytest.mark.parametrize("Z", [np.ones((3, 4)), np.zeros((3, 4)), np.eye(4)[:1]])
def test_undefined_cases_say_why(Z):
    found = nogueira_stability(Z)
    assert np.isnan(found.value)
    assert found.reason in str(found)


@pytest.mark.parametrize("bad", [[1, 0], [[0, 2]], np.zeros((0, 3)), [[0.5, 0]]])
def test_refuses_what_is_no_selection_matrix(bad):
    with pytest.raises(DataError, match="selections"):
        nogueira_stability(bad)
