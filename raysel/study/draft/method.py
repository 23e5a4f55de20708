"""Method and search space of a drafted study, by the kind and the size of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.data.dataset import Dataset
from raysel.study.draft.folds import Effort, Kind, class_counts, effort_of
from raysel.study.draft.text import Entry

#: Ranks that are tried beside that which bounds nothing, where the samples have more rows and columns.
_RANKS = (2, 4, 8)

#: Method for data that the others would take minutes a fit for.
FOR_LARGE = "fisher_score"
#: Largest number of equations, of samples or features, that each iteration of rfs may solve.
_LARGEST_SYSTEM = 1500
#: Most iterations of smml, by which the longest time of a study is estimated; on MSRC-v1, MSRC-v2, Scene and mfeat fits
#: to the duality gap of a draft took 54 at most.
_MOST_ITERATIONS = 200
#: On tables rfs with a linear SVM was within one SD of the best of eight methods on iris, wine, breast_cancer, MSRC-v1
#: and mfeat; its own prediction was not (.81 on iris, where the SVM has .95).
_OF_KIND = {
    Kind.TABLE: ("rfs", "robust regression onto the classes: one weight a column, no structure among them"),
    Kind.TENSOR: ("rfs", "one weight a cell: the methods that use rows and columns need samples of two axes"),
    Kind.MATRIX: ("smr", "sparse matrix regression: ranks the cells by a regression of low rank in rows and columns"),
    Kind.MODALITIES: ("smml", "sparse multimodal learning: weighs whole modalities and single features"),
    Kind.LABELS: ("smml", "sparse multimodal learning, which takes several labels a sample"),
}


def method_entries(dataset: Dataset, kind: Kind) -> list[Entry]:
    """Choose the solver, its parameters and the space that is searched."""
    name, why = _OF_KIND[kind]
    effort = effort_of(dataset)
    size = min(dataset.n_samples, dataset.n_features)
    if (effort is Effort.HUGE and name != "smml") or (name == "rfs" and size > _LARGEST_SYSTEM):
        why = (
            f"ratio of the scatter between and within classes, a feature at a time: a fit of {name} would take minutes"
        )
        return [Entry("solver.name", FOR_LARGE, why), Entry("search.method", "grid", "one configuration")]
    found = [Entry("solver.name", name, f"{why}; others: python -m raysel.tune --list-solvers")]
    space: dict[str, Any]
    if name == "smml":
        params = {"max_iter": _MOST_ITERATIONS, "tol": 0.001}
        found.append(Entry("solver.params", params, "iterations at most, and the duality gap at which a fit ends"))
        steps = [0.01, 0.1] if effort >= Effort.MEDIUM else [0.01, 0.03, 0.1, 0.3]
        space = {"gamma1": [0, *steps], "gamma2": [0.001, *steps]}
        unit = "gamma1 weighs modalities, gamma2 features; fractions of the value from which on nothing is selected"
        method = Entry("search.method", "path", "all values of the space in one pass over each training set")
    else:
        n_values = 3 if effort >= Effort.LARGE else 5 if name == "smr" and effort is Effort.SMALL else 4
        alpha = {"logspace": [0.003, 0.3, n_values]}
        unit = "alpha is the sparsity, as a fraction of the value from which on nothing is selected"
        method = Entry("search.method", "grid", "every combination of the space")
        if name == "smr":
            found.append(
                Entry("solver.params", {"max_iter": 30, "tol": 0.0001}, "iterations at most, and when to stop")
            )
            side = min(dataset.layout.grid)
            ranks = [*[rank for rank in _RANKS if rank < side][: 3 - effort], side]
            space = {"alpha": alpha, "rank": ranks}
            unit += f"; rank is that of the weights; {side} bounds nothing, so that low rank has to pay"
        else:
            space = {"alpha": alpha}
    return [*found, Entry("solver.space", space, f"what is searched: {unit}"), method]


#: Largest number of features that is scored.
MOST_FEATURES = 300
_NUMBERS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, MOST_FEATURES)
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
    found = [*(number for number in _NUMBERS if 1.25 * number < top), top]
    places = np.linspace(0, len(found) - 1, min(_MOST_NUMBERS, len(found))).round().astype(int)
    return [found[place] for place in places]


def scaling_entry(dataset: Dataset, kind: Kind) -> Entry:
    """Choose the scaling by the ranges of the values."""
    X = np.asarray(dataset.X)
    low, high = X.min(axis=0), X.max(axis=0)
    shown = f"the values lie in {low.min():.4g} to {high.max():.4g}"
    key = "dataset.scaling"
    if dataset.layout.is_multimodal:
        why = (
            "mean 0 and variance 1 a feature, then divided by the root of its modality's width, so that none dominates"
        )
        return Entry(key, "zscore_sqrt_width", why)
    if kind in (Kind.MATRIX, Kind.TENSOR):
        if _of_one_unit(low, high):
            return Entry(key, "unit", f"all cells by one range, as fits pixels: {shown}")
        return Entry(key, "zscore", f"the cells' ranges differ more than {_UNITS:g}-fold, so each cell by its own")
    if _like_pixels(X, low, high):
        return Entry(key, "unit", f"all columns by one range, for they look like pixels: {shown}")
    noun = dataset.layout.feature_noun
    why = ": columns differ in unit" if noun == "column" else ""
    return Entry(key, "zscore", f"mean 0 and variance 1 a {noun}, learned on each training set{why}")


def _of_one_unit(low: FloatArray, high: FloatArray) -> bool:
    ranges = (high - low)[high > low]
    return len(ranges) == 0 or bool(np.quantile(ranges, 0.9) <= _UNITS * np.quantile(ranges, 0.1))


def _like_pixels(X: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Return whether many columns of whole numbers from 0 on share their minimum, and mostly their maximum."""
    if X.shape[1] < _FEWEST_CELLS or low.min() != 0 or high.max() < 2 or not np.array_equal(X, np.floor(X)):
        return False
    return bool(np.mean(low == 0) > 0.5 and np.median(high) >= 0.5 * high.max())


def evaluation_entries(dataset: Dataset, kind: Kind) -> list[Entry]:
    """Choose the classifier, the numbers of features and the metric."""
    metric = _metric(dataset)
    if kind in (Kind.MODALITIES, Kind.LABELS):
        why = "the model's own prediction from all features; knn and linear_svm are fitted to the best n_features"
        return [Entry("evaluation.classifier", "native", why), metric]
    if kind is Kind.TABLE:
        classifier = Entry(
            "evaluation.classifier", "linear_svm", "fitted to the best n_features columns; or knn, native"
        )
    else:
        why = "the nearest training sample in the best n_features cells; or linear_svm, native"
        classifier = Entry("evaluation.classifier", "knn", why)
    return [
        classifier,
        Entry(
            "evaluation.n_features",
            feature_numbers(dataset.n_features),
            f"numbers of best features that are scored, of {dataset.n_features}; inner folds choose one",
        ),
        metric,
    ]


def _metric(dataset: Dataset) -> Entry:
    key = "evaluation.metric"
    if dataset.is_multilabel:
        return Entry(key, "macro_f1", "mean over the labels of each label's F1, so that rare labels count as much")
    counts = class_counts(dataset.y).values()
    if max(counts) >= _UNBALANCED * min(counts):
        why = f"mean recall of the classes, for they have {min(counts)} to {max(counts)} samples; or accuracy"
        return Entry(key, "balanced_accuracy", why)
    return Entry(
        key, "accuracy", "share of test samples that are classified correctly; the classes are balanced enough"
    )
