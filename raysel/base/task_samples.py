"""Samples of each task, numbers of components, and a warning of directions lost by rounding."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgWarning
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tasks
from raysel.data.targets import mark_label
from raysel.data.task_blocks import Samples, as_task_blocks


def component_numbers(wanted: Any, limits: Sequence[tuple[str, int]]) -> list[int]:
    """Return the number of components of each task."""
    if isinstance(wanted, int | np.integer):
        wanted = [wanted] * len(limits)
    sizes = list(wanted)
    for size in sizes:
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise ConfigError(f"n_components={wanted!r}: {size!r} is not a positive whole number.")
    if len(sizes) != len(limits):
        raise ConfigError(
            f"n_components={sizes} has {len(sizes)} entries for {len(limits)} tasks; give one entry"
            " for each task."
        )
    for size, (task, largest) in zip(sizes, limits, strict=True):
        if size > largest:
            raise ConfigError(f"n_components={size} does not fit {task}: give at most {largest}.")
    return [int(size) for size in sizes]


def whole_numbers(name: str, given: Sequence[int] | None, n: int | None = None) -> tuple[int, ...]:
    """Convert a parameter to positive integers, one for each of the n axes of the samples."""
    sides = () if given is None else tuple(given)
    if (n or len(sides)) != len(sides) or any(
        not isinstance(k, Integral) or isinstance(k, bool) or k < 1 for k in sides or (0,)
    ):
        number = {None: "", 2: "two "}.get(n, f"{n} ")
        example = tuple(range((n or 2) + 2, 2, -1))
        raise ConfigError(
            f"{name}={given!r} must be {number}positive whole numbers, e.g. {example}."
        )
    return tuple(int(side) for side in sides)


def warn_of_lost_directions(named: str, rank: int, varying: int) -> None:
    """Warn if rounding loses directions, as where some features have a much smaller scale.

    Constant, repeated or linearly dependent features and a small number of samples cause no
    warning.
    """
    if rank < varying:
        warnings.warn(
            f"{named}: rank {rank} of {varying} directions that vary: the others vary by less than"
            " the rounding error of the largest. Scale the features (e.g. to z-scores).",
            LinAlgWarning,
            stacklevel=2,
        )


@dataclass(frozen=True)
class TaskSamples:
    """Samples of one task."""

    name: str
    #: Samples; shape (n, D).
    X: FloatArray
    #: Labels; shape (n,).
    y: LabelArray
    #: Distinct labels of the task, sorted, without the one of unlabelled samples; shape (c,).
    classes: LabelArray
    #: Position of each label in ``classes``; -1 for unlabelled samples; shape (n,).
    codes: IntArray

    def __str__(self) -> str:
        return task_label(self.name)

    @property
    def counts(self) -> IntArray:
        """Number of samples of each class, shape (c,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes)).astype(
            np.int64
        )

    @property
    def one_hot(self) -> FloatArray:
        """One-hot encoded classes of the labelled samples, shape (n_labelled, c)."""
        return np.eye(len(self.classes))[self.codes[self.codes >= 0]]


def read_sides(shape: Sequence[int] | None, n_features: int) -> tuple[int, ...]:
    """Sides of the samples of a parameter ``shape``: a vector is a matrix of one column."""
    sides: tuple[int, ...] = (n_features,)
    if shape is not None:
        sides = whole_numbers("shape", shape)
    if len(sides) == 1:
        return (*sides, 1)
    return sides


def task_label(name: str) -> str:
    """Describe a task in messages."""
    if name:
        return f"task {name!r}"
    return "the data"


def is_labelled(y: LabelArray, unlabelled: Any, names: Iterable[str] = ()) -> BoolArray:
    """Mask of the samples that have a label. `y` is (n,); returns (n,)."""
    if unlabelled is None:
        return np.ones(len(y), dtype=bool)
    return ~mark_label(y, unlabelled, names)


def task_samples(name: str, X: FloatArray, y: LabelArray, unlabelled: Any = None) -> TaskSamples:
    """Encode the labels of one task. `X` is (n, D), `y` (n,)."""
    labelled = is_labelled(y, unlabelled, [name])
    classes, labelled_codes = np.unique(y[labelled], return_inverse=True)
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[labelled] = labelled_codes
    samples = TaskSamples(name=name, X=X, y=y, classes=classes, codes=codes)
    if len(classes) < 2:
        content = f"all of one class ({classes[0]!s})" if len(classes) else "all unlabelled"
        raise DataError(f"{samples}: the samples are {content}; at least two classes are needed.")
    return samples


def split_tasks(
    tasks: Mapping[str, int | tuple[int, ...]], X: Samples, y: LabelArray, unlabelled: Any = None
) -> list[TaskSamples]:
    """Split the samples of several tasks. `X` is (n_samples, n_features), `y` (n_samples,)."""
    layout = Tasks(tasks)
    samples = []
    for name, (rows, _, block) in zip(layout.tasks, as_task_blocks(X, layout).parts(), strict=True):
        if not len(rows):
            raise DataError(f"task {name!r} has no samples: give samples of every task.")
        samples.append(task_samples(name, block, y[rows], unlabelled))
    return samples


def check_tasks(
    parameter: Mapping[str, int | tuple[int, ...]] | None,
    tasks: Sequence[tuple[ArrayLike, ArrayLike]],
    unlabelled: Any = None,
) -> list[TaskSamples]:
    """Validate the argument of ``fit_tasks``."""
    if len(tasks) < 2:
        raise ConfigError(
            f"fit_tasks got {len(tasks)} task(s) and needs at least two; use fit(X, y) for one"
            " task."
        )
    widths = Tasks(parameter).widths() if parameter is not None else {}
    names = list(widths) or [f"task{i}" for i in range(len(tasks))]
    if len(names) != len(tasks):
        raise ConfigError(
            f"fit_tasks got {len(tasks)} tasks, but the parameter tasks names {len(names)}:"
            f" {names}."
        )
    samples = []
    for name, pair in zip(names, tasks, strict=True):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError(
                f"task {name!r}: fit_tasks needs a pair (X, y) for each task, but got"
                f" {type(pair).__name__}."
            )
        try:
            features, labels = check_X_y(*pair, dtype=np.float64, order="C", ensure_min_samples=2)
            check_classification_targets(labels)
        except ValueError as error:
            raise DataError(f"task {name!r}: {str(error).partition(chr(10))[0]}") from error
        if features.shape[1] != widths.get(name, features.shape[1]):
            raise ConfigError(
                f"task {name!r} has {features.shape[1]} features, but the parameter tasks gives"
                f" {widths[name]}."
            )
        samples.append(task_samples(name, features, labels, unlabelled))
    return samples
