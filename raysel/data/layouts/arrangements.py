"""Arrangements of the columns: cells of arrays, and the parts of several tasks or modalities."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError

#: Separator of a task's name and a label, ``task/label``, in the labels of several tasks.
SEPARATOR = "/"


class Layout(ABC):
    """Base class of the arrangements of a data set's columns."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @abstractmethod
    def coordinates(self) -> dict[str, LabelArray]:
        """Coordinates of the columns: an array of shape (n_features,) for each coordinate's name."""

    @abstractmethod
    def default_names(self) -> list[str]:
        """Name of each column, made from its coordinates."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Describe the layout by values that JSON can hold; `layout_from_json` is the inverse."""


class PartedLayout(Layout):
    """Base class of layouts whose columns form consecutive named parts."""

    #: Name of the column of tables that holds the part's name.
    part: ClassVar[str]

    @abstractmethod
    def widths(self) -> dict[str, int]:
        """Number of columns of each part."""

    @property
    def n_features(self) -> int:
        """Number of columns of all parts."""
        return sum(self.widths().values())

    def slices(self) -> dict[str, slice]:
        """Columns of each part."""
        stops = np.cumsum(list(self.widths().values())).tolist()
        return {
            name: slice(stop - width, stop) for (name, width), stop in zip(self.widths().items(), stops, strict=True)
        }

    def coordinates(self) -> dict[str, LabelArray]:
        """Name of the part and index within the part, for each column."""
        widths = self.widths()
        columns = [np.arange(width) for width in widths.values()]
        return {self.part: np.repeat(list(widths), list(widths.values())), "column": np.concatenate(columns)}


@dataclass(frozen=True)
class Tensor(Layout):
    """Layout of samples that are arrays of any order; the columns are their cells in C order.

    Parameters
    ----------
    shape : tuple of int
        Shape of a sample, e.g. (height, width) of an image.

    Raises
    ------
    DataError
        If ``shape`` is empty or holds anything but positive integers.

    Examples
    --------
    >>> Tensor((8, 8)).n_features
    64
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or any(not isinstance(side, int) or side < 1 for side in self.shape):
            raise DataError(f"shape {self.shape!r} is not a list of positive whole numbers, e.g. [32, 32].")

    @property
    def n_features(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def axes(self) -> list[str]:
        """Names of the axes: row and column, or axis0, axis1, ... for higher orders."""
        return ["row", "column"] if len(self.shape) <= 2 else [f"axis{i}" for i in range(len(self.shape))]

    def coordinates(self) -> dict[str, LabelArray]:
        """Index along each axis, for each cell; a vector is treated as one column."""
        shape = self.shape if len(self.shape) > 1 else (*self.shape, 1)
        indices = np.unravel_index(np.arange(self.n_features), shape)
        return {axis: index.astype(np.int64) for axis, index in zip(self.axes(), indices, strict=True)}

    def default_names(self) -> list[str]:
        """Name the cells ``r0c0, r0c1, ...``; those of a vector ``x0, x1, ...``."""
        if len(self.shape) == 1:
            return [f"x{i}" for i in range(self.n_features)]
        letters = ["r", "c"] if len(self.shape) == 2 else [f"a{i}_" for i in range(len(self.shape))]
        columns = list(self.coordinates().values())
        return ["".join(f"{a}{i}" for a, i in zip(letters, cell, strict=True)) for cell in zip(*columns, strict=True)]

    def arranged(self, values: ArrayLike) -> LabelArray:
        """Give one value for each cell the shape of a sample.

        Parameters
        ----------
        values : array-like of shape (n_features,)
            Values of the cells.

        Returns
        -------
        ndarray of shape ``shape``
            The values.
        """
        return np.asarray(values).reshape(self.shape)

    def to_json(self) -> dict[str, Any]:
        """Describe kind and shape."""
        return {"kind": "tensor", "shape": list(self.shape)}


def Matrix(height: int, width: int) -> Tensor:  # noqa: N802 - reads as the layout it makes
    """Make the layout of matrix-shaped samples.

    Parameters
    ----------
    height : int
        Number of rows of a sample.
    width : int
        Number of columns of a sample.

    Returns
    -------
    Tensor
        Layout of order 2.

    Raises
    ------
    DataError
        If ``height`` or ``width`` is not a positive integer.

    Examples
    --------
    >>> Matrix(2, 2).default_names()
    ['r0c0', 'r0c1', 'r1c0', 'r1c1']
    """
    return Tensor((height, width))


@dataclass(frozen=True)
class Tasks(PartedLayout):
    """Layout of several tasks: consecutive blocks of columns, of which a sample fills that of its own task only.

    Parameters
    ----------
    tasks : mapping of str to int or tuple of int
        Name of each task, in column order, and its number of columns or the shape of its samples.

    Raises
    ------
    DataError
        If there is no task, or a number of columns is not a positive integer.

    Examples
    --------
    >>> Tasks({"digits": (8, 8), "wine": 13}).slices()
    {'digits': slice(0, 64, None), 'wine': slice(64, 77, None)}
    """

    part: ClassVar[str] = "task"

    tasks: Mapping[str, int | tuple[int, ...]]

    def __post_init__(self) -> None:
        if not isinstance(self.tasks, Mapping) or not self.tasks:
            raise DataError(f"tasks={self.tasks!r}: name each task with its number of columns, e.g. {{'faces': 644}}.")
        shapes: dict[str, int | tuple[int, ...]] = {}
        for name, shape in self.tasks.items():
            sides = tuple(shape) if isinstance(shape, Sequence) else (shape,)
            if not sides or any(not isinstance(side, Integral) or isinstance(side, bool) or side < 1 for side in sides):
                raise DataError(f"task {name!r} has {shape!r} columns: give a positive whole number or a shape.")
            integers = tuple(int(side) for side in sides)
            shapes[name] = integers if isinstance(shape, Sequence) else integers[0]
        object.__setattr__(self, "tasks", shapes)

    def widths(self) -> dict[str, int]:
        """Number of columns of each task."""
        return {name: shape if isinstance(shape, int) else math.prod(shape) for name, shape in self.tasks.items()}

    def default_names(self) -> list[str]:
        """Name the columns ``task_0, task_1, ...``."""
        return [f"{name}_{column}" for name, width in self.widths().items() for column in range(width)]

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and shapes."""
        shapes = [[name, shape if isinstance(shape, int) else list(shape)] for name, shape in self.tasks.items()]
        return {"kind": "tasks", "tasks": shapes}


