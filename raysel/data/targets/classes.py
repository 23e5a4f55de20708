"""One class for each sample."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import by_number
from raysel.data.targets.folds import Pairs, Units
from raysel.data.targets.guesses import (
    CONSTANT,
    MOST_FREQUENT,
    STRATIFIED,
    choose_best,
    constant_classifier,
    list_score_guesses,
)
from raysel.data.targets.label_values import checked_labels
from raysel.data.targets.target import CLASSIFICATION, Target
from raysel.numerics.metrics import METRICS, Metric

#: Number of classes from which on most of them being rare means that they are no classes.
_MANY_CLASSES = 10
#: Largest number of classes that a message lists.
_MOST_NAMED = 20


class Classes(Target):
    """One class for each sample; y is (n_samples,) of int64 or text."""

    kind: ClassVar[str] = "classes"
    task: ClassVar[str] = CLASSIFICATION
    noun: ClassVar[str] = "class"
    plural: ClassVar[str] = "classes"
    one: ClassVar[str] = "a class"
    default_metric: ClassVar[str] = "accuracy"
    metric_of_any_samples: ClassVar[str] = "balanced_accuracy"
    is_one_class: ClassVar[bool] = True

    def recognises(self, y: LabelArray) -> bool:
        """Return True: classes are what no other target recognises."""
        return True

    def holds(self, y: LabelArray) -> bool:
        """Return whether y is one column of whole numbers or text, as also estimators get them."""
        return y.ndim == 1 and y.dtype.kind in "biuUSO"

    def convert(
        self, y: LabelArray, where: str, what: str, *, is_asked: bool
    ) -> tuple[LabelArray, str | None]:
        """Convert y to whole numbers or text."""
        return checked_labels(y, f"{where}: {what}"), None

    def check(self, y: LabelArray, where: str, what: str) -> None:
        """Check that there are two classes."""
        classes = np.unique(y)
        if len(classes) < 2:
            raise DataError(
                f"{where}: {what} holds one class only ({classes[0]!s}); at least two are needed."
            )

    def names(self, y: LabelArray, column_names: Sequence[str]) -> LabelArray:
        """Return the classes, sorted."""
        return np.unique(y)

    def count(self, y: LabelArray) -> int:
        """Return the number of classes."""
        return len(np.unique(y))

    def y_type(self, y: LabelArray) -> str:
        """Return whether there are two classes or more."""
        return "binary" if self.count(y) == 2 else "multiclass"

    def guesses(self, measure: Metric) -> list[str]:
        """Name the guesses of classes; a metric that may cut scores gets random labels too."""
        if measure.response == "predict":
            # No constant class is better under a metric of raysel than the most frequent one.
            return [MOST_FREQUENT if measure.name in METRICS else CONSTANT, STRATIFIED]
        return list_score_guesses(measure)

    def constant(self, name: str, measure: Metric, y: LabelArray) -> Any:
        """Return the model of a constant class, or of the classes' shares."""
        if name != CONSTANT:
            return constant_classifier(name)
        classes, counts = np.unique(y, return_counts=True)
        by_count = list(classes[np.argsort(-counts, kind="stable")])
        best = choose_best(by_count, lambda c: measure(y, np.full(len(y), c), classes))
        return DummyClassifier(strategy="constant", constant=best)

    def ideal(self, measure: Metric, y: LabelArray) -> LabelArray:
        """Return the classes, or scores with probability 0.9 for the right one."""
        if measure.response == "predict":
            return y.copy()
        classes = np.unique(y)
        rest = 0.1 / max(1, len(classes) - 1)
        return measure.take_positive(np.where(y[:, None] == classes, 0.9, rest), classes)

    def confusion(
        self, y: LabelArray, predicted: LabelArray, classes: LabelArray
    ) -> list[list[int]]:
        """Count samples by their true and their predicted class."""
        if not len(y):
            return np.zeros((len(classes), len(classes)), dtype=int).tolist()
        counts: list[list[int]] = confusion_matrix(y, predicted, labels=classes).tolist()
        return counts

    def examples(self, y: LabelArray) -> IntArray:
        """Return the first sample of each class."""
        return np.unique(y, return_index=True)[1]

    def members(self, y: LabelArray) -> Iterator[tuple[str, BoolArray]]:
        """Yield each class with the mask of its samples."""
        yield from ((f"class {name!s}", y == name) for name in np.unique(y))

    def counts(self, y: LabelArray, rows: IntArray | slice = slice(None)) -> IntArray:
        """Count the samples of each class among some."""
        codes = np.unique(y, return_inverse=True)[1]
        return np.bincount(codes[rows], minlength=int(codes.max()) + 1)

    def contrasts(self, y: LabelArray) -> FloatArray:
        """Return an indicator of the classes."""
        return (y[:, None] == np.unique(y)).astype(np.float64)

    def few(self, y: LabelArray, n: int) -> IntArray:
        """Choose the first n samples of each class."""
        first = [np.flatnonzero(mask)[:n] for _, mask in self.members(y)]
        return np.sort(np.concatenate(first))

    def undefined(self, y: LabelArray, rows: IntArray, names: LabelArray) -> str:
        """Say which class none of some samples has."""
        missing = self.missing(y, rows)
        return f"no sample of class {names[missing[0]]!s}" if len(missing) else ""

    def missing(self, y: LabelArray, rows: IntArray) -> IntArray:
        """Return the positions of the classes that none of some samples has."""
        return np.flatnonzero(~np.isin(np.unique(y), y[rows]))

    def untrainable(self, y: LabelArray, rows: IntArray, where: str) -> str:
        """Say which class is missing from some samples, which are called `where`; else ""."""
        missing = np.setdiff1d(y, y[rows])
        return f"class {missing[0]!s} is missing from {where}" if len(missing) else ""

    def strata(self, y: LabelArray, member: IntArray, size: int) -> IntArray:
        """Number the most frequent class of each unit's samples."""
        names, codes = np.unique(y, return_inverse=True)
        n_units = int(member.max()) + 1
        if n_units == len(y):
            return codes[np.argsort(member)]
        counts = np.zeros((n_units, len(names)), dtype=np.int64)
        np.add.at(counts, (member, codes), 1)
        return counts.argmax(axis=1).astype(np.int64)

    def folds(
        self,
        y: LabelArray,
        n_splits: int,
        *,
        groups: LabelArray | None,
        random_state: int,
        where: str,
    ) -> Pairs:
        """Split samples into folds with the same shares of the classes.

        As many folds as samples, or groups, leave one out in each, where a class has fewer: they
        have no strata.
        """
        units = Units.find(groups, len(y))
        if groups is not None:
            units.check_number(n_splits, where)
        classes, counts = np.unique(y, return_counts=True)
        n_units = np.array([len(np.unique(units.member[y == label])) for label in classes])
        if counts.min() < n_splits == units.n and n_units.min() > 1:
            return units.leave_one_out()
        if counts.min() < n_splits or n_units.min() < 2:
            fewest = 2 if n_splits == units.n else n_splits
            folds = f"{where}={n_splits} folds"
            raise DataError(
                _too_rare(classes, n_units, fewest=fewest, folds=folds, unit=units.noun)
            )
        return super().folds(y, n_splits, groups=groups, random_state=random_state, where=where)

    def divide(
        self, y: LabelArray, units: Units, n_splits: int, random_state: int
    ) -> list[IntArray]:
        """Divide units among folds with the same shares of the classes of their samples."""
        kind = StratifiedGroupKFold if units.are_groups else StratifiedKFold
        splitter = kind(n_splits, shuffle=True, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # `folds` raises an error instead
            pairs = list(splitter.split(y, y, units.member))
        return [np.unique(units.member[test]) for _, test in pairs]

    def draw_training_set(
        self, y: LabelArray, train_per_class: int, random_state: int
    ) -> tuple[IntArray, IntArray]:
        """Draw a training set with so many samples of each class; the others are held out."""
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() <= train_per_class:
            remedy = f"set at most {counts.min() - 1}"
            if counts.min() <= 2:
                remedy = f"set dataset.exclude_classes: {_listed(classes[counts <= 2])}"
            raise DataError(
                f"class {classes[counts.argmin()]!s} has {_counted(int(counts.min()), 'sample')}:"
                f" with cv.train_per_class={train_per_class} none would be left for the test set;"
                f" {remedy}."
            )
        generator = np.random.default_rng(random_state)
        drawn = [generator.permutation(np.flatnonzero(y == c))[:train_per_class] for c in classes]
        train = np.sort(np.concatenate(drawn)).astype(np.int64)
        return train, np.setdiff1d(np.arange(len(y), dtype=np.int64), train)


def _too_rare(classes: LabelArray, counts: IntArray, fewest: int, folds: str, unit: str) -> str:
    """Say which class has fewer samples, or groups, than the folds need, and what to do."""
    rarest = int(counts.argmin())
    least = int(counts[rarest])
    problem = f"class {classes[rarest]!s} has {_counted(least, unit)}, too few for {folds}"
    rare = classes[counts < fewest]
    if 2 * len(rare) > len(classes) and len(classes) > _MANY_CLASSES:
        return (
            f"{problem}, and so have {len(rare)} of the {len(classes)} classes: the labels look"
            " like names or measurements of single samples. Give the column or array of the"
            " classes as dataset.label."
        )
    remedies = [f"set at most {least} folds"] if least > 1 else []
    if len(classes) - len(rare) > 1:
        more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
        remedies.append(f"leave out its samples by dataset.exclude_classes: {_listed(rare)}{more}")
    return f"{problem}; {', or '.join(remedies) or f'add {unit}s of this class'}."


def _listed(classes: LabelArray) -> str:
    """Return some classes as a list of YAML."""
    return json.dumps([label.item() for label in classes[:_MOST_NAMED]], ensure_ascii=False)


def _counted(number: int, unit: str) -> str:
    """Return a number of samples or groups as text, e.g. ``"1 sample"``."""
    return f"{number} {by_number(number, unit, f'{unit}s')}"
