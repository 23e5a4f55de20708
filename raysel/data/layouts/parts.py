"""Layouts of several modalities and of several tasks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import listed, quoted
from raysel.data.layouts.arrays import Tensor
from raysel.data.layouts.layout import Layout, permuted_cells

#: Separator of a task's name and a label, ``task/label``, in the labels of several tasks.
SEPARATOR = "/"


class PartedLayout(Layout):
    """Base class of layouts whose columns form consecutive named parts."""

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of a sample's values in each part."""

    def widths(self) -> dict[str, int]:
        """Number of columns of each part."""
        return {name: math.prod(shape) for name, shape in self.shapes().items()}

    @property
    def n_features(self) -> int:
        """Number of columns of all parts."""
        return sum(self.widths().values())

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Number of columns of all parts, as a shape."""
        return (self.n_features,)

    def slices(self) -> dict[str, slice]:
        """Columns of each part."""
        widths = self.widths()
        stops = np.cumsum(list(widths.values())).tolist()
        return {
            name: slice(stop - widths[name], stop) for name, stop in zip(widths, stops, strict=True)
        }

    def axes(self) -> list[str]:
        """Names of the coordinates: the word for a part, and column."""
        return [self.part, "column"]

    def coordinates(self) -> dict[str, LabelArray]:
        """Name of the part and index within the part, for each column."""
        widths = self.widths()
        columns = [np.arange(width) for width in widths.values()]
        return {
            self.part: np.repeat(list(widths), list(widths.values())),
            "column": np.concatenate(columns),
        }

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the columns of each part, along the axes of its samples."""
        drawn = [permuted_cells(shape, rng) for shape in self.shapes().values()]
        starts = [columns.start for columns in self.slices().values()]
        return np.concatenate([start + part for start, part in zip(starts, drawn, strict=True)])


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
        If a number of columns is not a positive integer, a name is repeated, or there is no
        modality.

    Examples
    --------
    >>> Modalities({"hog": 2, "lbp": 1}).default_names()
    ['hog[0]', 'hog[1]', 'lbp[0]']
    """

    kind: ClassVar[str] = "modalities"
    part: ClassVar[str] = "modality"
    is_multimodal: ClassVar[bool] = True
    noun: ClassVar[str] = kind
    default_scaling: ClassVar[str] = "zscore_sqrt_width"

    modalities: Mapping[str, int]

    def __post_init__(self) -> None:
        given: Any = self.modalities
        if isinstance(given, Mapping):
            given = given.items()
        widths: dict[str, int] = {}
        for name, width in given:
            if name in widths:
                raise DataError(
                    f"modality {name!r} is named twice: give each modality a different name."
                )
            if isinstance(width, bool) or not isinstance(width, Integral) or width < 1:
                raise DataError(
                    f"modality {name!r} has {width!r} columns: give a positive whole number."
                )
            widths[name] = int(width)
        if not widths:
            raise DataError("modalities is empty: name each modality with its number of columns.")
        object.__setattr__(self, "modalities", widths)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Number of columns of each modality, as a shape."""
        return {name: (width,) for name, width in self.modalities.items()}

    def default_names(self) -> list[str]:
        """Name the columns ``modality[0], modality[1], ...``."""
        names: list[str] = []
        for name, width in self.modalities.items():
            names += [f"{name}[{column}]" for column in range(width)]
        return names

    def parameters(self) -> dict[str, Any]:
        """Number of columns of each modality."""
        return {"modalities": dict(self.modalities)}

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the modalities by their numbers of columns."""
        widths = listed(
            (f"{quoted(name)} ({width})" for name, width in self.modalities.items()), 24
        )
        return f"{len(self.modalities)} modalities: {widths}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and widths."""
        return {
            "kind": self.kind,
            "modalities": [[name, width] for name, width in self.modalities.items()],
        }

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described modalities."""
        return cls(description["modalities"])


@dataclass(frozen=True)
class Tasks(PartedLayout):
    """Layout of several tasks: blocks of columns, of which a sample fills that of its task.

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

    kind: ClassVar[str] = "tasks"
    part: ClassVar[str] = "task"
    is_multitask: ClassVar[bool] = True
    noun: ClassVar[str] = kind

    tasks: Mapping[str, int | tuple[int, ...]]

    def __post_init__(self) -> None:
        if not isinstance(self.tasks, Mapping) or not self.tasks:
            raise DataError(
                f"tasks={self.tasks!r}: name each task with its number of columns, e.g. {{'faces':"
                " 644}."
            )
        shapes: dict[str, int | tuple[int, ...]] = {}
        for name, shape in self.tasks.items():
            sides = tuple(shape) if isinstance(shape, Sequence) else (shape,)
            if not sides or any(
                not isinstance(side, Integral) or isinstance(side, bool) or side < 1
                for side in sides
            ):
                raise DataError(
                    f"task {name!r} has {shape!r} columns: give a positive whole number or a shape."
                )
            integers = tuple(int(side) for side in sides)
            shapes[name] = integers if isinstance(shape, Sequence) else integers[0]
        object.__setattr__(self, "tasks", shapes)

    @property
    def default_scaling(self) -> str:
        """One range for the cells of all tasks, unless a task has plain columns."""
        if any(isinstance(shape, int) for shape in self.tasks.values()):
            return "zscore"
        return "unit"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of the samples of each task; (n_columns,) for plain columns."""
        return {
            name: (shape,) if isinstance(shape, int) else shape
            for name, shape in self.tasks.items()
        }

    def blocks(self) -> dict[str, tuple[slice, Layout]]:
        """Columns and layout of each task."""
        slices = self.slices()
        return {name: (slices[name], Tensor(shape)) for name, shape in self.shapes().items()}

    def default_names(self) -> list[str]:
        """Name the columns ``task_0, task_1, ...``."""
        names: list[str] = []
        for name, width in self.widths().items():
            names += [f"{name}_{column}" for column in range(width)]
        return names

    def parameters(self) -> dict[str, Any]:
        """Number of columns, or shape of the samples, of each task."""
        return {"tasks": dict(self.tasks)}

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the tasks by the shapes and the numbers of their samples."""
        sizes = [" x ".join(map(str, shape)) for shape in self.shapes().values()]
        counts = [f", {n} samples" for n in n_samples] or [""] * len(sizes)
        tasks = [
            f"{name} ({size}{n})" for name, size, n in zip(self.tasks, sizes, counts, strict=True)
        ]
        return f"{len(tasks)} tasks, each with features of its own: {listed(tasks, 24)}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and shapes."""
        shapes = [
            [name, shape if isinstance(shape, int) else list(shape)]
            for name, shape in self.tasks.items()
        ]
        return {"kind": self.kind, "tasks": shapes}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described tasks."""
        return cls(dict(description["tasks"]))
