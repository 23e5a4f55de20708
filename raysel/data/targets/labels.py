"""Any number of labels for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.targets.label_values import checked_labels
from raysel.data.targets.target import CLASSIFICATION, Target


class Labels(Target):
    """Any number of labels for each sample; y is an indicator (n_samples, n_labels) of 0 and 1."""

    kind: ClassVar[str] = "labels"
    task: ClassVar[str] = CLASSIFICATION
    noun: ClassVar[str] = "label"
    plural: ClassVar[str] = "labels"
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
        return ((y + 1) // 2 if signed else y), None

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

    def examples(self, y: LabelArray) -> IntArray:
        """Return the first sample with each label, and without it."""
        return np.concatenate([np.unique(column, return_index=True)[1] for column in y.T])
