"""Choices of a drafted study by kind, size and values of the data: folds, method and metric."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import compress, product
from typing import Any, NamedTuple

import numpy as np

from raysel.base.registry import find_method, solver_class
from raysel.base.search_drafts import LARGE, SMALL, DataSize
from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.targets import (
    CLASSES,
    CLASSIFICATION,
    LABELS,
    QUANTITIES,
    REGRESSION,
    find_target,
)
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.scoring_estimators import KNN, LINEAR_SVM, NATIVE, RIDGE
from raysel.study.defaults import default_estimator, default_metric

#: Fewest samples, or groups, of a class for two outer folds with two inner ones each: one to test,
#: two to split.
FEWEST = 3
#: Fewest samples with and without a label.
_FEWEST_OF_LABEL = 5
#: Usual number of folds, and that of large data or many labels.
_USUAL, _FEW = 5, 3
#: Number of samples from which the inner folds are large enough if there are three.
_MANY_SAMPLES = 500
#: Filters of one pass over the features, by the task of the target, for data that the other methods
#: would take minutes a fit for.
FILTERS = {CLASSIFICATION: "fisher_score", REGRESSION: "f_test"}
#: Largest number of features that is scored: where many features tell a little each, a smaller one
#: costs score.
MOST_FEATURES = 1000
_NUMBERS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, MOST_FEATURES)
#: A draft's score is compared with others', which are not of the fewest features within one
#: standard error.
_BEST = (
    "the number with the best inner score; one_se takes the fewest within one standard error of it"
)
#: n standardised features give samples of squared length n, so that C has to be the smaller the
#: more there are.
_C, _OF_C = (
    (0.001, 0.01, 0.1, 1.0),
    "of linear_svm, smaller where many features are selected; inner folds choose one",
)
#: The most numbers of features that are scored.
_MOST_NUMBERS = 7
#: Classes whose numbers of samples differ by this factor are unbalanced.
_UNBALANCED = 2.0
#: Ranges of cells that differ by this factor are of different units.
_UNITS = 100.0
#: Fewest columns that can be the cells of an image.
_FEWEST_CELLS = 16
#: What is said of the estimator that is fitted to the best features.
_FITTED = {
    RIDGE: "fitted to the best n_features, its alpha by inner folds; or knn",
    LINEAR_SVM: "fitted to the best n_features columns; or knn, native",
    KNN: "the nearest training sample in the best n_features cells; or linear_svm, native",
}


class DraftedKey(NamedTuple):
    """One key of a drafted configuration, with dots between its sections and its name."""

    key: str
    value: Any
    comment: str


def data_size(dataset: Dataset) -> DataSize:
    """Return the size of a data set, from which the draft tells how long fits take."""
    return DataSize(dataset.n_samples, dataset.n_features, max(1, len(dataset.classes)))


@dataclass(frozen=True)
class Folds:
    """Numbers of folds of a nested cross-validation."""

    outer: int
    inner: int
    why: str = ""


def fold_counts(y: LabelArray, groups: LabelArray | None = None, effort: int = SMALL) -> Folds:
    """Choose numbers of folds such that every class can be in each training set."""
    kind = find_target(y).kind
    if kind == LABELS:
        return Folds(_FEW, _FEW)
    outer = inner = _USUAL
    if effort >= LARGE:
        outer = _FEW
    if effort > SMALL or len(y) >= _MANY_SAMPLES:
        inner = _FEW
    unit, n = "samples", len(y)
    if groups is not None:
        unit, n = "groups", len(np.unique(groups))
    if kind != CLASSES:
        outer = max(2, min(outer, n // FEWEST))
        return Folds(outer, max(2, min(inner, (n - -(-n // outer)) // FEWEST)))
    counts = class_counts(y, groups)
    smallest = min(counts, key=lambda name: counts[name])
    most = counts[smallest]
    why = ""
    if most < outer or most - -(-most // outer) < inner:
        why = f"class {smallest} has {most} {unit}"
    outer = max(2, min(outer, most))
    return Folds(outer, max(2, min(inner, most - -(-most // outer))), why)


def drawn_folds(dataset: Dataset, effort: int = SMALL) -> Folds:
    """Choose numbers of folds that can be drawn, as groups may leave a class out of a fold."""
    wanted = fold_counts(dataset.y, dataset.groups, effort)
    if dataset.groups is None or _can_be_drawn(dataset, wanted):
        return wanted
    for outer, inner in product(range(wanted.outer, 1, -1), range(wanted.inner, 1, -1)):
        fewer = Folds(outer, inner, "the groups allow no more")
        if _can_be_drawn(dataset, fewer):
            return fewer
    return wanted


def _can_be_drawn(dataset: Dataset, folds: Folds) -> bool:
    y, groups = dataset.y, dataset.groups
    try:
        NestedPlan.make(y, outer=folds.outer, inner=folds.inner, repeats=1, groups=groups, seed=0)
    except DataError:
        return False
    return True


def class_counts(y: LabelArray, groups: LabelArray | None = None) -> dict[str | int, int]:
    """Count the samples of each class, or the groups that have it."""
    classes, code = np.unique(y, return_inverse=True)
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        code = np.unique(np.stack([code, member], axis=1), axis=0)[:, 0]
    counts = np.bincount(code, minlength=len(classes))
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def too_small_classes(y: LabelArray, groups: LabelArray | None = None) -> list[str | int]:
    """Return the classes with too few samples or groups for the folds; none if one were left."""
    counts = class_counts(y, groups)
    small = [name for name, count in counts.items() if count < FEWEST]
    if len(counts) - len(small) < 2:
        return []
    return small


def rare_labels(y: LabelArray, names: Collection[str]) -> list[str]:
    """Return the labels that too few samples have or lack for the folds; none if one were left."""
    present = y.sum(axis=0)
    is_rare = np.minimum(present, len(y) - present) < _FEWEST_OF_LABEL
    rare = [*compress(names, is_rare)]
    if y.shape[1] - len(rare) < 2:
        return []
    return rare


def fold_entries(dataset: Dataset, groups: str | None) -> list[DraftedKey]:
    """Choose the numbers of folds."""
    folds = drawn_folds(dataset, data_size(dataset).effort)
    outer = "folds whose test samples, which nothing else sees, give the score"
    if folds.why:
        outer += f"; no more, because {folds.why}"
    inner = "folds within each training set, which choose configuration and n_features"
    entries = [
        DraftedKey("cv.outer", folds.outer, outer),
        DraftedKey("cv.inner", folds.inner, inner),
    ]
    if groups is not None:
        comment = "the samples of one value stay in one fold; the column is no feature"
        entries.append(DraftedKey("cv.groups", groups, comment))
    return entries


def method_entries(dataset: Dataset) -> list[DraftedKey]:
    """Choose the solver, its parameters and the space that is searched."""
    name = choose_method(dataset)
    method = solver_class(find_method(name, dataset.target.kind))
    draft = method.draft(dataset.layout, data_size(dataset))
    if draft is None:
        why = f"a filter, which scores a feature at a time: the fits of {name} would take long"
        return [
            DraftedKey("solver.name", FILTERS[dataset.target.task], why),
            DraftedKey("search.method", "grid", "one configuration"),
        ]
    entries = [DraftedKey("solver.name", name, f"{draft.why}; others: raysel tune --list-solvers")]
    if draft.params:
        entries.append(DraftedKey("solver.params", dict(draft.params), draft.of_params))
    entries.append(DraftedKey("solver.space", dict(draft.space), draft.of_space))
    search, what = "grid", "every combination of the space"
    if method.capabilities.path:
        search, what = "path", "all values of the space in one pass over each training set"
    return [*entries, DraftedKey("search.method", search, what)]


def choose_method(dataset: Dataset) -> str:
    """Choose the method that fits target and layout."""
    layout, kind = dataset.layout, dataset.target.kind
    if kind == LABELS:
        return "smml"
    if layout.has_axes:
        return "smr"
    if kind == QUANTITIES:
        return "rfs"
    if layout.is_multimodal:
        return "smml"
    if layout.noun == "table":
        # By the loss that also scores the features, see experiments/claims/defaults.
        return "linear_svm"
    return "rfs"


def feature_numbers(n_features: int) -> list[int]:
    """Choose increasing numbers of features at which a ranking is scored."""
    top = min(n_features, MOST_FEATURES)
    numbers = [*(number for number in _NUMBERS if 1.25 * number < top), top]
    places = np.linspace(0, len(numbers) - 1, min(_MOST_NUMBERS, len(numbers))).round().astype(int)
    return [numbers[place] for place in places]


def scaling_entry(dataset: Dataset) -> DraftedKey:
    """Choose the scaling by the ranges of the values."""
    X, layout = np.asarray(dataset.filled), dataset.layout
    low, high = X.min(axis=0), X.max(axis=0)
    shown = f"the values lie in {low.min():.4g} to {high.max():.4g}"
    value, why = (
        "zscore",
        "mean 0 and variance 1 a column, learned on each training set: columns differ in unit",
    )
    if layout.is_multimodal:
        value = "zscore_sqrt_width"
        why = (
            "mean 0 and variance 1 a feature, then divided by the root of its modality's width, so"
            " that none dominates"
        )
    elif dataset.target.kind != LABELS and layout.noun != "table":
        if _share_unit(low, high):
            value, why = "unit", f"all cells by one range, as fits pixels: {shown}"
        else:
            why = f"the cells' ranges differ more than {_UNITS:g}-fold, so each cell by its own"
    elif _like_pixels(X, low, high):
        value, why = "unit", f"all columns by one range, for they look like pixels: {shown}"
    elif layout.feature_noun != "column":
        why = f"mean 0 and variance 1 a {layout.feature_noun}, learned on each training set"
    return DraftedKey("dataset.scaling", value, why)


def _share_unit(low: FloatArray, high: FloatArray) -> bool:
    ranges = (high - low)[high > low]
    return len(ranges) == 0 or bool(np.quantile(ranges, 0.9) <= _UNITS * np.quantile(ranges, 0.1))


def _like_pixels(X: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Return whether many columns of whole numbers from 0 on have a common range, mostly."""
    if X.shape[1] < _FEWEST_CELLS or low.min() != 0 or high.max() < 2:
        return False
    if not np.array_equal(X, np.floor(X)):
        return False
    return bool(np.mean(low == 0) > 0.5 and np.median(high) >= 0.5 * high.max())


