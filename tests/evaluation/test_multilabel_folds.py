"""Folds of several labels a sample: labels spread evenly, groups whole, and what a fold lacks is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import split


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
def test_groups_stay_whole(seed):
    Y = indicator(seed)
    groups = np.random.default_rng(seed).integers(0, 12, len(Y))
    folds = split(Y, 3, groups=groups, random_state=seed, where="cv.outer")
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(Y)))
    assert not any(set(groups[train]) & set(groups[test]) for train, test in folds)
    plan = NestedPlan.make(Y, outer=3, inner=2, repeats=1, groups=groups, seed=seed)
    plan.check(Y, groups, "plan")  # refuses a group on both sides, at every level


def test_too_few_groups_are_counted():
    with pytest.raises(DataError, match=r"2 groups, too few for cv\.outer=3"):
        split(indicator(0), 3, groups=np.arange(60) % 2, random_state=0, where="cv.outer")


def test_what_a_set_of_samples_lacks_is_said_and_nothing_else():
    Y = indicator(1)
    Y[:, 2] = 0
    Y[7, 2] = 1
    plan = NestedPlan.make(Y, outer=2, inner=2, repeats=1, groups=None, seed=0)
    said = list(plan.lacking(Y, ["sky", "cow", "horse"]))
    assert all(line.startswith("horse has no positives in ") for line in said)
    # The one positive is in the training or the test samples of an outer fold, and in half of the inner sets.
    tested = next(fold.name for fold in plan.outer if 7 in fold.test)
    trained = next(fold.name for fold in plan.outer if 7 in fold.train)
    assert f"horse has no positives in {tested}'s training samples" in said
    assert f"horse has no positives in {trained}'s test samples" in said
    assert sum(f" {tested}'s inner" in line for line in said) == 4
    assert sum(f" {trained}'s inner" in line for line in said) == 2
    assert sum(" final's" in line for line in said) == 2
    assert len(said) == 10
