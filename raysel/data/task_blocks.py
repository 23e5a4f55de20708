"""Samples of several tasks: a block of samples for each task, and the task of each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import DataError
from raysel.data.layouts import Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.table_rows import TableRows


@dataclass(frozen=True, eq=False, repr=False)
class TaskBlocks:
    """Samples of several tasks, each with the features of its own task only.

    It has the length, ``shape`` and row indexing of the NaN-padded array that `dense` makes.
    """

    #: Samples of each task, in their order among all samples; each (n_i, D_i).
    blocks: tuple[FloatArray, ...]
    #: Task of each sample, as a position in ``blocks``; shape (n_samples,).
    tasks: IntArray

    def __post_init__(self) -> None:
        arrays, tasks = [np.asarray(block) for block in self.blocks], np.asarray(self.tasks)
        for i, block in enumerate(arrays):
            if block.ndim != 2 or block.dtype.kind not in "biuf":
                raise DataError(
                    f"the block of task {i} has shape {block.shape} and dtype {block.dtype}: give"
                    " numbers of shape (n_samples, n_features)."
                )
        if tasks.ndim != 1 or (tasks.size and tasks.dtype.kind not in "iu"):
            raise DataError(
                f"tasks has shape {tasks.shape} and dtype {tasks.dtype}: give one whole number for"
                " each sample."
            )
        if tasks.size and not 0 <= tasks.min() <= tasks.max() < len(arrays):
            raise DataError(
                f"tasks runs from {tasks.min()} to {tasks.max()}, but there are {len(arrays)}"
                " blocks: give the position of a block for each sample."
            )
        counts, lengths = (
            np.bincount(tasks, minlength=len(arrays)).tolist(),
            [len(block) for block in arrays],
        )
        if counts != lengths:
            raise DataError(
                f"tasks has {counts} samples in each task, but the blocks have {lengths}: give the"
                " task of each row of the blocks."
            )
        blocks = tuple(
            read_only(np.ascontiguousarray(block, dtype=np.float64), block) for block in arrays
        )
        object.__setattr__(self, "blocks", blocks)  # the dataclass is frozen
        object.__setattr__(self, "tasks", read_only(tasks.astype(np.int64, copy=False), tasks))

    @classmethod
    def from_dense(cls, X: FloatArray, layout: Layout) -> TaskBlocks:
        """Make blocks from a NaN-padded array."""
        missing = np.isnan(X)
        names, columns = layout.task_names, list(layout.slices().values())
        filled = np.stack([~missing[:, part].all(axis=1) for part in columns], axis=1)
        if (wrong := np.flatnonzero(filled.sum(axis=1) != 1)).size:
            ones = [
                name for name, has_values in zip(names, filled[wrong[0]], strict=True) if has_values
            ]
            raise DataError(
                f"sample {wrong[0]} has values in the columns of {len(ones)} tasks {ones}"
                f" ({wrong.size} samples do so): give values for one task and NaN for all others."
            )
        tasks = filled.argmax(axis=1)
        expected = layout.n_features - np.array([part.stop - part.start for part in columns])[tasks]
        if (wrong := np.flatnonzero(missing.sum(axis=1) != expected)).size:
            raise DataError(
                f"sample {wrong[0]} of task {names[tasks[wrong[0]]]!r} has NaN in the columns of"
                " its own task: impute the values or remove the sample."
            )
        return cls(tuple(_owned(X[tasks == i, part]) for i, part in enumerate(columns)), tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        sizes = [f"{len(block)} x {block.shape[1]}" for block in self.blocks]
        return f"TaskBlocks({' + '.join(sizes)})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        # NumPy would convert it as a sequence; padding may need many times the memory, so it must
        # be explicit.
        raise TypeError(
            "TaskBlocks cannot be converted to an array implicitly: call dense() for a NaN-padded"
            " array."
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and number of features of all tasks."""
        return len(self.tasks), sum(self.widths)

    @property
    def widths(self) -> list[int]:
        """Number of features of each task."""
        return [block.shape[1] for block in self.blocks]

    @property
    def nbytes(self) -> int:
        """Size of the blocks and of ``tasks`` in bytes."""
        return sum(block.nbytes for block in self.blocks) + self.tasks.nbytes

    def parts(self) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Iterate over the tasks."""
        stop = 0
        for task, block in enumerate(self.blocks):
            start, stop = stop, stop + block.shape[1]
            yield np.flatnonzero(self.tasks == task), slice(start, stop), block

    def __getitem__(self, rows: Any) -> TaskBlocks:
        """Select samples by a slice, an array of integers or a mask."""
        selected = np.arange(len(self))[rows]
        if selected.ndim != 1:
            raise TypeError(
                "TaskBlocks are indexed by a slice, whole numbers or a mask of samples, not by"
                f" {rows!r}."
            )
        position = np.empty(len(self), dtype=np.int64)
        for places, _, block in self.parts():
            position[places] = np.arange(len(block))
        tasks, position = self.tasks[selected], position[selected]
        blocks = tuple(_owned(block[position[tasks == i]]) for i, block in enumerate(self.blocks))
        return TaskBlocks(blocks, _owned(tasks))

    def dense(self) -> FloatArray:
        """Make an array with the columns of all tasks."""
        X = np.full(self.shape, np.nan)
        for rows, columns, block in self.parts():
            X[rows, columns] = block
        return X


#: Samples of one task, in memory or in their file, as numbers or as rows of a table, or of several
#: tasks.
Samples: TypeAlias = FloatArray | StoredSamples | TableRows | TaskBlocks


def list_blocks(X: Samples) -> tuple[FloatArray, ...]:
    """Return the samples of each task, or all samples as the only block."""
    if isinstance(X, TaskBlocks):
        return X.blocks
    return (np.asarray(X),)


def iter_parts(X: Samples) -> Iterator[tuple[IntArray, slice, FloatArray]]:
    """Yield positions, columns and values of each task's samples, or of all as one."""
    if isinstance(X, TaskBlocks):
        yield from X.parts()
    else:
        yield np.arange(len(X)), slice(0, X.shape[1]), np.asarray(X)


