"""The samples of each task, taken apart from what either face of a projection is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.layouts import SEPARATOR, Tasks
from raysel.data.task_blocks import Samples, as_task_blocks
from raysel.errors import ConfigError, DataError


@dataclass(frozen=True)
class TaskSamples:
    """One task's samples.

    Attributes
    ----------
    name : str
        Empty where the data are one task.
    X : ndarray of shape (n, D)
    y : ndarray of shape (n,)
    classes : ndarray of shape (c,)
        The task's labels, sorted.
    codes : ndarray of int64, shape (n,)
        ``classes[codes]`` is y; -1 where a sample is unlabelled.
    """

    name: str
    X: FloatArray
    y: LabelArray
    classes: LabelArray
    codes: IntArray

    def __str__(self) -> str:
        return task_label(self.name)

    @property
    def counts(self) -> IntArray:
        """Number of samples of each class: shape (c,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes)).astype(np.int64)

    @property
    def one_hot(self) -> FloatArray:
        """1 in the column of its class for each labelled sample: shape (n_labelled, c)."""
        return np.eye(len(self.classes))[self.codes[self.codes >= 0]]


def task_label(name: str) -> str:
    """What messages call a task of this name."""
    return f"task {name!r}" if name else "the data"


def is_labelled(y: LabelArray, unlabelled: Any, names: Iterable[str] = ()) -> BoolArray:
    """Which samples have a label.

    Parameters
    ----------
    y : ndarray of shape (n,)
    unlabelled : label or None
        The label that means no label.
    names : iterable of str, default=()
        Of the tasks, before which ``join_tasks`` puts the label: ``task/label``.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    if unlabelled is None:
        return np.ones(len(y), dtype=bool)
    if y.dtype.kind not in "OU":
        return np.asarray(y != unlabelled, dtype=bool)
    return ~np.isin(y.astype(np.str_), [str(unlabelled), *(f"{name}{SEPARATOR}{unlabelled}" for name in names)])


def task_samples(name: str, X: FloatArray, y: LabelArray, unlabelled: Any = None) -> TaskSamples:
    """Number the classes of one task.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n, D)
    y : ndarray of shape (n,)
    unlabelled : label, default=None
        The label that means no label.

    Returns
    -------
    TaskSamples

    Raises
    ------
    DataError
        If there are fewer than two classes.
    """
    labelled = is_labelled(y, unlabelled, [name])
    classes, known = np.unique(y[labelled], return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[labelled] = known
    samples = TaskSamples(name, X, y, classes, codes)
    if len(classes) < 2:
        held = f"all of one class ({classes[0]!s})" if len(classes) else "all unlabelled"
        raise DataError(f"{samples}: the samples are {held}; one class is not enough, at least two are needed.")
    return samples


def split_tasks(
    tasks: Mapping[str, int | tuple[int, ...]], X: Samples, y: LabelArray, unlabelled: Any = None
) -> list[TaskSamples]:
    """The samples of each task.

    Parameters
    ----------
    tasks : mapping of str to int or tuple of int
    X : TaskBlocks, or ndarray of shape (n_samples, n_features) with NaN outside a sample's own task
    y : ndarray of shape (n_samples,)
    unlabelled : label, default=None

    Returns
    -------
    list of TaskSamples

    Raises
    ------
    DataError
        If a sample belongs to no task or to several, or a task has no samples or one class.
    """
    layout = Tasks(tasks)
    samples = []
    for name, (rows, _, block) in zip(layout.tasks, as_task_blocks(X, layout).parts(), strict=True):
        if not len(rows):
            raise DataError(f"task {name!r} has no samples: every task needs its own.")
        samples.append(task_samples(name, block, y[rows], unlabelled))
    return samples


def check_tasks(
    parameter: Mapping[str, int | tuple[int, ...]] | None,
    tasks: Sequence[tuple[ArrayLike, ArrayLike]],
    unlabelled: Any = None,
) -> list[TaskSamples]:
    """Validate tasks given one by one.

    Parameters
    ----------
    parameter : mapping of str to int or tuple of int, or None
        The estimator's ``tasks``, which the given ones must match.
    tasks : sequence of (X_i, y_i)
    unlabelled : label, default=None

    Returns
    -------
    list of TaskSamples

    Raises
    ------
    ConfigError, DataError
        Name the task and what is wrong with it.
    """
    if len(tasks) < 2:
        raise ConfigError(f"fit_tasks was given {len(tasks)} task(s): it needs at least two; fit(X, y) does for one.")
    widths = Tasks(parameter).widths() if parameter is not None else {}
    names = list(widths) or [f"task{i}" for i in range(len(tasks))]
    if len(names) != len(tasks):
        raise ConfigError(f"fit_tasks was given {len(tasks)} tasks, the parameter tasks names {len(names)}: {names}.")
    samples = []
    for name, pair in zip(names, tasks, strict=True):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError(f"task {name!r}: fit_tasks takes a pair (X, y) a task, not {type(pair).__name__}.")
        try:
            features, labels = check_X_y(*pair, dtype=np.float64, order="C", ensure_min_samples=2)
            check_classification_targets(labels)
        except ValueError as error:
            raise DataError(f"task {name!r}: {str(error).partition(chr(10))[0]}") from error
        if features.shape[1] != widths.get(name, features.shape[1]):
            raise ConfigError(
                f"task {name!r} has {features.shape[1]} features, the parameter tasks says {widths[name]}."
            )
        samples.append(task_samples(name, features, labels, unlabelled))
    return samples
