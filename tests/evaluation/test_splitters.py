"""Splits by classes, labels, groups and blocks: shares, whole groups, distances, and what cannot
be split.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks, draw_per_class, split


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
        np.array_equal(a, b)
        for one, other in zip(folds, again, strict=True)
        for a, b in zip(one, other, strict=True)
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
        assert (  # noqa: PT017
            min(groups_of) < 2
            or min(counts) < n_splits
            or "missing from its training set" in str(refused)
        )
        return
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert set(y[train]) == set(y)
        assert len(test)


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
    """Of 3 a class 2 are drawn: each in two thirds of 600 draws, give or take 5 standard
    deviations.
    """
    y = np.array([0, 1, 0, 1, 0, 1])
    drawn = np.zeros(6)
    for seed in range(600):
        drawn[draw_per_class(y, 2, groups=None, random_state=seed)[0]] += 1
    assert np.abs(drawn - 400).max() < 5 * np.sqrt(600 * 2 / 9)


LETTERS, PAIRS = np.array(["cat"] * 9 + ["dog"] * 3), np.array([0, 1] * 6)
MAKE = {"groups": None, "random_state": 0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split(LETTERS, 4, where="cv.outer", **MAKE),
            r"class dog has 3 samples, too few for cv\.outer=4 .* at most 3",
        ),
        (
            lambda: split(
                PAIRS, 3, groups=np.array([0, 0, 1, 1] * 3), random_state=0, where="cv.outer"
            ),
            r"2 groups, too few for cv\.outer=3",
        ),
        (
            lambda: split(
                indicator(0), 3, groups=np.arange(60) % 2, random_state=0, where="cv.outer"
            ),
            r"2 groups, too few for cv\.outer=3",
        ),
        (
            lambda: split(
                np.array([0] * 4 + [1] * 4 + [2] * 2),
                2,
                groups=np.array([0, 1, 2, 3, 0, 1, 2, 3, 4, 4]),
                random_state=0,
                where="cv.inner",
            ),
            r"class 2 has 1 group, too few for cv\.inner=2 folds",
        ),
        (
            lambda: draw_per_class(LETTERS, 3, **MAKE),
            r"class dog has 3 samples: with cv\.train_per_class=3 .* at most 2",
        ),
        (
            lambda: draw_per_class(LETTERS, 2, groups=PAIRS, random_state=0),
            "train_per_class cannot be used with groups",
        ),
        (
            lambda: draw_per_class(np.eye(12, 2, dtype=int), 2, **MAKE),
            "train_per_class draws samples of each class, and the label is an indicator",
        ),
    ],
)
def test_what_cannot_be_split_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


# --- several labels a sample ---


def indicator(seed, n=60, rates=(0.5, 0.3, 0.12)):
    Y = (np.random.default_rng(seed).random((n, len(rates))) < rates).astype(int)
    Y[0], Y[1] = 1, 0
    return Y


@given(seed=st.integers(0, 2**16), n_splits=st.integers(2, 5))
@settings(max_examples=40)
def test_every_fold_gets_its_share_of_every_label(seed, n_splits):
    Y = indicator(seed)
    folds = split(Y, n_splits, groups=None, random_state=seed, where="cv.outer")
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(Y)))
    for train, test in folds:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(Y)))
        assert abs(len(test) - len(Y) / n_splits) <= 3
        assert np.abs(Y[test].sum(axis=0) - Y.sum(axis=0) / n_splits).max() < 3
    rarest = Y.sum(axis=0).argmin()
    shares = [int(Y[test, rarest].sum()) for _, test in folds]
    assert max(shares) - min(shares) <= 1
    again = split(Y, n_splits, groups=None, random_state=seed, where="cv.outer")
    assert all(np.array_equal(one, other) for one, other in zip(folds[0], again[0], strict=True))


@given(seed=st.integers(0, 2**16))
@settings(max_examples=20)
def test_groups_of_several_labels_stay_whole(seed):
    Y = indicator(seed)
    groups = np.random.default_rng(seed).integers(0, 12, len(Y))
    folds = split(Y, 3, groups=groups, random_state=seed, where="cv.outer")
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(Y)))
    assert not any(set(groups[train]) & set(groups[test]) for train, test in folds)
    plan = NestedPlan.make(Y, outer=3, inner=2, repeats=1, groups=groups, seed=seed)
    plan.check(Y, groups, "plan")  # refuses a group on both sides, at every level


def test_what_a_set_of_samples_lacks_is_said_and_nothing_else():
    Y = indicator(1)
    Y[:, 2] = 0
    Y[7, 2] = 1
    plan = NestedPlan.make(Y, outer=2, inner=2, repeats=1, groups=None, seed=0)
    output = list(plan.lacking(Y, ["sky", "cow", "horse"]))
    assert all(line.startswith("horse has no positives in ") for line in output)
    # The one positive is in the training or the test samples of an outer fold, and in half of the
    # inner sets.
    tested = next(fold.name for fold in plan.outer if 7 in fold.test)
    trained = next(fold.name for fold in plan.outer if 7 in fold.train)
    assert f"horse has no positives in {tested}'s training samples" in output
    assert f"horse has no positives in {trained}'s test samples" in output
    assert sum(f" {tested}'s inner" in line for line in output) == 4
    assert sum(f" {trained}'s inner" in line for line in output) == 2
    assert sum(" final's" in line for line in output) == 2
    assert len(output) == 10


# --- blocks of consecutive rows ---

Y = np.tile(np.repeat([0, 1], 7), 15)  # runs of 7 are not aligned with any size below


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    size=st.integers(5, 12), gap=st.integers(0, 2), forward=st.booleans(), seed=st.integers(0, 99)
)
def test_splits_keep_their_distance_in_outer_and_inner_folds(size, gap, forward, seed):
    blocks = Blocks(size, gap, forward)
    plan = NestedPlan.make(Y, outer=3, inner=2, repeats=1, groups=None, seed=seed, blocks=blocks)
    plan.check(Y, None, "here")
    assert np.array_equal(plan.final.train, np.arange(len(Y)))
    pairs = [(fold.train, fold.test, np.arange(len(Y))) for fold in plan.outer]
    pairs += [
        (inner.train, inner.validation, fold.train) for fold in plan.folds for inner in fold.inner
    ]
    for train, held_out, of in pairs:
        distance = np.abs(of[:, None] - held_out).min(axis=1)
        left = (distance > gap) & ((of < held_out.min()) if forward else True)
        assert np.array_equal(train, of[left])
        assert not np.intersect1d(of[~np.isin(of, held_out)] // size, held_out // size).size
    if forward:
        tested = np.concatenate([fold.test for fold in plan.outer])
        assert np.array_equal(tested, np.arange(tested[0], len(Y)))
        assert abs(tested[0] - len(Y) / 4) <= size
    else:
        assert np.array_equal(
            np.sort(np.concatenate([fold.test for fold in plan.outer])), np.arange(len(Y))
        )


def test_what_cannot_be_split_is_refused_with_the_mend():
    make = {"inner": 2, "repeats": 1, "groups": None, "seed": 0}
    with pytest.raises(
        DataError, match=r"4 blocks of 60 rows, too few for cv.outer=5.*smaller cv.blocks.size"
    ):
        NestedPlan.make(Y, outer=5, blocks=Blocks(60), **make)
    with pytest.raises(DataError):
        NestedPlan.make(Y, outer=4, blocks=Blocks(60, forward=True), **make)
    with pytest.raises(DataError, match="class 1 is missing from the earlier rows"):
        NestedPlan.make(np.sort(Y), outer=5, blocks=Blocks(5, forward=True), **make)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ({"groups": "subject"}, "`blocks` and `groups`"),
        ({"train_per_class": 3, "repeats": 2}, "`blocks` and `train_per_class`"),
        ({"blocks": {"size": 3, "forward": True}, "repeats": 2}, "leave `repeats` out"),
        ({"blocks": {"size": 0}}, "size"),
    ],
)
def test_settings_that_blocks_contradict_are_refused(cv, words):
    study = {
        "name": "s",
        "dataset": {"source": "wine"},
        "solver": {"name": "rfs"},
        "cv": {"blocks": {"size": 3}, **cv},
    }
    with pytest.raises(ConfigError, match=words):
        config_from_dict(study, "here")


# Leave one out


Y_CLASSES = np.array(list("abacbabca"))
ONE_GROUP = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3])


@pytest.mark.parametrize(
    "y",
    [
        Y_CLASSES,
        np.arange(9.0),
        np.stack([Y_CLASSES == "a", np.arange(9) % 2 == 0], axis=1).astype(int),
    ],
    ids=["classes", "quantity", "labels"],
)
def test_as_many_folds_as_samples_leave_one_out(y):
    folds = split(y, len(y), groups=None, random_state=0, where="cv.outer")
    expected = LeaveOneOut().split(y)
    assert {int(test[0]): train.tolist() for train, test in folds} == {
        int(test[0]): train.tolist() for train, test in expected
    }


def test_as_many_folds_as_groups_leave_one_group_out_where_a_class_has_fewer_samples():
    y = np.array(list("abababacb"))
    y[1], y[7] = "c", "b"  # c in two groups, with two samples
    y[5] = "c"
    folds = split(y, 4, groups=ONE_GROUP, random_state=0, where="cv.outer")
    expected = LeaveOneGroupOut().split(y, y, ONE_GROUP)
    assert [(a.tolist(), b.tolist()) for a, b in folds] == [
        (a.tolist(), b.tolist()) for a, b in expected
    ]


def test_a_class_of_one_sample_is_refused_where_one_is_left_out():
    with pytest.raises(DataError, match=r'class c has 1 sample.*exclude_classes: \["c"\]'):
        split(np.array(list("aaabbbc")), 7, groups=None, random_state=0, where="cv.outer")
