"""Permutations of labels: what moves, what stays together, and how many arrangements there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from raysel.core.errors import DataError
from raysel.numerics.permutation import LabelPermutations

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
    permutations, rng = LabelPermutations(y, groups, tasks), np.random.default_rng(0)
    assert permutations.kind == kind
    n = len(y)
    members = np.arange(n) if groups is None else groups
    owners = np.zeros(n, dtype=int) if tasks is None else tasks

    def allowed(labels):
        """Whether labels are those of y within each task, and within each group or group by group."""
        if kind == "samples within groups":
            return all(
                sorted(labels[i] for i in np.flatnonzero(members == g)) == sorted(rows(y[members == g]))
                for g in np.unique(members)
            )
        first = [np.flatnonzero(members == g)[0] for g in np.unique(members)]
        return all(labels[i] == labels[first[members[i]]] for i in range(n)) and all(
            sorted(labels[i] for i in first if owners[i] == t) == sorted(rows(y)[i] for i in first if owners[i] == t)
            for t in np.unique(owners)
        )

    expected = {labels for labels in itertools.product(sorted(set(rows(y))), repeat=n) if allowed(labels)}
    assert permutations.log10_arrangements == pytest.approx(np.log10(len(expected)))
    draws = [tuple(rows(y[permutations.draw(rng)])) for _ in range(40 * len(expected))]
    assert set(draws) == expected
    counts = [draws.count(labels) for labels in expected]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_task_without_mixed_groups_exchanges_whole_groups():
    y = np.array([0, 1, 0, 1, 5, 5, 6, 6])
    groups, tasks = np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.repeat([0, 1], 4)
    permutations = LabelPermutations(y, groups, tasks)
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
    """Three pairs of equal samples, one of two labels: pairs exchange their labels, as single samples do."""
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
