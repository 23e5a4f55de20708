"""Complementary pairs: disjoint halves of equal size, stratified, with whole groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.run.resampling.stability import check_halves, draw_halves


@settings(max_examples=60)
@given(st.lists(st.integers(2, 9), min_size=2, max_size=6), st.integers(0, 2**31))
def test_halves_are_disjoint_equal_and_stratified(sizes, seed):
    y = np.random.default_rng(seed).permutation(np.repeat([f"class {i}" for i in range(len(sizes))], sizes))
    first, second = draw_halves(y, None, seed)
    assert len(first) == len(second) == len(y) // 2
    assert not set(first) & set(second)
    for name, size in zip(*np.unique(y, return_counts=True), strict=True):
        assert {int((y[first] == name).sum()), int((y[second] == name).sum())} <= {size // 2, size - size // 2}
    again = draw_halves(y, None, seed)
    assert (first == again[0]).all()
    assert (second == again[1]).all()


def test_every_sample_is_as_often_in_either_half():
    y = np.repeat([0, 1, 2], [5, 7, 4])
    drawn = [draw_halves(y, None, seed) for seed in range(2000)]
    for side in (0, 1):
        share = np.bincount(np.concatenate([pair[side] for pair in drawn]), minlength=16) / 2000
        np.testing.assert_allclose(share, 0.5, atol=5 * 0.5 / 2000**0.5)  # no class has an odd one too many: 16 samples


def test_groups_stay_whole_and_labels_are_stratified():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(20), 4), np.repeat(np.arange(20) % 2, 4)
    first, second = draw_halves(y, groups, 3)
    assert not set(groups[first]) & set(groups[second])
    assert len(first) == len(second) == 40
    indicator = (rng.random((60, 3)) < [0.2, 0.5, 0.8]).astype(int)
    first, second = draw_halves(indicator, None, 3)
    np.testing.assert_allclose(indicator[first].sum(axis=0), indicator[second].sum(axis=0), atol=2)


def test_a_class_that_one_half_would_lack_is_refused():
    with pytest.raises(DataError, match="class 1 is that of one sample only"):
        check_halves(np.array([0, 0, 1]), None)
    with pytest.raises(DataError, match="class 1 is that of one group only"):
        check_halves(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))
    with pytest.raises(DataError, match="label number 1 is that of one sample only"):
        check_halves(np.array([[1, 0], [1, 1], [0, 0]]), None)
    check_halves(np.array([0, 1, 0, 1]), None)


@pytest.mark.parametrize("labels", ["one a group", "mixed", "indicator"])
def test_groups_of_different_sizes_are_divided_anew_for_each_pair(labels):
    sizes = np.random.default_rng(0).permutation(np.arange(3, 17))
    groups = np.repeat(np.arange(14), sizes)
    y = groups % 2
    if labels != "one a group":
        y = np.random.default_rng(1).integers(0, 2, len(groups) if labels == "mixed" else (len(groups), 3))
    together = np.zeros((14, 14))
    for seed in range(300):
        first, second = (np.unique(groups[half]) for half in draw_halves(y, groups, seed))
        assert len(first) == len(second) == 7
        assert not set(first) & set(second)
        for half in (first, second):
            together[np.ix_(half, half)] += 1
    # Two groups are together in 6 of 13 draws; in 3 of 6 if 3 or 4 of each class are in a half, and in 21 of 49 if not.
    shares = together[~np.eye(14, dtype=bool)] / 300
    assert shares.min() > 0.25
    assert shares.max() < 0.75


def test_groups_without_a_division_into_halves_with_all_labels_are_refused():
    y = np.eye(3, dtype=int)[[0, 1, 0, 2, 1, 2]]  # each pair of labels shares a group
    with pytest.raises(DataError, match="all lack a class or label in one half"):
        draw_halves(y, np.array([0, 0, 1, 1, 2, 2]), 0)
