"""Data sets with columns planted into them that tell the label."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor

Planting = Callable[[Dataset, np.random.Generator], Dataset]


def table(X: np.ndarray, y: np.ndarray, names: tuple[str, ...] = (), **fields: object) -> Dataset:
    """A table, its columns called c0, c1, ... where they have no names."""
    d = X.shape[1]
    return Dataset(
        X, y, Tensor((d,)), feature_names=names or tuple(f"c{i}" for i in range(d)), **fields
    )


def with_columns(
    data: Dataset, columns: dict[str, np.ndarray], rows: np.ndarray | None = None
) -> Dataset:
    """The table with further columns in front, as a file has an index, and rows in another order."""
    rows = np.arange(data.n_samples) if rows is None else rows
    X = np.hstack([np.stack(list(columns.values()), axis=1).astype(float), data.X])[rows]
    return table(X, data.y[rows], (*columns, *data.feature_names))


def sorted_by_class(data: Dataset) -> Dataset:
    """The table with its classes one after the other."""
    order = np.argsort(data.y, kind="stable")
    return table(data.X[order], data.y[order], data.feature_names)


def subjects(y: np.ndarray, each: int) -> np.ndarray:
    """A subject for each sample, numbered in the order of the classes; some samples of one class each."""
    numbers = np.empty(len(y), dtype=int)
    start = 0
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        numbers[rows] = start + np.arange(len(rows)) // each
        start = numbers[rows].max() + 1
    return numbers


def _grade(
    column: Callable[[Dataset, np.random.Generator], np.ndarray], name: str = "grade"
) -> Planting:
    return lambda data, rng: with_columns(data, {name: column(data, rng)})


def _shuffled_index(data: Dataset, rng: np.random.Generator) -> Dataset:
    rows = rng.permutation(data.n_samples)
    return with_columns(sorted_by_class(data), {"row": np.arange(1, data.n_samples + 1)}, rows)


def _one_hot(data: Dataset, _: np.random.Generator) -> Dataset:
    return with_columns(data, {f"is_{label}": data.y == label for label in data.classes[1:]})


def _recoded(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=len(data.classes))[np.searchsorted(data.classes, data.y)]


def _sub_classes(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    return 10 * data.y + rng.integers(3, size=data.n_samples)


def _mixed_sub_classes(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(3 * len(data.classes))[3 * data.y + rng.integers(3, size=data.n_samples)]


def _shuffled(data: Dataset, columns: dict[str, np.ndarray], rng: np.random.Generator) -> Dataset:
    return with_columns(data, columns, rng.permutation(data.n_samples))


def _named_subject(data: Dataset, rng: np.random.Generator) -> Dataset:
    return _shuffled(
        data, {"SubjectID": rng.integers(data.n_samples // 4, size=data.n_samples)}, rng
    )


def _subject(data: Dataset, rng: np.random.Generator) -> Dataset:
    codes = rng.permutation(data.n_samples)
    return _shuffled(data, {"s": codes[subjects(data.y, 4)]}, rng)


def _duplicates(data: Dataset, rng: np.random.Generator) -> Dataset:
    rows = np.concatenate(
        [np.arange(data.n_samples), rng.choice(data.n_samples, data.n_samples // 10, replace=False)]
    )
    return table(data.X[rows], data.y[rows], data.feature_names)


def _near_duplicates(data: Dataset, rng: np.random.Generator) -> Dataset:
    rows = rng.choice(data.n_samples, data.n_samples // 10, replace=False)
    noise = rng.normal(scale=1e-4, size=(len(rows), data.n_features)) * data.X.std(axis=0)
    return table(
        np.vstack([data.X, data.X[rows] + noise]),
        data.y[np.r_[: data.n_samples, rows]],
        data.feature_names,
    )


def changed(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The labels, a share of them changed to another class."""
    labels, classes = y.copy(), np.unique(y)
    for row in rng.choice(len(y), round(share * len(y)), replace=False):
        labels[row] = rng.choice(classes[classes != y[row]])
    return labels


def _difference(data: Dataset, rng: np.random.Generator) -> Dataset:
    before = rng.normal(scale=5, size=data.n_samples)
    return with_columns(data, {"before": before, "after": before + data.y})


def _jittered_time(data: Dataset, rng: np.random.Generator) -> Dataset:
    time = np.arange(data.n_samples) + rng.normal(scale=3, size=data.n_samples)
    return with_columns(sorted_by_class(data), {"seconds": time})


#: What is planted, and what the refusal must say.
REFUSED: dict[str, tuple[Planting, str]] = {
    "an index": (_grade(lambda data, _: np.arange(data.n_samples), "row"), "numbers the samples"),
    "an index of a file sorted by class, shuffled": (_shuffled_index, "numbers the samples"),
    "an unnamed column": (
        _grade(
            lambda data, rng: rng.permutation(3 * data.n_samples)[: data.n_samples], "Unnamed: 0"
        ),
        "has no name of its own",
    ),
    "a copy of the label": (_grade(lambda data, _: data.y), "equals the label"),
    "other numbers for the classes": (_grade(_recoded), "is the label in other values"),
    "one-hot": (
        _one_hot,
        "marks the samples of class|is the label in other values|equals the label",
    ),
    "sub-classes in the order of the classes": (_grade(_sub_classes), "determines the label"),
    "sub-classes in any order": (_grade(_mixed_sub_classes), "determines the label"),
}

#: What is planted, and what a remark must say.
REMARKED: dict[str, tuple[Planting, str]] = {
    "a subject by name": (_named_subject, "cv.groups"),
    "a subject of one class": (_subject, "cv.groups"),
    "a subject in the order of the file": (
        _grade(lambda data, _: 1 + np.arange(data.n_samples) // 3, "s"),
        "cv.groups",
    ),
    "duplicates": (_duplicates, "equal to another"),
    "near-duplicates": (_near_duplicates, "nearly equal"),
}

#: What is planted, and what a remark must say, in which folds do not help.
NEARLY: dict[str, tuple[Planting, str]] = {
    "a copy of the label, 1 % changed": (
        _grade(lambda data, rng: changed(data.y, 0.01, rng)),
        "'grade' alone tells",
    ),
    "a copy of the label, 5 % changed": (
        _grade(lambda data, rng: changed(data.y, 0.05, rng)),
        "'grade' alone tells",
    ),
    "an outcome code, 3 % wrong": (
        _grade(
            lambda data, rng: (
                10 * changed(data.y, 0.03, rng) + rng.integers(3, size=data.n_samples)
            ),
            "icd",
        ),
        "'icd' alone tells",
    ),
    "the label as difference of two columns": (
        _difference,
        "The columns 'before' and 'after' together tell",
    ),
    "a timestamp with jitter": (
        _jittered_time,
        "Column 'seconds' has values in the order of the rows",
    ),
}
