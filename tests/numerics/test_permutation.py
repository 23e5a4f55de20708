"""Permutations of labels: what moves, what stays together, and how many arrangements there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from raysel.core.errors import ConfigError, DataError
from raysel.data.targets import find_target
from raysel.numerics.permutation import (
    LabelPermutations,
    MaxStatistic,
    binomial_interval,
    feature_p_values,
    permutation_p_value,
)

GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 2])
#: Labels, groups, tasks, and what is exchanged.
CASES = {
    "samples": (np.array(list("aabbbc")), None, None, "samples"),
    "within groups": (np.array([0, 1, 1, 0, 0, 1, 0, 1]), GROUPS, None, "samples within groups"),
    "whole groups": (np.array([0, 0, 0, 1, 1, 1, 1, 1]), GROUPS, None, "groups"),
    "groups of one": (np.array([0, 1, 1, 0]), np.arange(4), None, "groups"),
    "tasks": (np.array([0, 1, 1, 5, 6, 6]), None, np.array([0, 0, 0, 1, 1, 1]), "samples"),
    "several labels": (np.array([[0, 1], [1, 1], [0, 1], [1, 0]]), None, None, "samples"),
}


def rows(y):
    return [tuple(np.atleast_1d(row).tolist()) for row in y]


@pytest.mark.parametrize("case", CASES)
def test_every_arrangement_occurs_and_all_are_equally_likely(case):
    y, groups, tasks, kind = CASES[case]
    permutations, rng = find_target(y).permutations(y, groups, tasks), np.random.default_rng(0)
    assert permutations.kind == kind
    n = len(y)
    members = np.arange(n) if groups is None else groups
    owners = np.zeros(n, dtype=int) if tasks is None else tasks

    def allowed(labels):
        """Whether labels are those of y within each task, and within each group or group by
        group.
        """
        if kind == "samples within groups":
            return all(
                sorted(labels[i] for i in np.flatnonzero(members == g))
                == sorted(rows(y[members == g]))
                for g in np.unique(members)
            )
        first = [np.flatnonzero(members == g)[0] for g in np.unique(members)]
        return all(labels[i] == labels[first[members[i]]] for i in range(n)) and all(
            sorted(labels[i] for i in first if owners[i] == t)
            == sorted(rows(y)[i] for i in first if owners[i] == t)
            for t in np.unique(owners)
        )

    expected = {
        labels for labels in itertools.product(sorted(set(rows(y))), repeat=n) if allowed(labels)
    }
    assert permutations.log10_arrangements == pytest.approx(np.log10(len(expected)))
    draws = [tuple(rows(y[permutations.draw(rng)])) for _ in range(40 * len(expected))]
    assert set(draws) == expected
    counts = [draws.count(labels) for labels in expected]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_task_without_mixed_groups_exchanges_whole_groups():
    y = np.array([0, 1, 0, 1, 5, 5, 6, 6])
    groups, tasks = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.repeat([0, 1], 4)
    permutations = find_target(y).permutations(y, groups, tasks)
    assert permutations.kind == "samples within groups, groups"
    assert round(10**permutations.log10_arrangements) == 2 * 2 * 2
    assert permutations.n_movable == 8


def test_groups_that_cannot_exchange_anything_are_not_counted():
    permutations = LabelPermutations(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))
    assert (permutations.kind, permutations.n_movable) == ("samples within groups", 2)


def test_blocks_exchange_their_labels_in_the_order_in_which_they_stand():
    y = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0])
    blocks = np.arange(11) // 3
    permutations, rng = LabelPermutations(y, blocks=blocks), np.random.default_rng(0)
    assert (permutations.kind, permutations.n_movable) == ("blocks", 9)
    draws = [tuple(y[permutations.draw(rng)].tolist()) for _ in range(300)]
    # The shorter last block stays; the others have two different sequences.
    orders = set(itertools.permutations([(0, 0, 1), (1, 1, 0), (0, 0, 1)]))
    assert set(draws) == {(*a, *b, *c, 1, 0) for a, b, c in orders}
    assert round(10**permutations.log10_arrangements) == len(set(draws)) == 3


def test_labels_that_cannot_be_permuted_are_refused():
    with pytest.raises(DataError, match="no permutation of groups changes a label"):
        LabelPermutations(np.array([0, 0, 5, 5]), np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]))


def test_a_few_mixed_groups_do_not_hold_the_labels_of_all_others():
    """Three pairs of equal samples, one of two labels: pairs exchange their labels, as single
    samples do.
    """
    y, groups = np.arange(80) % 2, np.arange(80)
    groups[[1, 3, 5]] = [0, 2, 4]
    y[:6] = [0, 1, 0, 0, 1, 1]
    permutations, rng = LabelPermutations(y, groups), np.random.default_rng(0)
    assert permutations.kind == "groups of equal size"
    assert permutations.n_movable == 80
    pairs = set()
    for _ in range(200):
        labels = y[permutations.draw(rng)]
        assert sorted(labels[6:]) == sorted(y[6:])
        pairs.add(tuple(map(tuple, labels[:6].reshape(3, 2))))
    assert pairs == set(itertools.permutations([(0, 1), (0, 0), (1, 1)]))


@pytest.mark.parametrize("seed", range(5))
def test_all_permutations_give_the_exact_p_value(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 6).astype(float), np.array([0, 0, 0, 1, 1, 1])

    def statistic(labels):
        return x[labels == 1].mean() - x[labels == 0].mean()

    found = [statistic(y[list(order)]) for order in itertools.permutations(range(6))]
    exact = stats.permutation_test(
        (x[3:], x[:3]),
        lambda a, b: a.mean() - b.mean(),
        permutation_type="independent",
        alternative="greater",
    )
    # The first permutation is the identity, which the formula counts by itself.
    assert permutation_p_value(found[0], found[1:]).p_value == pytest.approx(exact.pvalue)


@settings(max_examples=25)
@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_is_that_of_scipy(successes, n, confidence):
    n = max(n, successes)
    expected = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    assert binomial_interval(successes, n, confidence) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


def test_a_failed_permutation_counts_against_the_hypothesis():
    found = permutation_p_value(0.9, [0.5, np.nan, 0.95, 0.4])
    assert (found.n_reached, found.n_failed, found.p_value) == (2, 1, 0.6)
    assert found.lower < 0.5 < found.upper


@pytest.mark.parametrize(("observed", "permuted"), [(0.5, []), (np.nan, [0.1]), (0.5, [[0.1]])])
def test_statistics_without_a_test_are_refused(observed, permuted):
    with pytest.raises(DataError):
        permutation_p_value(observed, permuted)
    with pytest.raises(ConfigError):
        permutation_p_value(0.5, [0.1], confidence=1)


SCORES = st.integers(1, 6).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 6), min_size=d, max_size=d), min_size=2, max_size=12)
)


@settings(max_examples=60)
@given(SCORES)
def test_the_maximum_statistic_is_counting_written_out(rows):
    observed, permuted = rows[0], rows[1:]
    counts = MaxStatistic(np.array(observed) / 7)
    for row in permuted:
        counts.add(np.array(row) / 7)
    found, n = counts.p_values(), len(permuted)
    d = range(len(observed))

    def p(count):
        return (1 + count) / (1 + n)

    assert found.p_value.tolist() == [p(sum(row[j] >= observed[j] for row in permuted)) for j in d]
    assert found.single_step.tolist() == [
        p(sum(max(row) >= observed[j] for row in permuted)) for j in d
    ]
    # Westfall & Young's step-down: the maximum over the features that are not above j, made
    # monotone.
    raw = [
        p(
            sum(
                max(row[k] for k in d if observed[k] <= observed[j]) >= observed[j]
                for row in permuted
            )
        )
        for j in d
    ]
    assert found.step_down.tolist() == [
        max(raw[i] for i in d if observed[i] >= observed[j]) for j in d
    ]
    assert (found.p_value <= found.step_down).all()
    assert (found.step_down <= found.single_step).all()
    assert found.p_value.min() >= found.smallest == 1 / (1 + n)


@pytest.mark.parametrize("by_share", [True, False])
def test_each_arrangement_of_a_set_is_as_likely_to_be_the_true_one(by_share):
    """With every row in turn as the observed one, at most k of n rows have an adjusted p value
    of k / n or less.
    """
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = list(rng.gamma(0.5, size=(12, 5)) * rng.gamma(0.5, size=(12, 1)))
        smallest = [
            feature_p_values(row, rows[:i] + rows[i + 1 :], by_share=by_share).step_down.min()
            for i, row in enumerate(rows)
        ]
        for k in range(1, 13):
            assert np.sum(np.array(smallest) <= k / 12 + 1e-9) <= k


def test_the_features_statistic_is_the_larger_of_score_and_share():
    rng = np.random.default_rng(1)
    rows = rng.gamma(0.5, size=(9, 4))
    shares = rows / rows.sum(axis=1, keepdims=True)
    statistic = np.maximum(rows / rows.max(axis=1).mean(), shares / shares.max(axis=1).mean())
    expected = [(1 + np.sum(statistic[1:].max(axis=1) >= value)) / 9 for value in statistic[0]]
    assert feature_p_values(rows[0], list(rows[1:]), by_share=True).single_step == pytest.approx(
        expected
    )
    # A change of the unit of the scores changes nothing.
    again = feature_p_values(1e6 * rows[0], list(1e6 * rows[1:]), by_share=True)
    assert again.single_step == pytest.approx(expected)


def test_models_without_scores_and_failures():
    zeros = np.zeros(3)
    found = feature_p_values(zeros, [zeros, None], by_share=True)
    assert found.p_value.tolist() == found.single_step.tolist() == [1.0] * 3
    found = feature_p_values(np.array([5.0, 0.0, 0.0]), [zeros, None], by_share=True)
    assert found.single_step.tolist() == [2 / 3, 1, 1]
    with pytest.raises(DataError, match="finite"):
        feature_p_values(np.array([np.nan]), [zeros[:1]], by_share=False)
    with pytest.raises(DataError, match="at least one"):
        MaxStatistic([1.0]).p_values()
