"""Choices of a draft: folds that can be drawn, numbers of features, scaling, metric, and text
that reads back.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.base.registry import build_solver, solver_class
from raysel.base.search_drafts import DataSize
from raysel.config.plain_data import parse_yaml
from raysel.config.space import domain_from_yaml
from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.evaluation.configurations import configurations
from raysel.evaluation.plan import NestedPlan
from raysel.study.draft.choices import (
    FEWEST,
    MOST_FEATURES,
    DraftedKey,
    class_counts,
    drawn_folds,
    evaluation_entries,
    feature_numbers,
    fold_counts,
    method_entries,
    rare_labels,
    scaling_entry,
    too_small_classes,
)
from raysel.study.draft.draft import study_text


def data(
    X: np.ndarray, y: np.ndarray, layout: Tensor | Modalities | None = None, **other: object
) -> Dataset:
    return Dataset(X, y, layout or Tensor((X.shape[1],)), **other)


@given(st.lists(st.integers(FEWEST, 12), min_size=2, max_size=5), st.integers(0, 10))
@settings(max_examples=10)
def test_folds_can_be_drawn_for_any_classes_of_three_samples_and_more(sizes, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    folds = fold_counts(y)
    plan = NestedPlan.make(
        y, outer=folds.outer, inner=folds.inner, repeats=1, groups=None, seed=seed
    )
    assert len(plan.outer) == folds.outer <= min(*sizes, 5)


@given(st.lists(st.integers(FEWEST, 5), min_size=2, max_size=3), st.integers(1, 4))
@settings(max_examples=4)
def test_folds_can_be_drawn_for_groups_within_classes(n_groups, each):
    y = np.repeat(np.arange(len(n_groups)), [n * each for n in n_groups])
    groups = np.repeat(np.arange(sum(n_groups)), each)
    folds = drawn_folds(data(np.zeros((len(y), 1)), y, groups=groups))
    NestedPlan.make(y, outer=folds.outer, inner=folds.inner, repeats=1, groups=groups, seed=0)


def test_classes_are_counted_by_samples_or_by_groups():
    y, groups = np.array(["a", "b", "a", "b", "b"]), np.array([1, 1, 1, 2, 3])
    assert class_counts(y) == {"a": 2, "b": 3}
    assert class_counts(y, groups) == {"a": 1, "b": 3}
    assert too_small_classes(np.repeat([0, 1, 2], [9, 2, 9])) == [1]
    assert too_small_classes(np.array([0, 0, 1, 1, 2])) == []  # nothing would be left


def test_labels_that_nearly_all_samples_have_are_as_rare_as_those_that_nearly_none_has():
    y = np.zeros((30, 4), dtype=int)
    y[:15, 0] = y[::2, 1] = y[:2, 2] = y[2:, 3] = 1
    assert rare_labels(y, "abcd") == ["c", "d"]


@given(st.integers(1, 100_000))
@settings(max_examples=30)
def test_numbers_of_features_increase_up_to_all_or_a_few_hundred(d):
    numbers = feature_numbers(d)
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= 7
    assert (numbers[0], numbers[-1]) == (1, min(d, MOST_FEATURES))


def test_the_method_follows_layout_and_labels():
    X, y = np.random.default_rng(0).random((12, 12)), np.arange(12) % 2
    layouts = {
        Tensor((12,)): "linear_svm",
        Tensor((12, 1)): "linear_svm",
        Tensor((3, 4)): "smr",
        Tensor((2, 2, 3)): "smr",
    }
    for layout, solver in [*layouts.items(), (Modalities({"a": 5, "b": 7}), "smml")]:
        entries = {entry.key: entry.value for entry in method_entries(data(X, y, layout))}
        assert entries["solver.name"] == solver
        if solver == "smr":  # the largest rank bounds nothing
            assert entries["solver.space"]["rank"] == (
                [2, 3] if layout == Tensor((3, 4)) else [1, 2, 4]
            )
    assert method_entries(data(X, np.stack([y, y[::-1]], 1), Tensor((3, 4))))[0].value == "smml"


def test_scaling_follows_the_ranges():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    pixels = rng.integers(0, 256, (40, 64)).astype(float)
    pixels[0] = 0
    assert scaling_entry(data(pixels, y, Tensor((8, 8)))).value == "unit"
    assert scaling_entry(data(pixels, y)).value == "unit"
    assert scaling_entry(data(pixels * np.logspace(0, 5, 64), y, Tensor((8, 8)))).value == "zscore"
    assert (
        scaling_entry(data(pixels, y, Modalities({"a": 60, "b": 4}))).value == "zscore_sqrt_width"
    )
    assert scaling_entry(load_dataset("breast_cancer")).value == "zscore"


@pytest.mark.parametrize(
    ("sizes", "layout", "metric"),
    [
        ((20, 20), None, "accuracy"),
        ((30, 10), None, "roc_auc"),
        ((30, 10), Tensor((2, 3)), "balanced_accuracy"),
        ((22, 12, 6), None, "balanced_accuracy"),
    ],
)
def test_the_metric_of_unbalanced_classes_is_no_better_for_predicting_the_largest(
    sizes, layout, metric
):
    X, y = np.random.default_rng(0).random((40, 6)), np.repeat(np.arange(len(sizes)), sizes)
    entry = evaluation_entries(data(X, y, layout) if layout else data(X, y))[-1]
    assert (entry.key, entry.value) == ("evaluation.metric", metric)


names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12)


@given(st.lists(names, max_size=30), names, names)
@settings(max_examples=25)
def test_the_text_reads_back_whatever_the_names(drop, label, comment):
    entries = [
        DraftedKey("seed", 0, comment),
        DraftedKey("dataset.label", label, comment),
        DraftedKey("dataset.drop", drop, comment),
        DraftedKey("cv.outer", 5, "x" * 200),
    ]
    text = study_text([comment], [comment, f"line\nbreak {comment}"], entries)
    assert parse_yaml(text, "text") == {
        "seed": 0,
        "dataset": {"label": label, "drop": drop},
        "cv": {"outer": 5},
    }


def test_large_data_get_a_method_of_one_pass():
    X = np.random.default_rng(0).random((1600, 1600), dtype=np.float32)
    entries = method_entries(data(X, np.arange(1600) % 2))
    assert {entry.key: entry.value for entry in entries} == {
        "solver.name": "fisher_score",
        "search.method": "grid",
    }


@pytest.mark.parametrize(
    "name", ["linear_svm", "rfs", "smr", "smml", "rfs_regressor", "smr_regressor"]
)
@pytest.mark.parametrize("shape", [(6, 5), (3, 2, 5), (300, 10)])
@pytest.mark.parametrize("n_samples", [20, 20_000, 2_000_000])
def test_a_method_can_be_made_with_all_that_its_draft_searches(name, shape, n_samples):
    cls, layout = solver_class(name), Tensor(shape)
    draft = cls.draft(layout, DataSize(n_samples, layout.n_features, n_classes=3))
    if draft is None:
        assert min(n_samples, layout.n_features) > 1500 or n_samples == 2_000_000
        return
    assert draft.why
    assert draft.of_space
    assert bool(draft.params) == bool(draft.of_params)
    space = {key: domain_from_yaml(domain) for key, domain in draft.space.items()}
    for point in configurations(draft.params, space, method="grid", num_samples=None, seed=0):
        build_solver(name, layout, point.params).check(layout.n_features)
