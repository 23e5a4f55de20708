"""Several data sets, each a task with a feature space and classes of its own, as one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raysel.arrays import LabelArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR, Tasks, Tensor
from raysel.data.task_blocks import TaskBlocks
from raysel.errors import DataError


def join_tasks(tasks: Mapping[str, Dataset], name: str = "tasks") -> Dataset:
    """Put data sets one below the other, each in columns of its own; their samples are not copied.

    Parameters
    ----------
    tasks : mapping of str to Dataset
        At least two, by the tasks' names; single-label.
    name : str, default="tasks"

    Returns
    -------
    Dataset
        Of layout `Tasks`; labels and groups read ``task/label``, so that equal labels of two tasks stay apart.

    Raises
    ------
    DataError
        If there is one task, a name holds ``/``, a task is multi-label or has several tasks itself, or only some have
        groups.

    Examples
    --------
    >>> from raysel.data.loading import load_dataset
    >>> joined = join_tasks({"flowers": load_dataset("iris"), "wines": load_dataset("wine")})
    >>> joined.X.shape, joined.classes[:2].tolist()
    ((328, 17), ['flowers/0', 'flowers/1'])
    """
    if len(tasks) < 2:
        raise DataError("one data set is one task: give dataset.path alone, or at least two tasks.")
    if bad := [key for key in tasks if SEPARATOR in key]:
        raise DataError(f"the task's name {bad[0]!r} holds {SEPARATOR!r}; choose another name.")
    if multilabel := [key for key, data in tasks.items() if data.is_multilabel]:
        raise DataError(f"task {multilabel[0]}: a task needs one label a sample, not an indicator.")
    grouped = [key for key, data in tasks.items() if data.groups is not None]
    if grouped and len(grouped) < len(tasks):
        raise DataError(f"groups stand in {', '.join(grouped)} and not in the other tasks; give all or none.")
    shapes = {
        key: data.layout.shape if isinstance(data.layout, Tensor) and len(data.layout.shape) > 1 else data.n_features
        for key, data in tasks.items()
    }
    layout = Tasks(shapes)
    blocks = tuple(data.X for data in tasks.values() if not isinstance(data.X, TaskBlocks))
    if len(blocks) < len(tasks):
        raise DataError("a data set of several tasks is no task itself: join all single data sets at once.")
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
    )


def _prefixed(values: Mapping[str, LabelArray]) -> LabelArray:
    return np.concatenate([np.char.add(f"{key}{SEPARATOR}", array.astype(np.str_)) for key, array in values.items()])