def evaluation_entries(dataset: Dataset) -> list[DraftedKey]:
    """Choose the estimator, the numbers of features and the metric."""
    which = (
        f"numbers of best features that are scored, of {dataset.n_features}; inner folds choose one"
    )
    value = default_estimator(dataset)
    if not dataset.target.is_of_classes:
        return [
            DraftedKey("evaluation.estimator", value, _FITTED[value]),
            DraftedKey("evaluation.n_features", feature_numbers(dataset.n_features), which),
            DraftedKey(
                "evaluation.metric",
                default_metric(dataset),
                "1 less the squared error over that of the training mean; or neg_rmse, neg_mae,"
                " spearman",
            ),
        ]
    if not dataset.target.is_one_class or dataset.layout.is_multimodal:
        why = (
            "the model's own prediction from all features; knn and linear_svm are fitted to the"
            " best n_features"
        )
        return [DraftedKey("evaluation.estimator", NATIVE, why), _metric(dataset)]
    entries = [DraftedKey("evaluation.estimator", value, _FITTED[value])]
    if value == LINEAR_SVM:
        entries.append(DraftedKey("evaluation.C", list(_C), _OF_C))
    return [
        *entries,
        DraftedKey("evaluation.n_features", feature_numbers(dataset.n_features), which),
        DraftedKey("evaluation.choose_n", "best", _BEST),
        _metric(dataset),
    ]


def _metric(dataset: Dataset) -> DraftedKey:
    key, value = "evaluation.metric", default_metric(dataset)
    if not dataset.target.is_one_class:
        why = "mean over the labels of each label's F1, so that rare labels count as much"
        return DraftedKey(key, value, why)
    counts = dataset.target.counts(dataset.y).tolist()
    fewest, most = min(counts), max(counts)
    if most < _UNBALANCED * fewest:
        why = "share of test samples that are classified correctly; the classes are balanced enough"
        return DraftedKey(key, value, why)
    if len(counts) == 2 and dataset.layout.noun == "table":
        # A linear SVM without class weights may predict the larger class only, and yet rank the
        # samples well.
        why = (
            f"share of pairs of the two classes, of {fewest} and {most} samples, that are ranked"
            " rightly; chance is .5; or balanced_accuracy"
        )
        return DraftedKey(key, "roc_auc", why)
    why = f"mean recall of the classes, for they have {fewest} to {most} samples; or accuracy"
    return DraftedKey(key, "balanced_accuracy", why)
