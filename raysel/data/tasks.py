"""Joining of several data sets into one data set of several tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR, Tasks
from raysel.data.task_blocks import TaskBlocks


def join_tasks(tasks: Mapping[str, Dataset], name: str = "tasks") -> Dataset:
    """Join data sets into one data set of several tasks, without copying their samples.

    Parameters
    ----------
    tasks : mapping of str to Dataset
        Data set of each task by the task's name; at least two, each single-label and of one task.
    name : str, default="tasks"
        Name of the joined data set.

    Returns
    -------
    Dataset
        Data set of layout `Tasks`. Labels and groups read ``task/label``, so that equal labels of two tasks remain
        different.

    Raises
    ------
    DataError
        If there are fewer than two tasks, a name contains ``/``, a data set is multi-label or has several tasks, or
        only some data sets have groups.

    Examples
    --------
    >>> from raysel.data.loading import load_dataset
    >>> joined = join_tasks({"flowers": load_dataset("iris"), "wines": load_dataset("wine")})
    >>> joined.X.shape, joined.classes[:2].tolist()
    ((328, 17), ['flowers/0', 'flowers/1'])
    """
    if len(tasks) < 2:
        raise DataError(f"tasks holds {len(tasks)} data set(s): give at least two, or use a single data set directly.")
    if invalid := [key for key in tasks if SEPARATOR in key]:
        raise DataError(f"the task name {invalid[0]!r} contains {SEPARATOR!r}; choose another name.")
    if multilabel := [key for key, data in tasks.items() if data.is_multilabel]:
        raise DataError(f"task {multilabel[0]} has an indicator as y; give one label for each sample.")
    grouped = [key for key, data in tasks.items() if data.groups is not None]
    if grouped and len(grouped) < len(tasks):
        raise DataError(f"only {', '.join(grouped)} of the tasks have groups; give groups for all tasks or for none.")
    shapes = {key: data.layout.grid if len(data.layout.grid) > 1 else data.n_features for key, data in tasks.items()}
    layout = Tasks(shapes)
    blocks = tuple(data.X for data in tasks.values() if not isinstance(data.X, TaskBlocks))
    if len(blocks) < len(tasks):
        raise DataError("tasks holds a data set that has several tasks itself: join the single data sets at once.")
    owners = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    return Dataset(
        X=TaskBlocks(blocks, owners),
        y=_prefixed({key: data.y for key, data in tasks.items()}),
        layout=layout,
        name=name,
        groups=_prefixed({key: data.groups for key, data in tasks.items() if data.groups is not None})
        if grouped
        else None,
        feature_names=tuple(f"{key}{SEPARATOR}{f}" for key, data in tasks.items() for f in data.feature_names),
        notes=tuple(f"task {key}: {note}" for key, data in tasks.items() for note in data.notes),
    )


def _prefixed(values: Mapping[str, LabelArray]) -> LabelArray:
    return np.concatenate([np.char.add(f"{key}{SEPARATOR}", array.astype(np.str_)) for key, array in values.items()])
