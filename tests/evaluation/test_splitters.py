"""One split: classes spread evenly, groups whole, and what cannot be split is refused with its name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.evaluation.splitters import draw_per_class, split


@given(
    counts=st.lists(st.integers(4, 15), min_size=2, max_size=4),
    n_splits=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_every_fold_gets_its_share_of_every_class(counts, n_splits, seed, order):
    labels = [name for name, count in zip("dbca", counts, strict=False) for _ in range(count)]
    order.shuffle(labels)
    y = np.array(labels)
    folds = split(y, n_splits, groups=None, random_state=seed, where="cv.outer")
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    for train, test in folds:
        assert train.dtype == test.dtype == np.int64
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
    for name in set(labels):
        shares = [int((y[test] == name).sum()) for _, test in folds]
        assert max(shares) - min(shares) <= 1
    again = split(y, n_splits, groups=None, random_state=seed, where="cv.outer")
    assert all(
        np.array_equal(a, b) for one, other in zip(folds, again, strict=True) for a, b in zip(one, other, strict=True)
    )


@given(
    sizes=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=9, max_size=20),
    n_splits=st.integers(2, 3),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_groups_stay_whole_and_no_class_leaves_a_training_set(sizes, n_splits, seed):
    y = np.concatenate([np.full(size, label) for label, size in sizes])
    groups = np.concatenate([np.full(size, f"g{number}") for number, (_, size) in enumerate(sizes)])
    mixed = np.random.default_rng(seed).permutation(len(y))
    y, groups = y[mixed], groups[mixed]
    try:
        folds = split(y, n_splits, groups=groups, random_state=seed, where="cv.outer")
    except DataError as refused:
        # Only what cannot work in general is refused: some class too rare, or in too few groups.
        groups_of = [len(np.unique(groups[y == label])) for label in np.unique(y)]
        counts = np.unique(y, return_counts=True)[1]
        assert min(groups_of) < 2 or min(counts) < n_splits or "missing from its training set" in str(refused)  # noqa: PT017
        return
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert set(y[train]) == set(y)
        assert len(test)


def test_a_class_with_fewer_samples_than_folds_is_named():
    y = np.array(["cat"] * 9 + ["dog"] * 3)
    with pytest.raises(DataError, match=r"class dog has 3 samples, too few for cv\.outer=4 .* at most 3 folds"):
        split(y, 4, groups=None, random_state=0, where="cv.outer")
    assert len(split(y, 3, groups=None, random_state=0, where="cv.outer")) == 3


def test_a_class_that_stands_in_one_group_is_named():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    groups = np.array([0, 1, 2, 3, 0, 1, 2, 3, 4, 4])
    with pytest.raises(DataError, match=r"cv\.inner, fold \d: class 2 is missing from its training set.*is in several"):
        split(y, 2, groups=groups, random_state=0, where="cv.inner")


def test_too_few_groups_are_counted():
    y, groups = np.array([0, 1] * 6), np.array([0, 0, 1, 1] * 3)
    with pytest.raises(DataError, match=r"2 groups, too few for cv\.outer=3"):
        split(y, 3, groups=groups, random_state=0, where="cv.outer")


@given(
    counts=st.lists(st.integers(3, 9), min_size=2, max_size=5),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_a_drawn_training_set_holds_exactly_so_many_of_each_class(counts, data, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    wanted = data.draw(st.integers(1, min(counts) - 1))
    train, test = draw_per_class(y, wanted, groups=None, random_state=seed)
    assert np.bincount(y[train]).tolist() == [wanted] * len(counts)
    assert np.bincount(y[test]).tolist() == [count - wanted for count in counts]
    assert sorted([*train, *test]) == list(range(len(y)))
    assert train.dtype == test.dtype == np.int64
    again = draw_per_class(y, wanted, groups=None, random_state=seed)
    assert np.array_equal(train, again[0])
    assert np.array_equal(test, again[1])


def test_every_sample_is_drawn_equally_often():
    """Of 3 a class 2 are drawn: each in two thirds of 600 draws, give or take 5 standard deviations."""
    y = np.array([0, 1, 0, 1, 0, 1])
    drawn = np.zeros(6)
    for seed in range(600):
        drawn[draw_per_class(y, 2, groups=None, random_state=seed)[0]] += 1
    assert np.abs(drawn - 400).max() < 5 * np.sqrt(600 * 2 / 9)


def test_a_class_of_which_nothing_would_be_left_to_test_is_named():
    y = np.array(["ar/1"] * 9 + ["orl/7"] * 3)
    with pytest.raises(DataError, match=r"class orl/7 has 3 samples: with cv\.train_per_class=3 .* at most 2"):
        draw_per_class(y, 3, groups=None, random_state=0)
    for groups, labels in ((np.arange(12), y), (None, np.eye(12, 2, dtype=int))):
        with pytest.raises(DataError, match=r"train_per_class cannot be used with groups or several labels"):
            draw_per_class(labels, 2, groups=groups, random_state=0)
