"""Samples of several tasks: one block of samples a task, and the task of each sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray, IntArray
from raysel.data.layouts import Tasks
from raysel.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class TaskBlocks:
    """Samples that belong to several tasks, each with the features of its own task only.

    It has the length, ``shape``, ``nbytes`` and row indexing of the NaN-padded array that `dense` makes.

    Parameters
    ----------
    blocks : sequence of ndarray of shape (n_i, D_i)
        The samples of each task, in the order in which they stand among all samples. Kept as read-only, C-contiguous
        float64; a writable array is copied.
    tasks : ndarray of int, shape (n_samples,)
        The task of each sample, as a position in ``blocks``.

    Raises
    ------
    DataError
        If the blocks are not 2-D arrays of numbers, or ``tasks`` does not tell as many samples of a task as it has.

    Examples
    --------
    >>> X = TaskBlocks((np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])), np.array([1, 0, 1]))
    >>> X.shape
    (3, 3)
    >>> X[1:].dense()
    array([[ 1.,  2., nan],
           [nan, nan,  4.]])
    """

    blocks: tuple[FloatArray, ...]
    tasks: IntArray

    def __post_init__(self) -> None:
        given, tasks = [np.asarray(block) for block in self.blocks], np.asarray(self.tasks)
        for i, block in enumerate(given):
            if block.ndim != 2 or block.dtype.kind not in "biuf":
                raise DataError(
                    f"the block of task {i} has shape {block.shape} and dtype {block.dtype}: give numbers of shape"
                    " (n_samples, n_features)."
                )
        if tasks.ndim != 1 or (tasks.size and tasks.dtype.kind not in "iu"):
            raise DataError(f"tasks has shape {tasks.shape} and dtype {tasks.dtype}: give one whole number a sample.")
        if tasks.size and not 0 <= tasks.min() <= tasks.max() < len(given):
            raise DataError(f"tasks runs from {tasks.min()} to {tasks.max()}, but there are {len(given)} blocks.")
        counts, held = np.bincount(tasks, minlength=len(given)).tolist(), [len(block) for block in given]
        if counts != held:
            raise DataError(f"tasks tells of {counts} samples in each task, but the blocks hold {held}.")
        blocks = tuple(read_only(np.ascontiguousarray(block, dtype=np.float64), block) for block in given)
        object.__setattr__(self, "blocks", blocks)  # the dataclass is frozen
        object.__setattr__(self, "tasks", read_only(tasks.astype(np.int64, copy=False), tasks))

    @classmethod
    def from_dense(cls, X: FloatArray, layout: Tasks) -> TaskBlocks:
        """Take a NaN-padded array apart.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            NaN outside a sample's own task and nowhere else.
        layout : Tasks

        Returns
        -------
        TaskBlocks

        Raises
        ------
        DataError
            If a sample fills the columns of several tasks, of none, or a part of one.
        """
        missing = np.isnan(X)
        names, columns = list(layout.tasks), list(layout.slices().values())
        filled = np.stack([~missing[:, own].all(axis=1) for own in columns], axis=1)
        if (wrong := np.flatnonzero(filled.sum(axis=1) != 1)).size:
            held = [name for name, has in zip(names, filled[wrong[0]], strict=True) if has]
            raise DataError(
                f"sample {wrong[0]} fills the columns of {len(held)} tasks {held} ({wrong.size} samples do so):"
                " fill the columns of one task and leave NaN in all others."
            )
        tasks = filled.argmax(axis=1)
        expected = layout.n_features - np.array(list(layout.widths().values()))[tasks]
        if (wrong := np.flatnonzero(missing.sum(axis=1) != expected)).size:
            raise DataError(
                f"sample {wrong[0]} of task {names[tasks[wrong[0]]]!r} has NaN in its own columns: impute them or drop"
                " it."
            )
        return cls(tuple(_owned(X[tasks == i, own]) for i, own in enumerate(columns)), tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        return f"TaskBlocks({' + '.join(f'{n} x {width}' for n, width in (block.shape for block in self.blocks))})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        # Else numpy would take it for a sequence; and a padded array is many times larger.
        raise TypeError("TaskBlocks are no array: call dense() for one that is NaN outside a sample's own task.")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and of features of all tasks."""
        return len(self.tasks), sum(self.widths)

    @property
    def widths(self) -> list[int]:
        """Number of features of each task."""
        return [block.shape[1] for block in self.blocks]

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks and of ``tasks``."""
        return sum(block.nbytes for block in self.blocks) + self.tasks.nbytes

    def parts(self) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """The places of each task's samples among all, its columns among all, and its block."""
        stop = 0
        for task, block in enumerate(self.blocks):
            start, stop = stop, stop + block.shape[1]
            yield np.flatnonzero(self.tasks == task), slice(start, stop), block

    def __getitem__(self, rows: Any) -> TaskBlocks:
        """The samples of these rows, given as a slice, whole numbers or a mask."""
        chosen = np.arange(len(self))[rows]
        if chosen.ndim != 1:
            raise TypeError(f"TaskBlocks are indexed by a slice, whole numbers or a mask of samples, not by {rows!r}.")
        place = np.empty(len(self), dtype=np.int64)
        for own, _, block in self.parts():
            place[own] = np.arange(len(block))
        tasks, place = self.tasks[chosen], place[chosen]
        return TaskBlocks(tuple(_owned(block[place[tasks == i]]) for i, block in enumerate(self.blocks)), _owned(tasks))

    def dense(self) -> FloatArray:
        """The samples in columns of all tasks, NaN outside a sample's own.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        X = np.full(self.shape, np.nan)
        for rows, columns, block in self.parts():
            X[rows, columns] = block
        return X


#: Samples of one task or of several.
Samples: TypeAlias = FloatArray | TaskBlocks


def as_samples(X: ArrayLike | TaskBlocks) -> Any:
    """TaskBlocks as they are; anything else as a C-contiguous array.

    Parameters
    ----------
    X : array-like or TaskBlocks

    Returns
    -------
    ndarray or TaskBlocks
    """
    return X if isinstance(X, TaskBlocks) else np.ascontiguousarray(X)


def as_task_blocks(X: Samples, layout: Tasks) -> TaskBlocks:
    """Samples of the tasks of a layout, given in either form.

    Parameters
    ----------
    X : TaskBlocks, or ndarray of shape (n_samples, n_features) with NaN outside a sample's own task
    layout : Tasks

    Returns
    -------
    TaskBlocks

    Raises
    ------
    DataError
        If X has not these tasks.
    """
    if not isinstance(X, TaskBlocks):
        return TaskBlocks.from_dense(X, layout)
    if X.widths != (wanted := list(layout.widths().values())):
        raise DataError(f"X has tasks of {X.widths} features; the tasks {list(layout.tasks)} have {wanted}.")
    return X


def read_only(array: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Protect an array of ours; copy it first where somebody else could still write into it.

    Parameters
    ----------
    array : ndarray
    given : ndarray
        What the array was made from.

    Returns
    -------
    ndarray
    """
    if np.may_share_memory(array, given) and given.flags.writeable:
        array = array.copy()
    array.flags.writeable = False
    return array


def _owned(array: np.ndarray) -> np.ndarray:
    """A new array that nobody else holds, contiguous and protected without another copy."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
