"""Base class of layouts whose columns form parts."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.data.layouts.layout import Layout
from raysel.data.layouts.tensor import Tensor


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
        return {name: slice(stop - widths[name], stop) for name, stop in zip(widths, stops, strict=True)}

    def axes(self) -> list[str]:
        """Names of the coordinates: the word for a part, and column."""
        return [self.part, "column"]

    def coordinates(self) -> dict[str, LabelArray]:
        """Name of the part and index within the part, for each column."""
        widths = self.widths()
        columns = [np.arange(width) for width in widths.values()]
        return {self.part: np.repeat(list(widths), list(widths.values())), "column": np.concatenate(columns)}

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the columns of each part, along the axes of its samples."""
        drawn = [Tensor(shape).permutation(rng) for shape in self.shapes().values()]
        starts = [columns.start for columns in self.slices().values()]
        return np.concatenate([start + part for start, part in zip(starts, drawn, strict=True)])