@dataclass(frozen=True)
class Modalities(PartedLayout):
    """Layout of several modalities: consecutive blocks of columns, all of which every sample fills.

    Parameters
    ----------
    modalities : mapping of str to int, or sequence of (str, int)
        Name of each modality and its number of columns, in column order.

    Raises
    ------
    DataError
        If a number of columns is not a positive integer, a name is repeated, or there is no modality.

    Examples
    --------
    >>> Modalities({"hog": 2, "lbp": 1}).default_names()
    ['hog[0]', 'hog[1]', 'lbp[0]']
    """

    part: ClassVar[str] = "modality"

    modalities: Mapping[str, int]

    def __post_init__(self) -> None:
        given = self.modalities.items() if isinstance(self.modalities, Mapping) else self.modalities
        widths: dict[str, int] = {}
        for name, width in given:
            if name in widths:
                raise DataError(f"modality {name!r} is named twice: give each modality a different name.")
            if isinstance(width, bool) or not isinstance(width, Integral) or width < 1:
                raise DataError(f"modality {name!r} has {width!r} columns: give a positive whole number.")
            widths[name] = int(width)
        if not widths:
            raise DataError("modalities is empty: name each modality with its number of columns.")
        object.__setattr__(self, "modalities", widths)

    def widths(self) -> dict[str, int]:
        """Number of columns of each modality."""
        return dict(self.modalities)

    def default_names(self) -> list[str]:
        """Name the columns ``modality[0], modality[1], ...``."""
        return [f"{name}[{column}]" for name, width in self.modalities.items() for column in range(width)]

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and widths."""
        return {"kind": "modalities", "modalities": [[name, width] for name, width in self.modalities.items()]}
