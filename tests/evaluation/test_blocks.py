"""Folds of whole blocks and forward folds: what stands in them, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks

Y = np.tile(np.repeat([0, 1], 7), 15)  # runs of 7 are not aligned with any size below


@settings(max_examples=30, deadline=None, derandomize=True)
@given(size=st.integers(5, 12), gap=st.integers(0, 2), forward=st.booleans(), seed=st.integers(0, 99))
def test_splits_keep_their_distance_in_outer_and_inner_folds(size, gap, forward, seed):
    blocks = Blocks(size, gap, forward)
    plan = NestedPlan.make(Y, outer=3, inner=2, repeats=1, groups=None, seed=seed, blocks=blocks)
    plan.check(Y, None, "here")
    assert np.array_equal(plan.final.train, np.arange(len(Y)))
    pairs = [(fold.train, fold.test, np.arange(len(Y))) for fold in plan.outer]
    pairs += [(inner.train, inner.validation, fold.train) for fold in plan.folds for inner in fold.inner]
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
        assert np.array_equal(np.sort(np.concatenate([fold.test for fold in plan.outer])), np.arange(len(Y)))


def test_what_cannot_be_split_is_refused_with_the_mend():
    make = {"inner": 2, "repeats": 1, "groups": None, "seed": 0}
    with pytest.raises(DataError, match=r"4 blocks of 60 rows, too few for cv.outer=5.*smaller cv.blocks.size"):
        NestedPlan.make(Y, outer=5, blocks=Blocks(60), **make)
    with pytest.raises(DataError, match=r"4 blocks of 60 rows, too few for cv.outer=4 forward folds"):
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
    study = {"name": "s", "dataset": {"source": "wine"}, "solver": {"name": "rfs"}, "cv": {"blocks": {"size": 3}, **cv}}
    with pytest.raises(ConfigError, match=words):
        config_from_dict(study, "here")
