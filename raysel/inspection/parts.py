"""Parts of a data set that are inspected alone: the tasks of one of several tasks, else the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR, Tasks, Tensor
from raysel.data.task_blocks import TaskBlocks
from raysel.inspection.duplicates import equal_rows

#: Number of float64 values that are copied at once: 32 MiB.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Part:
    """Samples of one task, or of a data set of one task."""

    #: Samples in the order of the file; shape (n_samples, n_features).
    X: FloatArray
    #: Labels, or an indicator; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    names: tuple[str, ...]
    #: Position of each sample in the data set; shape (n_samples,).
    rows: IntArray
    image: bool
    task: str | None

    @cached_property
    def codes(self) -> IntArray:
        """Class of each sample, or its combination of labels, counted from 0: shape (n_samples,)."""
        axis = 0 if self.y.ndim == 2 else None
        codes: IntArray = np.unique(self.y, axis=axis, return_inverse=True)[1].ravel()
        return codes

    @cached_property
    def row_ids(self) -> IntArray:
        """Number of each distinct sample, the same for equal samples: shape (n_samples,)."""
        return equal_rows(self.X)

    @cached_property
    def named(self) -> bool:
        """Whether the columns have names of their own, as those of a table."""
        return not self.image and not all(re.fullmatch(r"x\d+|.*\[\d+\]", name) for name in self.names)

    def own_name(self, column: int) -> str:
        """Return the name of a column without that of its task."""
        name = self.names[column]
        return name if self.task is None else name.removeprefix(f"{self.task}{SEPARATOR}")

    def columns(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the position of a first column and some columns from there, of a bounded size in memory."""
        width = max(1, _BLOCK // len(self.X))
        for start in range(0, self.X.shape[1], width):
            yield start, self.X[:, start : start + width]


def parts(dataset: Dataset) -> Iterator[Part]:
    """Yield the tasks of a data set, or the data set as the only part."""
    X, layout, names = dataset.X, dataset.layout, dataset.feature_names
    if isinstance(X, TaskBlocks) and isinstance(layout, Tasks):
        for (task, shape), (rows, columns, block) in zip(layout.tasks.items(), X.parts(), strict=True):
            yield Part(block, dataset.y[rows], names[columns], rows, not isinstance(shape, int), task)
    elif not isinstance(X, TaskBlocks):
        image = isinstance(layout, Tensor) and len(layout.shape) > 1
        yield Part(X, dataset.y, names, np.arange(len(X)), image, None)
