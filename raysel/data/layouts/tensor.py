"""Layout of samples that are arrays: rows of a table, matrices, and arrays of higher order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.layouts.layout import Layout, permuted_cells

#: A first or last axis of at most so many cells is one of channels.
_MOST_CHANNELS = 4


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

    kind: ClassVar[str] = "tensor"

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or any(not isinstance(side, int) or side < 1 for side in self.shape):
            raise DataError(f"shape {self.shape!r} is not a list of positive whole numbers, e.g. [32, 32].")

    @property
    def n_features(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self.shape

    @property
    def is_image(self) -> bool:
        """Whether a sample has two or three axes, two of them longer than 1."""
        return len(self.shape) in (2, 3) and sum(side > 1 for side in self.shape) > 1

    @property
    def slice_axis(self) -> int:
        """Last axis, or the first if only that is one of channels."""
        return next((axis for axis in (2, 0) if len(self.shape) == 3 and self.shape[axis] <= _MOST_CHANNELS), 2)

    @property
    def noun(self) -> str:
        """Word for the samples."""
        if len(self.shape) > 2:
            return "arrays of order 3 or more"
        return "matrices" if self._is_matrix else "table"

    @property
    def default_scaling(self) -> str:
        """One range for all cells of an array, one for each column of a table."""
        return "zscore" if sum(side > 1 for side in self.shape) <= 1 else "unit"

    @property
    def default_solver(self) -> str:
        """A solver that uses rows and columns if there are both."""
        return "smr" if self._is_matrix else "rfs"

    @property
    def _is_matrix(self) -> bool:
        return len(self.shape) == 2 and min(self.shape) > 1

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

    def parameters(self) -> dict[str, Any]:
        """Shape of a sample that has two axes."""
        return {"shape": self.shape} if len(self.shape) == 2 else {}

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the cells along each axis."""
        return permuted_cells(self.shape, rng)

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the shape of a sample and the order in which its cells were read."""
        if len(self.shape) < 2:
            return super().describe()
        size = " x ".join(map(str, self.shape))
        if len(self.shape) == 2:
            sides, runs = "rows x columns", {"C": "row by row", "F": "column by column"}
        else:
            sides = f"an array of order {len(self.shape)}"
            runs = {"C": "the last axis runs fastest", "F": "the first axis runs fastest"}
        return f"each sample is {size} ({sides}){f'; read in order {order}, {runs[order]}' if order else ''}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind and shape."""
        return {"kind": self.kind, "shape": list(self.shape)}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described shape."""
        return cls(tuple(description["shape"]))


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
