"""Choices of a drafted study by the kind, the size and the values of the data: folds, method,
scaling and metric.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray, is_quantity
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Layout
from raysel.evaluation.judges import KNN, LINEAR_SVM, NATIVE, RIDGE
from raysel.evaluation.plan import NestedPlan
from raysel.numerics.tensor_factors import largest_rank
from raysel.study.defaults import default_estimator, default_metric


class Entry(NamedTuple):
    """One key of a drafted configuration, with dots between its sections and its name."""

    key: str
    value: Any
    comment: str


#: Number of values of X times number of classes from which an effort is medium, large, and huge.
_STEPS = (500_000, 50_000_000, 400_000_000)


#: Effort of a fit; the larger it is, the fewer fits a draft asks for.
SMALL, MEDIUM, LARGE, HUGE = range(4)


def effort_of(dataset: Dataset) -> int:
    """Return the effort of fits to a data set, from its size alone, so that a draft is the same
    on every machine.
    """
    n_targets = max(1, len(dataset.classes))
    return sum(dataset.n_samples * dataset.n_features * n_targets > step for step in _STEPS)


#: Fewest samples, or groups, of a class for two outer folds with two inner ones each: one to test,
#: two to split.
FEWEST = 3
#: Fewest samples with and without a label.
_FEWEST_OF_LABEL = 5
#: Usual number of folds, and that of large data or many labels.
_USUAL, _FEW = 5, 3
#: Number of samples from which the inner folds are large enough if there are three.
_MANY_SAMPLES = 500


@dataclass(frozen=True)
class Folds:
    """Numbers of folds of a nested cross-validation."""

    outer: int
    inner: int
    why: str = ""


def fold_counts(y: LabelArray, groups: LabelArray | None = None, effort: int = SMALL) -> Folds:
    """Choose numbers of folds such that every class can be in each training set."""
    of_labels = y.ndim == 2 and not is_quantity(y)
    outer = _FEW if of_labels or effort >= LARGE else _USUAL
    inner = _FEW if of_labels or effort > SMALL or len(y) >= _MANY_SAMPLES else _USUAL
    if of_labels:
        return Folds(outer, inner)
    if is_quantity(y):
        n = len(y) if groups is None else len(np.unique(groups))
        outer = max(2, min(outer, n // FEWEST))
        return Folds(outer, max(2, min(inner, (n - -(-n // outer)) // FEWEST)))
    counts = class_counts(y, groups)
    smallest = min(counts, key=lambda name: counts[name])
    most = counts[smallest]
    what = "samples" if groups is None else "groups"
    why = (
        f"class {smallest} has {most} {what}"
        if most < outer or most - -(-most // outer) < inner
        else ""
    )
    outer = max(2, min(outer, most))
    return Folds(outer, max(2, min(inner, most - -(-most // outer))), why)


def drawn_folds(dataset: Dataset, effort: int = SMALL) -> Folds:
    """Choose numbers of folds that can be drawn: fewer if groups leave a class out of a training
    set.
    """
    wanted = fold_counts(dataset.y, dataset.groups, effort)
    if dataset.groups is None:
        return wanted
    for outer in range(wanted.outer, 1, -1):
        for inner in range(wanted.inner, 1, -1):
            try:
                NestedPlan.make(
                    dataset.y, outer=outer, inner=inner, repeats=1, groups=dataset.groups, seed=0
                )
            except DataError:
                continue
            why = (
                wanted.why
                if (outer, inner) == (wanted.outer, wanted.inner)
                else "the groups allow no more"
            )
            return Folds(outer, inner, why)
    return wanted


def class_counts(y: LabelArray, groups: LabelArray | None = None) -> dict[str | int, int]:
    """Count the samples of each class, or the groups that have it."""
    classes, code = np.unique(y, return_inverse=True)
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        code = np.unique(np.stack([code, member], axis=1), axis=0)[:, 0]
    counts = np.bincount(code, minlength=len(classes))
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def too_small_classes(y: LabelArray, groups: LabelArray | None = None) -> list[str | int]:
    """Return the classes with too few samples, or groups, for nested folds, unless fewer than
    two would be left.
    """
    counts = class_counts(y, groups)
    small = [name for name, count in counts.items() if count < FEWEST]
    return small if len(counts) - len(small) > 1 else []


def rare_labels(y: LabelArray, names: Collection[str]) -> list[str]:
    """Return the labels that too few samples have, or lack, for nested folds, unless fewer than
    two would be left.
    """
    present = y.sum(axis=0)
    fewest = np.minimum(present, len(y) - present)
    rare = [
        name for name, count in zip(names, fewest.tolist(), strict=True) if count < _FEWEST_OF_LABEL
    ]
    return rare if y.shape[1] - len(rare) > 1 else []


def fold_entries(dataset: Dataset, groups: str | None) -> list[Entry]:
    """Choose the numbers of folds."""
    folds = drawn_folds(dataset, effort_of(dataset))
    limit = f"; no more, because {folds.why}" if folds.why else ""
    entries = [
        Entry(
            "cv.outer",
            folds.outer,
            f"folds whose test samples, which nothing else sees, give the score{limit}",
        ),
        Entry(
            "cv.inner",
            folds.inner,
            "folds within each training set, which choose configuration and n_features",
        ),
    ]
    if groups is not None:
        comment = "the samples of one value stay in one fold; the column is no feature"
        entries.append(Entry("cv.groups", groups, comment))
    return entries


#: Ranks that are tried beside that which bounds nothing, of matrices and of arrays of higher order,
#: whose coefficients have fewer numbers at each rank.
_RANKS, _RANKS_OF_ARRAYS = (2, 4, 8), (1, 2, 4)
#: Method for data that the others would take minutes a fit for.
FOR_LARGE = "fisher_score"
#: Largest number of equations, of samples or features, that each iteration of rfs may solve; with
#: as many samples and features a fit with an l1 penalty takes seconds.
_LARGEST_SYSTEM = 1500
#: Most iterations of smml, by which the longest time of a study is estimated; on MSRC-v1, MSRC-v2,
#: Scene and mfeat fits to the duality gap of a draft took 54 at most.
_MOST_ITERATIONS = 200
#: Tables are ranked by the loss that judges them, see experiments/claims/defaults.
_OF_TABLES = "linear_svm"
_REASONS = {
    "linear_svm": (
        "linear SVM with an l1 or l2 penalty: a model of all columns at once, no structure among"
        " them"
    ),
    "rfs": "robust regression onto the classes: one weight a column, no structure among them",
    "smr": (
        "sparse matrix regression: ranks the cells by a regression of low rank in the axes of a"
        " sample"
    ),
    "smml": "sparse multimodal learning: weighs whole modalities and single features",
}
_PENALTIES = (
    "l1 sets most weights to 0, l2 none: where many columns tell a little each, l1 cannot rank"
    " them all"
)
_OF_LABELS = "sparse multimodal learning, which takes several labels a sample"
_FRACTION = "the value from which on nothing is selected"


def method_entries(dataset: Dataset) -> list[Entry]:
    """Choose the solver, its parameters and the space that is searched."""
    if dataset.is_regression:
        return _regression_entries(dataset)
    layout, effort = dataset.layout, effort_of(dataset)
    name = (
        "smml"
        if dataset.is_multilabel
        else _OF_TABLES
        if layout.noun == "table"
        else layout.default_solver
    )
    why = _OF_LABELS if dataset.is_multilabel else _REASONS[name]
    size = min(dataset.n_samples, dataset.n_features)
    if (effort == HUGE and name != "smml") or (
        name in ("rfs", _OF_TABLES) and size > _LARGEST_SYSTEM
    ):
        why = (
            "ratio of the scatter between and within classes, a feature at a time: the fits of"
            f" {name} would take long"
        )
        return [
            Entry("solver.name", FOR_LARGE, why),
            Entry("search.method", "grid", "one configuration"),
        ]
    solver = Entry("solver.name", name, f"{why}; others: python -m raysel.tune --list-solvers")
    grid = Entry("search.method", "grid", "every combination of the space")
    n_values = 3 if effort >= LARGE else 5 if name == "smr" and effort == SMALL else 4
    space: dict[str, Any] = {"alpha": {"logspace": [0.003, 0.3, n_values]}}
    unit = f"what is searched: alpha is the sparsity, as a fraction of {_FRACTION}"
    if name == _OF_TABLES:
        loss = (
            "the weight of the loss, smaller is sparser; the smallest select a few columns or none"
        )
        space = {"C": {"logspace": [0.003, 0.3, n_values + 1]}, "penalty": ["l1", "l2"]}
        return [solver, Entry("solver.space", space, f"{loss}; {_PENALTIES}"), grid]
    if name == "rfs":
        return [solver, Entry("solver.space", space, unit), grid]
    if name == "smr":
        params, comment = {"max_iter": 30, "tol": 0.0001}, "iterations at most, and when to stop"
        space["rank"] = _ranks(layout, effort)
        unit += _of_ranks(space["rank"])
    else:
        params, comment = (
            {"max_iter": _MOST_ITERATIONS, "tol": 0.001},
            "iterations at most, and the duality gap at ",
        )
        comment += "which a fit ends"
        steps = [0.01, 0.1] if effort >= MEDIUM else [0.01, 0.03, 0.1, 0.3]
        space = {"gamma1": [0, *steps], "gamma2": [0.001, *steps]}
        unit = (
            f"what is searched: gamma1 weighs modalities, gamma2 features; fractions of {_FRACTION}"
        )
        grid = Entry(
            "search.method", "path", "all values of the space in one pass over each training set"
        )
    return [
        solver,
        Entry("solver.params", params, comment),
        Entry("solver.space", space, unit),
        grid,
    ]


def _ranks(layout: Layout, effort: int) -> list[int]:
    """Ranks that are tried, the last of which bounds nothing."""
    most = largest_rank(layout.grid)
    low = _RANKS if len(layout.grid) == 2 else _RANKS_OF_ARRAYS
    return [*[rank for rank in low if rank < most][: 3 - effort], most]


def _of_ranks(ranks: list[int]) -> str:
    return f"; rank is that of the weights; {ranks[-1]} bounds nothing, so that low rank has to pay"


def _regression_entries(dataset: Dataset) -> list[Entry]:
    """Choose the solver of a quantity, and the space that is searched."""
    layout, effort = dataset.layout, effort_of(dataset)
    size = min(dataset.n_samples, dataset.n_features)
    if effort == HUGE or size > _LARGEST_SYSTEM:
        why = "F-test of the regression on each feature alone: a fit of rfs would take minutes"
        return [
            Entry("solver.name", "f_test", why),
            Entry("search.method", "grid", "one configuration"),
        ]
    name = "smr" if layout.default_solver == "smr" else "rfs"
    why = "robust regression: one weight a column, no structure among them"
    if name == "smr":
        why = _REASONS["smr"]
    space: dict[str, Any] = {"alpha": {"logspace": [0.01, 0.5, 3 if effort >= LARGE else 5]}}
    unit = f"what is searched: alpha is the sparsity, as a fraction of {_FRACTION}"
    entries = [Entry("solver.name", name, f"{why}; others: python -m raysel.tune --list-solvers")]
    if name == "smr":
        entries.append(
            Entry(
                "solver.params",
                {"max_iter": 30, "tol": 0.0001},
                "iterations at most, and when to stop",
            )
        )
        space["rank"] = _ranks(layout, effort)
        unit += _of_ranks(space["rank"])
    return [
        *entries,
        Entry("solver.space", space, unit),
        Entry("search.method", "grid", "every combination of the space"),
    ]


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


def feature_numbers(n_features: int) -> list[int]:
    """Choose increasing numbers of features at which a ranking is scored."""
    top = min(n_features, MOST_FEATURES)
    numbers = [*(number for number in _NUMBERS if 1.25 * number < top), top]
    places = np.linspace(0, len(numbers) - 1, min(_MOST_NUMBERS, len(numbers))).round().astype(int)
    return [numbers[place] for place in places]


def scaling_entry(dataset: Dataset) -> Entry:
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
    elif not dataset.is_multilabel and layout.noun != "table":
        if _of_one_unit(low, high):
            value, why = "unit", f"all cells by one range, as fits pixels: {shown}"
        else:
            why = f"the cells' ranges differ more than {_UNITS:g}-fold, so each cell by its own"
    elif _like_pixels(X, low, high):
        value, why = "unit", f"all columns by one range, for they look like pixels: {shown}"
    elif layout.feature_noun != "column":
        why = f"mean 0 and variance 1 a {layout.feature_noun}, learned on each training set"
    return Entry("dataset.scaling", value, why)


def _of_one_unit(low: FloatArray, high: FloatArray) -> bool:
    ranges = (high - low)[high > low]
    return len(ranges) == 0 or bool(np.quantile(ranges, 0.9) <= _UNITS * np.quantile(ranges, 0.1))


def _like_pixels(X: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Return whether many columns of whole numbers from 0 on share their minimum, and mostly
    their maximum.
    """
    if (
        X.shape[1] < _FEWEST_CELLS
        or low.min() != 0
        or high.max() < 2
        or not np.array_equal(X, np.floor(X))
    ):
        return False
    return bool(np.mean(low == 0) > 0.5 and np.median(high) >= 0.5 * high.max())


