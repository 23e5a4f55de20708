"""Preparation of the samples of several tasks, each by the steps of its own task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.data.preparation.preparation import Preparation
from raysel.data.task_blocks import TaskBlocks, list_blocks


class TaskPreparation(Preparation):
    """A preparation for each task.

    Samples are `TaskBlocks`, or an array or table with NaN in the columns of other tasks.
    """

    def __init__(
        self, preparations: dict[str, Preparation | None], shapes: dict[str, int | tuple[int, ...]]
    ) -> None:
        self.preparations = preparations
        self.shapes = shapes  # number of columns, or shape of the samples, of each task

    @property
    def parameters(self) -> dict[str, Any]:
        """Number of columns, or shape of the samples, of each task, where it is another."""
        if self.outputs is None:
            return {}
        widths = zip(self.shapes, self._widths, self.widths_, strict=True)
        changed = {name: now for name, before, now in widths if now != before}
        return {"tasks": self.shapes | changed}

    def with_numbers(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted copy; no numbers of tasks are searched."""
        return clone(self)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the preparation of each task to its training samples, and return these prepared."""
        samples = self.numbers(X)
        self.n_features_in_ = sum(self._widths)
        self.fitted_ = [
            preparation and clone(preparation) for preparation in self.preparations.values()
        ]
        blocks, origin, joined_to, start = [], [], [], 0
        pairs = zip(self.fitted_, list_blocks(samples), strict=True)
        for number, (fitted, block) in enumerate(pairs):
            columns = first = np.arange(block.shape[1])
            if fitted is None:
                blocks.append(block)
            else:
                own = None if y is None else np.asarray(y)[samples.tasks == number]
                blocks.append(fitted.fit_transform(block, own))
                columns = fitted.origin_
                if fitted.joined_to_ is not None:
                    first = fitted.joined_to_
            origin.append(start + columns)
            joined_to.append(start + first)
            start += block.shape[1]
        self.origin_: IntArray = np.concatenate(origin)
        self.joined_to_ = None
        if (np.concatenate(joined_to) != np.arange(start)).any():
            self.joined_to_ = np.concatenate(joined_to)
        self.widths_ = [block.shape[1] for block in blocks]
        self._keep_statistics(TaskBlocks(tuple(blocks), samples.tasks), y)
        return self._as_given(X, blocks, samples.tasks)

    def transform(self, X: Any) -> Any:
        """Prepare samples by the fitted preparation of their task."""
        check_is_fitted(self)
        samples = self.numbers(X)
        blocks = []
        for fitted, block, width in zip(
            self.fitted_, list_blocks(samples), self.widths_, strict=True
        ):
            prepared = block
            if not len(block):
                prepared = np.empty((0, width))
            elif fitted is not None:
                prepared = fitted.transform(block)
            blocks.append(prepared)
        return self._as_given(X, blocks, samples.tasks)

    def numbers(self, X: Any) -> Any:
        """Return samples as blocks of the tasks, each of the one in whose columns it has values."""
        if isinstance(X, TaskBlocks):
            return X
        array = np.asarray(X)
        parts = [
            _numbers(preparation, array[:, columns])
            for preparation, columns in zip(
                self.preparations.values(), self._columns(), strict=True
            )
        ]
        filled = np.stack([~np.isnan(part).all(axis=1) for part in parts], axis=1)
        if (wrong := np.flatnonzero(filled.sum(axis=1) != 1)).size:
            raise ValueError(
                f"sample {wrong[0]} has values in the columns of {filled[wrong[0]].sum()} tasks;"
                " give values for one."
            )
        tasks = filled.argmax(axis=1)
        return TaskBlocks(tuple(part[tasks == i] for i, part in enumerate(parts)), tasks)

    def get_feature_names_out(self, input_features: Any = None) -> LabelArray:
        """Return a name for each prepared column, behind that of its task."""
        check_is_fitted(self)
        names = []
        for task, fitted, width in zip(self.preparations, self.fitted_, self._widths, strict=True):
            own = [str(i) for i in range(width)]
            if fitted is not None:
                own = fitted.get_feature_names_out().tolist()
            names += [f"{task}/{name}" for name in own]
        return np.array(names, dtype=object)

    @property
    def _widths(self) -> list[int]:
        return [int(np.prod(shape)) for shape in self.shapes.values()]

    def _columns(self) -> Iterator[slice]:
        stops = np.cumsum(self._widths).tolist()
        return (slice(stop - width, stop) for stop, width in zip(stops, self._widths, strict=True))

    def _as_given(self, X: Any, blocks: list[FloatArray], tasks: IntArray) -> Any:
        made = TaskBlocks(tuple(blocks), tasks)
        if isinstance(X, TaskBlocks):
            return made
        return made.dense()


def _numbers(preparation: Preparation | None, array: LabelArray) -> FloatArray:
    if preparation is None:
        return np.asarray(array, dtype=np.float64)
    return preparation.numbers(array)
