"""One class for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.targets.label_values import checked_labels
from raysel.data.targets.target import CLASSIFICATION, Target


class Classes(Target):
    """One class for each sample; y is (n_samples,) of int64 or text."""

    kind: ClassVar[str] = "classes"
    task: ClassVar[str] = CLASSIFICATION
    noun: ClassVar[str] = "class"
    plural: ClassVar[str] = "classes"
    one: ClassVar[str] = "a class"
    of_tasks: ClassVar[bool] = True

    def recognises(self, y: LabelArray) -> bool:
        """Return True: classes are what no other target recognises."""
        return True

    def holds(self, y: LabelArray) -> bool:
        """Return whether y is one column of whole numbers or text."""
        return y.ndim == 1 and y.dtype.kind in "biuU"

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

    def examples(self, y: LabelArray) -> IntArray:
        """Return the first sample of each class."""
        return np.unique(y, return_index=True)[1]