#: What is said of the estimator that is fitted to the best features.
_FITTED = {
    RIDGE: "fitted to the best n_features, its alpha by inner folds; or knn",
    LINEAR_SVM: "fitted to the best n_features columns; or knn, native",
    KNN: "the nearest training sample in the best n_features cells; or linear_svm, native",
}


def evaluation_entries(dataset: Dataset) -> list[Entry]:
    """Choose the estimator, the numbers of features and the metric."""
    which = (
        f"numbers of best features that are scored, of {dataset.n_features}; inner folds choose one"
    )
    value = default_estimator(dataset)
    if dataset.is_regression:
        return [
            Entry("evaluation.estimator", value, _FITTED[value]),
            Entry("evaluation.n_features", feature_numbers(dataset.n_features), which),
            Entry(
                "evaluation.metric",
                default_metric(dataset),
                "1 less the squared error over that of the training mean; or neg_rmse, neg_mae,"
                " spearman",
            ),
        ]
    if dataset.is_multilabel or dataset.layout.is_multimodal:
        why = (
            "the model's own prediction from all features; knn and linear_svm are fitted to the"
            " best n_features"
        )
        return [Entry("evaluation.estimator", NATIVE, why), _metric(dataset)]
    numbers = feature_numbers(dataset.n_features)
    strengths = [Entry("evaluation.C", list(_C), _OF_C)] if value == LINEAR_SVM else []
    return [
        Entry("evaluation.estimator", value, _FITTED[value]),
        *strengths,
        Entry("evaluation.n_features", numbers, which),
        Entry("evaluation.choose_n", "best", _BEST),
        _metric(dataset),
    ]


def _metric(dataset: Dataset) -> Entry:
    value = default_metric(dataset)
    counts = [] if dataset.is_multilabel else class_counts(dataset.y).values()
    if dataset.is_multilabel:
        why = "mean over the labels of each label's F1, so that rare labels count as much"
    elif (
        max(counts) >= _UNBALANCED * min(counts)
        and len(counts) == 2
        and dataset.layout.noun == "table"
    ):
        # A linear SVM without class weights may predict the larger class only, and yet rank the
        # samples well.
        value = "roc_auc"
        why = (
            "share of the pairs of a sample of each class that are ranked rightly, for they have"
            f" {min(counts)} and {max(counts)} samples; chance is .5; or balanced_accuracy"
        )
    elif max(counts) >= _UNBALANCED * min(counts):
        value = "balanced_accuracy"
        why = (
            f"mean recall of the classes, for they have {min(counts)} to {max(counts)} samples; or"
            " accuracy"
        )
    else:
        why = "share of test samples that are classified correctly; the classes are balanced enough"
    return Entry("evaluation.metric", value, why)
