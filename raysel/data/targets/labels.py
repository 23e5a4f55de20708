"""Any number of labels for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import multilabel_confusion_matrix
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import get_tags

from raysel.core.arrays import BoolArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.targets.folds import Units
from raysel.data.targets.guesses import (
    CONSTANT,
    STRATIFIED,
    choose_best,
    constant_classifier,
    list_score_guesses,
)
from raysel.data.targets.label_values import checked_labels
from raysel.data.targets.target import CLASSIFICATION, Target
from raysel.numerics.metrics import Metric


class Labels(Target):
    """Any number of labels for each sample; y is an indicator (n_samples, n_labels) of 0 and 1."""

    kind: ClassVar[str] = "labels"
    task: ClassVar[str] = CLASSIFICATION
    noun: ClassVar[str] = "label"
    plural: ClassVar[str] = "labels"
    default_metric: ClassVar[str] = "macro_f1"
    metric_of_any_samples: ClassVar[str] = "macro_f1"
    may_lack: ClassVar[bool] = True
    one: ClassVar[str] = "an indicator"

    def recognises(self, y: LabelArray) -> bool:
        """Return whether y has two axes."""
        return y.ndim == 2

    def holds(self, y: LabelArray) -> bool:
        """Return whether y is columns of whole numbers."""
        return y.ndim == 2 and y.dtype.kind in "biu"

    def convert(
        self, y: LabelArray, where: str, what: str, *, is_asked: bool
    ) -> tuple[LabelArray, str | None]:
        """Convert an indicator of 0 and 1, or of -1 and 1, to whole numbers 0 and 1."""
        y = checked_labels(y, f"{where}: {what}")
        signed = y.dtype.kind == "i" and y.size and y.min() == -1 and np.isin(y, (-1, 1)).all()
        if signed:
            y = (y + 1) // 2
        return y, None

    def check(self, y: LabelArray, where: str, what: str) -> None:
        """Check that there are two labels, each 0 or 1."""
        if y.shape[1] < 2 or not np.isin(y, (0, 1)).all():
            raise DataError(
                f"{where}: y has shape {y.shape}; give labels of shape (n_samples,), "
                "or a 0/1 indicator of shape (n_samples, n_labels) with at least two labels."
            )

    def names(self, y: LabelArray, column_names: Sequence[str]) -> LabelArray:
        """Return the names of the columns."""
        return np.array(column_names)

    def count(self, y: LabelArray) -> int:
        """Return the number of labels."""
        return y.shape[1]

    def described(self, y: LabelArray, of: str) -> str:
        """Say of how many labels y, which is called `of`, is an indicator."""
        return f"{of} is an indicator of {y.shape[1]} labels"

    def y_type(self, y: LabelArray) -> str:
        """Return scikit-learn's word for an indicator."""
        return "multilabel"

    def guesses(self, measure: Metric) -> list[str]:
        """Name the guesses of labels; a metric that may cut scores gets random labels too."""
        if measure.response == "predict":
            return [CONSTANT, STRATIFIED]
        return list_score_guesses(measure)

    def constant(self, name: str, measure: Metric, y: LabelArray) -> Any:
        """Return the model of a constant set of labels, or of the labels' shares.

        The most frequent labels are predicted, as many of them as score best.
        """
        if name != CONSTANT:
            return constant_classifier(name)
        places = np.argsort(np.argsort(-y.mean(axis=0), kind="stable"), kind="stable")
        sets = [(places < n).astype(y.dtype) for n in range(y.shape[1] + 1)]
        best = choose_best(sets, lambda labels: measure(y, np.tile(labels, (len(y), 1))))
        return DummyClassifier(strategy="constant", constant=best)

    def ideal(self, measure: Metric, y: LabelArray) -> LabelArray:
        """Return the labels, or scores with probability 0.9 for the right ones."""
        if measure.response == "predict":
            return y.copy()
        return np.where(y == 1, 0.9, 0.1)

    def for_columns(self, model: Any, y: LabelArray) -> Any:
        """Return the model itself where it takes an indicator, else one for each label."""
        tags = get_tags(model).classifier_tags
        if tags is not None and tags.multi_label:
            return model
        return OneVsRestClassifier(model)

    def confusion(
        self, y: LabelArray, predicted: LabelArray, classes: LabelArray
    ) -> list[list[int]]:
        """Count samples with and without each label, found or not."""
        counts: list[list[int]] = multilabel_confusion_matrix(y, predicted).reshape(-1, 4).tolist()
        return counts

    def examples(self, y: LabelArray) -> IntArray:
        """Return the first sample with each label, and without it."""
        return np.concatenate([np.unique(column, return_index=True)[1] for column in y.T])

    def members(self, y: LabelArray) -> Iterator[tuple[str, BoolArray]]:
        """Yield each label with the mask of its samples."""
        yield from ((f"label number {i}", column == 1) for i, column in enumerate(y.T))

    def n_unlabelled(self, y: LabelArray) -> int | None:
        """Return the number of samples without any label."""
        return int((y.sum(axis=1) == 0).sum())

    def few(self, y: LabelArray, n: int) -> IntArray:
        """Choose the first n samples with each label, and without it."""
        columns = [*y.T, *(1 - y.T)]
        return np.unique(np.concatenate([np.flatnonzero(column)[:n] for column in columns]))

    def undefined(self, y: LabelArray, rows: IntArray, names: LabelArray) -> str:
        """Say which label all or none of some samples have."""
        part = y[rows]
        constant = np.flatnonzero((part == part[0]).all(axis=0))
        if not len(constant):
            return ""
        amount = "only samples" if part[0, constant[0]] else "no sample"
        return f"{amount} with the label {names[constant[0]]}"

    def missing(self, y: LabelArray, rows: IntArray) -> IntArray:
        """Return the columns of the labels that none of some samples has."""
        return np.flatnonzero(~y[rows].any(axis=0))

    def untrainable(self, y: LabelArray, rows: IntArray, where: str) -> str:
        """Say so where no sample of some, which are called `where`, has any label; else ""."""
        return "" if y[rows].any() else f"every label is missing from {where}"

    def strata(self, y: LabelArray, member: IntArray, size: int) -> IntArray:
        """Put all units into one stratum: most sets of labels are those of few samples."""
        return np.zeros(member.max() + 1, dtype=np.int64)

    def divide(
        self, y: LabelArray, units: Units, n_splits: int, random_state: int
    ) -> list[IntArray]:
        """Divide units iteratively (Sechidis et al., ECML PKDD 2011), groups by their labels.

        A rare label can be missing from a fold, see `NestedPlan.lacking`.
        """
        from iterstrat.ml_stratifiers import MultilabelStratifiedKFold  # noqa: PLC0415

        occurs = np.zeros((units.n, y.shape[1]), dtype=np.int64)
        np.maximum.at(occurs, units.member, y)
        splitter = MultilabelStratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        return [test for _, test in splitter.split(occurs, occurs)]

    def halves(
        self, y: LabelArray, *, groups: LabelArray | None, random_state: int
    ) -> tuple[IntArray, IntArray]:
        """Draw two halves; without groups by two folds, whose sizes can differ by more than one."""
        if groups is not None:
            return super().halves(y, groups=groups, random_state=random_state)
        (_, first), (_, second) = self.folds(
            y, 2, groups=None, random_state=random_state, where="pairs of halves"
        )
        return first, second
