"""Folds of quantities: every fold has all parts of the range, groups and blocks stay whole, the
seed decides.
"""

from __future__ import annotations

import numpy as np
import pytest

from raysel.core.errors import DataError
from raysel.data.targets import quantile_strata
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks, split
from raysel.run.stability import check_halves, draw_halves

Y = np.random.default_rng(0).lognormal(size=103)
SEVERAL = np.stack([Y, -100.0 * Y, np.random.default_rng(1).normal(size=103)], axis=1)
WHO = np.random.default_rng(2).integers(0, 20, 103)


def folds(y, **changes):
    return split(y, 5, **{"groups": None, "random_state": 0, "where": "cv.outer"} | changes)


@pytest.mark.parametrize("y", [Y, SEVERAL], ids=["one", "several"])
def test_each_fold_tests_one_sample_of_each_five_in_a_row(y):
    parts = folds(y)
    assert sorted(np.concatenate([test for _, test in parts]).tolist()) == list(range(103))
    strata = quantile_strata(y, 5)
    whole = np.flatnonzero(np.bincount(strata) == 5)
    for train, test in parts:
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(103))
        assert set(whole.tolist()) <= set(strata[test].tolist())
    means = [Y[test].mean() for _, test in parts]
    assert np.std(means) < 0.5 * Y.std() / np.sqrt(
        103 / 5
    )  # a random split has about the whole of it


def test_the_seed_decides_and_the_unit_does_not():
    same = zip(folds(Y), folds(7.0 * Y - 3.0), strict=True)
    assert all(np.array_equal(a[1], b[1]) for a, b in same)
    assert any(
        not np.array_equal(a[1], b[1])
        for a, b in zip(folds(Y), folds(Y, random_state=1), strict=True)
    )


def test_groups_and_blocks_stay_whole():
    for train, test in folds(Y, groups=WHO):
        assert not set(WHO[train]) & set(WHO[test])
    rows = np.arange(103)
    for train, test in Blocks(10, gap=2).split(rows, Y, 3, random_state=0, where="cv.outer"):
        assert not set(train // 10) & set(test // 10)
        assert min(np.abs(train[:, None] - test).min(axis=1)) > 2
    for train, test in Blocks(10, forward=True).split(rows, Y, 3, random_state=0, where="cv.outer"):
        assert train.max() < test.min()


def test_plans_are_nested_and_refused_where_nothing_could_be_learnt():
    plan = NestedPlan.make(SEVERAL, outer=4, inner=3, repeats=2, groups=WHO, seed=0)
    plan.check(SEVERAL, WHO, "plan.json")
    with pytest.raises(DataError):
        NestedPlan.make(Y, outer=30, inner=2, repeats=1, groups=WHO, seed=0)
    with pytest.raises(DataError, match="a quantity has one value only in its training set"):
        split(np.array([0.5, *[1.5] * 3]), 4, groups=None, random_state=0, where="cv.outer")


@pytest.mark.parametrize("groups", [None, WHO], ids=["samples", "groups"])
def test_halves_are_disjoint_and_alike(groups):
    check_halves(Y, groups)
    first, second = draw_halves(Y, groups, 3)
    assert not set(first) & set(second)
    if groups is None:
        assert len(first) == len(second) == 51
        assert abs(np.median(Y[first]) - np.median(Y[second])) < 0.5 * Y.std()
    else:
        assert not set(WHO[first]) & set(WHO[second])
    other = draw_halves(Y, groups, 4)[0]
    assert not np.array_equal(first, other)
