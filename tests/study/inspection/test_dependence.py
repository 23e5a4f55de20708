"""Samples that resemble their neighbours in the file are said, and a sorted file is no such
thing.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_leaks import interleaved, sorted_by_class, table
from scipy.signal import lfilter

from raysel.data.loading import load_dataset
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks
from raysel.study.inspection.dependence import order_remark, period_remark
from raysel.study.inspection.parts import parts
from raysel.study.inspection.row_columns import in_runs


def remark(data, plan=None):
    (part,) = parts(data)
    return order_remark(part, plan)


def recording(rng):
    """240 rows of an autoregressive course, of which a row keeps 0.8, with labels in blocks of
    30.
    """
    course = lfilter([1.0], [1.0, -0.8], rng.normal(size=(240, 20)), axis=0)
    return table(course, np.repeat(rng.permutation([0, 1] * 4), 30))


def subjects_of_six(rng):
    """40 subjects of six adjacent rows, each with a random label."""
    own = np.repeat(rng.normal(size=(40, 20)), 6, axis=0)
    return table(own + rng.normal(size=(240, 20)), np.repeat(rng.permutation([0, 1] * 20), 6))


@pytest.mark.parametrize("make", [recording, subjects_of_six])
@pytest.mark.parametrize("arranged", [lambda data: data, sorted_by_class])
def test_dependent_rows_are_remarked_on_until_blocks_keep_them_together(make, arranged):
    data = arranged(make(np.random.default_rng(0)))
    settings = {"outer": 4, "inner": 2, "repeats": 1, "groups": None, "seed": 0}
    assert "cv.blocks" in remark(data)
    assert "are tested with that one in the training set" in remark(
        data, NestedPlan.make(data.y, **settings)
    )
    assert remark(data, NestedPlan.make(data.y, blocks=Blocks(4), **settings)) is not None
    assert remark(data, NestedPlan.make(data.y, blocks=Blocks(30), **settings)) is None
    shuffled = np.random.default_rng(1).permutation(data.n_samples)
    assert remark(table(data.X[shuffled], data.y[shuffled])) is None


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", pytest.param("digits", marks=pytest.mark.slow)]
)
def test_independent_rows_sorted_by_class_or_by_a_column_are_not_remarked_on(name):
    data = load_dataset(name)
    assert remark(sorted_by_class(data)) is None
    for column in range(0, data.n_features, 7):
        order = np.argsort(data.X[:, column], kind="stable")
        assert remark(table(data.X[order], data.y[order])) is None


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6), st.sampled_from([2, 5]), st.sampled_from([2, 20]), st.integers(20, 120)
)
def test_noise_in_any_order_is_not_remarked_on(seed, classes, width, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    if len(np.unique(y)) == classes:
        assert remark(sorted_by_class(table(rng.normal(size=(n, width)), y))) is None


@pytest.mark.parametrize("classes", [2, 4])
def test_labels_of_a_random_order_are_not_in_runs_and_pairs_of_equal_ones_are(classes):
    rng = np.random.default_rng(0)
    codes = rng.integers(classes, size=200)
    assert not any(in_runs(rng.permutation(codes)) for _ in range(300))
    assert all(in_runs(np.repeat(rng.permutation(codes), 2)) for _ in range(20))
    assert in_runs(np.sort(codes))


def test_blocks_longer_than_a_run_of_labels_are_asked_for_where_samples_stay_alike_longer():
    rng = np.random.default_rng(0)
    course = lfilter([1.0], [1.0, -0.95], rng.normal(size=(600, 21)), axis=0)
    data = table(course[:, 1:], (course[:, 0] > np.median(course[:, 0])).astype(int))
    told = remark(data)
    assert 30 < int(re.search(r"are alike \(about (\d+) here\)", told)[1]) < 70  # 0.95^45 is 0.1
    settings = {"outer": 3, "inner": 2, "repeats": 1, "groups": None, "seed": 0}
    assert "A tested sample correlates by 0." in remark(
        data, NestedPlan.make(data.y, blocks=Blocks(11), **settings)
    )
    assert remark(data, NestedPlan.make(data.y, blocks=Blocks(100), **settings)) is None


def test_subjects_measured_in_turn_are_remarked_on_until_groups_keep_them_together():
    data = interleaved(load_dataset("wine"), np.random.default_rng(0))
    (part,) = parts(data)
    settings = {"outer": 4, "inner": 2, "repeats": 1, "seed": 0}
    subjects = np.tile(np.arange(30), 8)
    assert order_remark(part) is None
    assert "30 rows apart" in period_remark(part)
    assert period_remark(part, NestedPlan.make(data.y, groups=None, **settings)) is not None
    assert period_remark(part, NestedPlan.make(data.y, groups=subjects, **settings)) is None


def test_conditions_that_recur_within_each_class_of_a_sorted_file_are_no_subjects():
    rng = np.random.default_rng(0)
    condition = np.tile(rng.normal(size=(13, 20)), (2 * 20, 1))
    X, y = condition + rng.normal(size=condition.shape), np.repeat(np.arange(20), 2 * 13)
    (part,) = parts(table(X, y))
    assert period_remark(part) is None
    in_turn = np.tile(np.arange(13) >= 6, 40)  # the classes of subjects that stand in runs
    (part,) = parts(table(X, in_turn.astype(int)))
    assert "13 rows apart" in period_remark(part)


@pytest.mark.parametrize("shuffled", ["samples", "labels"])
def test_samples_alike_whose_labels_are_not_are_no_subjects(shuffled):
    data, rng = (
        interleaved(load_dataset("wine"), np.random.default_rng(1)),
        np.random.default_rng(0),
    )
    X, y = data.X, data.y
    X, y = (rng.permutation(X), y) if shuffled == "samples" else (X, rng.permutation(y))
    (part,) = parts(table(X, y))
    assert period_remark(part) is None
