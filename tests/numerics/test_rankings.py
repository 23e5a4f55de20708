"""Ranks, agreement, stability and bounds of false selections against plain readings of their
definitions.
"""

from __future__ import annotations

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from raysel.core.errors import ConfigError, DataError
from raysel.numerics import rankings as module
from raysel.numerics.rankings import (
    nogueira_stability,
    persistence,
    rank_biased_overlap,
    redundancy,
    simple_bound,
    smallest_threshold,
    stability_at_every_n,
    threshold_on_grid,
    top_weight,
    unimodal_bound,
)


def defined(first, second, p, depths=1000):
    """The infinite sum of the paper (equation 4), cut where its weights vanish, by sets.

    The features behind the end of a ranking are unknown; the agreement there is extrapolated as the
    paper does: what the shorter one would add agrees as often as it did; behind both ends the
    agreement stays as it is.
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


rankings = st.integers(1, 9).flatmap(
    lambda n: st.permutations(range(12)).map(lambda order: order[:n])
)
parameters = st.floats(0.05, 0.96)


@given(rankings, rankings, parameters)
def test_equals_the_sum_that_defines_it(first, second, p):
    assert rank_biased_overlap(first, second, p) == pytest.approx(
        defined(first, second, p), abs=1e-9
    )


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


@given(st.integers(1, 20_000), st.floats(0.05, 0.98))
def test_the_parameter_gives_the_share_that_is_asked_for(n, share):
    assert top_weight(persistence(n, share), n) == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("bad", [[1, 1], [-1, 2], [0.5, 1.0], [[1], [2]]])
def test_invalid_rankings_are_refused(bad):
    with pytest.raises(DataError, match="ranking"):
        rank_biased_overlap(bad, [1, 2], 0.9)


@pytest.mark.parametrize("bad", [0, 1, -0.5, float("nan")])
def test_parameters_outside_0_and_1_are_refused(bad):
    with pytest.raises(ConfigError):
        rank_biased_overlap([1], [2], bad)
    with pytest.raises(ConfigError):
        persistence(3, bad)
    with pytest.raises(ConfigError, match="n=0 must be"):
        persistence(0)


def published(Z):
    """Definition 4 and Theorem 7 of the paper, one scalar at a time, with sample variances
    s_f^2.
    """
    M, d = len(Z), len(Z[0])
    p = [sum(row[f] for row in Z) / M for f in range(d)]
    k_mean = sum(map(sum, Z)) / M
    sample_variance = [sum((row[f] - p[f]) ** 2 for row in Z) / (M - 1) for f in range(d)]
    return 1 - sum(sample_variance) / d / (k_mean / d * (1 - k_mean / d))


selections = st.tuples(st.integers(2, 8), st.integers(2, 12)).flatmap(
    lambda shape: arrays(np.bool_, shape)
)


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
        Z = [
            [f in order[: min(n, k)] for f in range(d)]
            for order, k in zip(orders, n_scored, strict=True)
        ]
        assert found[n - 1] == pytest.approx(nogueira_stability(Z).value, abs=1e-9, nan_ok=True)


def test_equals_the_authors_figures():
    """The examples of the authors' demonstration (github.com/nogueirs/JMLR2018, stabilityDemo),
    with their figures.
    """
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
def test_invalid_selections_are_refused(bad):
    with pytest.raises(DataError, match="selections"):
        nogueira_stability(bad)


def expected(X, order, n):
    chosen = order[:n]
    pairs = [
        (
            0.0
            if np.ptp(X[:, i]) == 0 or np.ptp(X[:, j]) == 0
            else abs(np.corrcoef(X[:, i], X[:, j])[0, 1])
        )
        for i, j in combinations(chosen, 2)
    ]
    return np.mean(pairs) if pairs else np.nan


@given(st.integers(2, 12), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_it_is_the_mean_over_pairs_at_every_number_of_features(n, d, block, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.standard_normal(d)
    X[:, rng.random(d) < 0.2] = 0.1  # constant, not exactly representable
    order = rng.permutation(d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found = redundancy(X, order, range(1, d + 1))
    np.testing.assert_allclose(found, [expected(X, order, k) for k in range(1, d + 1)], atol=1e-8)


def test_scaling_shifting_and_the_order_of_the_chosen_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    order = np.array([4, 1, 5, 0])
    here = redundancy(X, order, [4])
    assert redundancy(-3 * X + 7, order[::-1], [4]) == pytest.approx(here, rel=1e-12)
    assert redundancy(np.repeat(X[:, :1], 3, axis=1), np.arange(3), [2, 3]) == pytest.approx([1, 1])


@pytest.mark.filterwarnings("error")
def test_large_offsets_and_small_or_large_units_cost_no_digits():
    X = np.random.default_rng(2).integers(0, 9, (20, 5)).astype(float)
    here = redundancy(X, np.arange(5), [3, 5])
    for other in (1e8 + 2.0**-26 * X, X * [1e-300, 1e-170, 1.0, 1e170, 1e300], X.astype(np.uint8)):
        np.testing.assert_allclose(redundancy(other, np.arange(5), [3, 5]), here, rtol=1e-12)


def test_fewer_features_than_asked_for_are_all_used_and_less_than_two_form_no_pair():
    X = np.random.default_rng(1).standard_normal((9, 5))
    found = redundancy(X, np.array([3, 0, 2]), [2, 3, 50])
    assert found[1] == found[2]
    assert np.isnan(redundancy(X, np.array([3]), [1, 4])).all()
    assert np.isnan(redundancy(X, np.array([], dtype=np.int64), [4])).all()
    with pytest.raises(ConfigError, match="1 or more"):
        redundancy(X, np.arange(5), [0])


def worst(n_pairs, count, mean, mode=None):
    """Largest P(X >= count / B) of X on 0, 1/B, ..., 1 with at most this mean, and this mode if
    one is given.
    """
    x = np.arange(n_pairs + 1) / n_pairs
    A, b = [x], [mean]
    for i in range(n_pairs) if mode is not None else ():
        step = np.zeros(n_pairs + 1)
        step[[i, i + 1]] = (1, -1) if i < mode else (-1, 1)  # rises to the mode, falls behind it
        A.append(step)
        b.append(0.0)
    found = linprog(
        -1.0 * (np.arange(n_pairs + 1) >= count),
        A_ub=A,
        b_ub=b,
        A_eq=[np.ones(n_pairs + 1)],
        b_eq=[1.0],
    )
    assert found.status in (0, 2)
    return (
        -found.fun if found.status == 0 else 0.0
    )  # 2: no distribution has this mode and so small a mean


def worst_unimodal(n_pairs, count, mean):
    return max(worst(n_pairs, count, mean, mode) for mode in range(n_pairs + 1))


# A feature of selection probability theta: both halves of a pair select it with probability theta^2
# on average, and a share of at least tau of the halves needs a share of at least 2 tau - 1 of the
# pairs. q of p features have theta.


@pytest.mark.parametrize("n_pairs", [4, 10, 25])
@pytest.mark.parametrize("theta", [0.05, 0.2, 0.5])
def test_simple_is_the_worst_of_all_distributions(n_pairs, theta):
    for count in range(1, n_pairs + 1):
        tau = (1 + count / n_pairs) / 2
        assert min(1.0, simple_bound(theta * 1000, 1000, tau) / 1000) == pytest.approx(
            worst(n_pairs, count, theta**2), rel=1e-7
        )


@pytest.mark.parametrize(
    ("n_pairs", "theta"), [(6, 0.02), (7, 0.4), (10, 0.1), (10, 0.3), (11, 0.57)]
)
def test_unimodal_is_the_worst_of_the_unimodal_distributions(n_pairs, theta):
    defined = 0
    for count in range(2, n_pairs + 1):
        bound = unimodal_bound(theta * 1000, 1000, (1 + count / n_pairs) / 2, n_pairs)
        if bound is not None:
            defined += 1
            assert bound / 1000 == pytest.approx(worst_unimodal(n_pairs, count, theta**2), rel=1e-7)
    assert defined > n_pairs / 3


def test_it_is_not_given_where_another_mode_is_worse():
    n_pairs, theta, count = 20, 0.55, 4
    tau = (1 + count / n_pairs) / 2
    formula = 1 / (2 * (2 * tau - 1 - 1 / (2 * n_pairs))) * theta**2
    assert worst_unimodal(n_pairs, count, theta**2) > formula + 1e-6
    assert unimodal_bound(theta * 1000, 1000, tau, n_pairs) is None
    assert unimodal_bound(600, 1000, 0.9, n_pairs) is None  # theta above 1 / sqrt(3)


@settings(max_examples=100)
@given(st.integers(2, 200), st.integers(1, 500), st.integers(1, 2000), st.floats(0.500001, 1.0))
def test_thresholds_round_up_to_shares_and_bounds_fall(n_pairs, q, p, threshold):
    q = min(q, p)
    tau = threshold_on_grid(threshold, n_pairs)
    shares = np.arange(2 * n_pairs + 1) / (2 * n_pairs)
    assert ((shares >= tau) == (shares >= threshold - 1e-6 / n_pairs)).all()
    bound = unimodal_bound(q, p, tau, n_pairs)
    if bound is not None:
        assert bound <= simple_bound(q, p, tau) * (1 + 1e-9)
        higher = min(1.0, tau + 1 / (2 * n_pairs))
        assert unimodal_bound(q, p, threshold_on_grid(higher, n_pairs), n_pairs) <= bound * (
            1 + 1e-9
        )


def test_the_default_threshold_is_the_first_within_one():
    for q, p, n_pairs in ((5, 100, 50), (16, 64, 50), (16, 64, 10), (40, 64, 50), (3, 5000, 25)):
        chosen = smallest_threshold(q, p, n_pairs)
        within = [
            t / (2 * n_pairs)
            for t in range(n_pairs + 1, 2 * n_pairs + 1)
            if (
                unimodal_bound(q, p, t / (2 * n_pairs), n_pairs)
                or simple_bound(q, p, t / (2 * n_pairs))
            )
            <= 1
        ]
        assert chosen == (within[0] if within else 1.0)


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.01, float("nan")])
def test_there_is_no_bound_for_other_thresholds(threshold):
    with pytest.raises(ConfigError):
        threshold_on_grid(threshold, 50)
