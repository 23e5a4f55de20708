"""Layout of several tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

from raysel.core.errors import DataError
from raysel.core.printing import listed
from raysel.data.layouts.layout import Layout, PartedLayout
from raysel.data.layouts.tensor import Tensor

#: Separator of a task's name and a label, ``task/label``, in the labels of several tasks.
SEPARATOR = "/"


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

    kind: ClassVar[str] = "tasks"
    part: ClassVar[str] = "task"
    is_multitask: ClassVar[bool] = True
    noun: ClassVar[str] = kind

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

    @property
    def default_scaling(self) -> str:
        """One range for the cells of all tasks, unless a task has plain columns."""
        return "zscore" if any(isinstance(shape, int) for shape in self.tasks.values()) else "unit"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of the samples of each task; (n_columns,) for plain columns."""
        return {name: (shape,) if isinstance(shape, int) else shape for name, shape in self.tasks.items()}

    def blocks(self) -> dict[str, tuple[slice, Layout]]:
        """Columns and layout of each task."""
        slices = self.slices()
        return {name: (slices[name], Tensor(shape)) for name, shape in self.shapes().items()}

    def default_names(self) -> list[str]:
        """Name the columns ``task_0, task_1, ...``."""
        return [f"{name}_{column}" for name, width in self.widths().items() for column in range(width)]

    def parameters(self) -> dict[str, Any]:
        """Number of columns, or shape of the samples, of each task."""
        return {"tasks": dict(self.tasks)}

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the tasks by the shapes and the numbers of their samples."""
        sizes = [" x ".join(map(str, shape)) for shape in self.shapes().values()]
        counts = [f", {n} samples" for n in n_samples] or [""] * len(sizes)
        tasks = [f"{name} ({size}{n})" for name, size, n in zip(self.tasks, sizes, counts, strict=True)]
        return f"{len(tasks)} tasks, each with features of its own: {listed(tasks, 24)}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and shapes."""
        shapes = [[name, shape if isinstance(shape, int) else list(shape)] for name, shape in self.tasks.items()]
        return {"kind": self.kind, "tasks": shapes}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described tasks."""
        return cls(dict(description["tasks"]))