def dense(X: Samples) -> FloatArray:
    """Return samples as an array, with NaN in the columns of other tasks."""
    if isinstance(X, TaskBlocks):
        return X.dense()
    return np.asarray(X)


def as_samples(X: ArrayLike | TaskBlocks) -> Any:
    """Convert samples to a C-contiguous array, unless they are of another type of samples."""
    known = isinstance(X, StoredSamples | TableRows | TaskBlocks)
    if known:
        return X
    return np.ascontiguousarray(X)


def as_task_blocks(X: Samples, layout: Layout) -> TaskBlocks:
    """Convert samples to TaskBlocks, and check that they match a layout."""
    if not isinstance(X, TaskBlocks):
        return TaskBlocks.from_dense(np.asarray(X), layout)
    if X.widths != (expected := [part.stop - part.start for part in layout.slices().values()]):
        raise DataError(
            f"X has tasks of {X.widths} features, but the tasks {list(layout.task_names)} have"
            f" {expected}: give a block for each task, in this order."
        )
    return X


def constant_features(X: Samples) -> BoolArray:
    """Mask of the features with one value at most, beside NaN, over all samples of their task."""
    if isinstance(X, StoredSamples):
        return X.summary.constant
    if isinstance(X, TableRows):
        return X.constant
    return np.concatenate([_constant_columns(block) for block in list_blocks(X)])


def _constant_columns(block: FloatArray) -> BoolArray:
    if not len(block):
        return np.ones(block.shape[1], dtype=bool)
    constant: BoolArray = ~(np.fmax.reduce(block, axis=0) > np.fmin.reduce(block, axis=0))
    return constant


def filled_columns(X: FloatArray, n_categories: Sequence[int]) -> FloatArray:
    """Replace NaN by the column's median, 0 without values, or by one category more."""
    filled = X.copy()
    for column in np.flatnonzero(np.isnan(X).any(axis=0)).tolist():
        missing = np.isnan(X[:, column])
        present = X[~missing, column]
        filled[missing, column] = n_categories[column] or (
            np.median(present) if len(present) else 0.0
        )
    filled.flags.writeable = False
    return filled


def read_only(array: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Make an array read-only; copy it first if other code could still write into its memory."""
    if np.may_share_memory(array, given) and given.flags.writeable:
        array = array.copy()
    array.flags.writeable = False
    return array


def _owned(array: np.ndarray) -> np.ndarray:
    """Make a new, unshared array contiguous and read-only, so that TaskBlocks need not copy it."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
