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
    """The table with further columns in front, as a file has an index, and rows in another
    order.
    """
    rows = np.arange(data.n_samples) if rows is None else rows
    X = np.hstack([np.stack(list(columns.values()), axis=1).astype(float), data.X])[rows]
    return table(X, data.y[rows], (*columns, *data.feature_names))


def sorted_by_class(data: Dataset) -> Dataset:
    """The table with its classes one after the other."""
    order = np.argsort(data.y, kind="stable")
    return table(data.X[order], data.y[order], data.feature_names)


def subjects(y: np.ndarray, each: int) -> np.ndarray:
    """A subject for each sample, numbered in the order of the classes; some samples of one class
    each.
    """
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


def _wrong(share: float) -> Callable[[Dataset, np.random.Generator], np.ndarray]:
    """A copy of a quantity, in which a share of the rows has that of another sample."""

    def column(data: Dataset, rng: np.random.Generator) -> np.ndarray:
        values = data.y.astype(float)
        rows = rng.choice(data.n_samples, round(share * data.n_samples), replace=False)
        values[rows] = rng.permutation(data.y)[: len(rows)]
        return values

    return column


def _quintile(data: Dataset, _: np.random.Generator) -> np.ndarray:
    return np.digitize(data.y, np.quantile(data.y, [0.2, 0.4, 0.6, 0.8]))


def _with_another(
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray], noise: float = 0.0
) -> Planting:
    """A positive column, and one that combines it with the quantity."""

    def plant(data: Dataset, rng: np.random.Generator) -> Dataset:
        other = data.y.std() * np.exp(0.5 * rng.normal(size=data.n_samples))
        further = combine(data.y, other) + noise * data.y.std() * rng.normal(size=data.n_samples)
        return with_columns(data, {"other": other, "further": further})

    return plant


def _parts_of_sum(data: Dataset, rng: np.random.Generator) -> Dataset:
    one, two = data.y.std() * rng.normal(size=(2, data.n_samples))
    return with_columns(data, {"one": one, "two": two, "three": data.y - one - two})


_TELLS, _PAIR = "'grade' nearly tells the quantity", "'other' and 'further' together give"

#: What is planted beside a positive quantity, and what a remark must say.
OF_QUANTITY: dict[str, tuple[Planting, str]] = {
    "its square about the mean": (_grade(lambda data, _: (data.y - data.y.mean()) ** 2), _TELLS),
    "its absolute value about the mean": (
        _grade(lambda data, _: np.abs(data.y - data.y.mean())),
        "'grade' is the quantity in another unit in",
    ),
    "its logarithm, rounded": (_grade(lambda data, _: np.log(data.y).round(1)), _TELLS),
    "quintiles": (_grade(_quintile), _TELLS),
    "above the median": (_grade(lambda data, _: data.y > np.median(data.y)), _TELLS),
    "a copy, 5 % of the rows wrong": (_grade(_wrong(0.05)), "equals the quantity in"),
    "a copy in 30 % of the rows": (_grade(_wrong(0.7)), "equals the quantity in"),
    "in another unit in 30 % of the rows": (
        _grade(lambda data, rng: 2.54 * _wrong(0.7)(data, rng)),
        "'grade' is the quantity in another unit in",
    ),
    "a second reading, noise 0.05 SD": (
        _grade(lambda data, rng: data.y + 0.05 * data.y.std() * rng.normal(size=data.n_samples)),
        _TELLS,
    ),
    "the difference of two columns": (_with_another(np.add), _PAIR),
    "the same with noise 0.05 SD": (_with_another(np.add, noise=0.05), _PAIR),
    "the ratio of two columns": (_with_another(np.multiply), _PAIR),
    "the sum of three columns": (_parts_of_sum, "'one' and 'two' and 'three' together give"),
}


def interleaved(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Eight noisy copies of each of 30 samples, measured in turn, each sample with a random
    label.
    """
    rows = np.tile(rng.choice(data.n_samples, 30, replace=False), 8)
    X = data.X[rows] + data.X.std(axis=0) * rng.standard_normal((240, data.n_features))
    return table(X, np.tile(rng.permutation(np.arange(30) % 3), 8), data.feature_names)
