"""Cells of images and volumes arranged in a plane: an image as it is, a volume as slices side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.data.layouts import Layout

_FEW = 4  # a first or last axis of at most so many cells is one of channels, all of which are shown
_MOST_SLICES = 12
_TITLE, _GAP = 0.22, 0.1  # inches: height of the title of a slice, and width between two slices


@dataclass(frozen=True, eq=False)
class Plane:
    """Arrangement of the cells of a sample in a plane."""

    #: Cell of the sample's array, counted in C order, at each place; -1 between slices; shape (height, width).
    cells: IntArray
    #: Feature at each place; -1 between slices and outside a mask; shape (height, width).
    features: IntArray
    axes: tuple[str, str]
    titles: tuple[tuple[float, float, str], ...] = ()
    ticks: tuple[tuple[Sequence[float], Sequence[str]], tuple[Sequence[float], Sequence[str]]] | None = None
    about: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in cells."""
        height, width = self.cells.shape
        return height, width

    @property
    def inside(self) -> BoolArray:
        """Mask of the places that hold a feature."""
        return self.features >= 0

    def of_features(self, values: ArrayLike) -> Any:
        """Return values of the features in the plane."""
        return np.ma.array(np.asarray(values)[self.features], mask=~self.inside)

    def of_cells(self, values: ArrayLike) -> Any:
        """Return values of the cells of a sample's array in the plane."""
        found = np.asarray(values)[self.cells]
        return np.ma.array(found, mask=(self.cells < 0) | np.isnan(found))


def make_plane(
    layout: Layout, weights: FloatArray | None = None, largest: tuple[float, float] = (4.1, 6.4)
) -> Plane | None:
    """Arrange the cells of a layout in a plane."""
    if not layout.is_image:
        return None
    features = layout.arranged(np.arange(layout.n_features), outside=-1)
    if features.ndim == 2:
        first, second = layout.axes()
        return Plane(features, features, (first, second))
    in_space = layout.affine is not None
    return _slices(features, layout.axes(), layout.slice_axis, weights, largest, flipped=in_space)


def _slices(
    features: IntArray,
    axes: Sequence[str],
    along: int,
    weights: FloatArray | None,
    largest: tuple[float, float],
    *,
    flipped: bool,
) -> Plane:
    """Slices of a volume along an axis, side by side."""
    # With ``flipped`` the first other axis runs to the right and the second upwards, as in pictures of space; without,
    # the first runs down and the second to the right, as in a matrix.
    others = [axis for axis in range(3) if axis != along]
    down, right = others[::-1] if flipped else others
    volume = features.transpose(along, down, right)
    cells = np.arange(features.size).reshape(features.shape).transpose(along, down, right)
    chosen = _chosen(volume, weights)
    rows, columns = _extent(volume)
    if flipped:
        rows = rows[::-1]
    tiles = np.ix_(np.array(chosen), rows, columns)
    grid = _Grid(len(chosen), len(rows), len(columns), largest)
    n_all = len(volume)
    which = f"{len(chosen)} of the {n_all} slices along {axes[along]} are shown"
    about = "" if len(chosen) == n_all else f"{which}{', those with the highest scores' if weights is not None else ''}"
    return Plane(
        grid.fill(cells[tiles]),
        grid.fill(volume[tiles]),
        (axes[down], axes[right]),
        tuple((x, y, f"{axes[along]} = {i}") for (x, y), i in zip(grid.title_places(), chosen, strict=True)),
        (grid.row_ticks(rows), grid.column_ticks(columns)),
        about,
    )


def _chosen(volume: IntArray, weights: FloatArray | None) -> list[int]:
    """Indices of the slices that are shown, increasing."""
    if len(volume) <= _MOST_SLICES and weights is None:
        return np.flatnonzero((volume >= 0).any(axis=(1, 2))).tolist() or [0]
    if weights is None:
        filled = np.flatnonzero((volume >= 0).any(axis=(1, 2)))
        places = np.linspace(0, len(filled) - 1, min(len(filled), _MOST_SLICES)).round().astype(int)
        return filled[np.unique(places)].tolist()
    best = np.where(volume >= 0, weights[volume], 0.0).max(axis=(1, 2))
    order = np.argsort(-best, kind="stable")
    if len(volume) <= _FEW:
        return list(range(len(volume)))
    shown = [i for i in order[:_MOST_SLICES].tolist() if best[i] > 0]
    return sorted(shown or order[:1].tolist())


def _extent(volume: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and columns from the first to the last with a feature in any slice, and one more on each side."""
    found = []
    for axis in (1, 2):
        filled = np.flatnonzero((volume >= 0).any(axis=tuple({0, 1, 2} - {axis})))
        found.append(np.arange(max(0, filled[0] - 1), min(volume.shape[axis], filled[-1] + 2)))
    return found[0], found[1]


class _Grid:
    """Grid of equal tiles with room for a title above each."""

    def __init__(self, n: int, height: int, width: int, largest: tuple[float, float]) -> None:
        scale, across = max(
            (min(largest[0] / (k * width), largest[1] / (math.ceil(n / k) * height)), -k) for k in range(1, n + 1)
        )
        self._n, self._height, self._width, self._across = n, height, width, -across
        self._above, self._between = max(1, math.ceil(_TITLE / scale)), max(1, math.ceil(_GAP / scale))
        self._down = math.ceil(n / self._across)

    def _corners(self) -> list[tuple[int, int]]:
        """First row and column of each tile."""
        places = (divmod(i, self._across) for i in range(self._n))
        return [
            (row * (self._height + self._above) + self._above, column * (self._width + self._between))
            for row, column in places
        ]

    def fill(self, tiles: IntArray) -> IntArray:
        """Put tiles of shape (n, height, width) into the grid, with -1 between them."""
        height = self._down * (self._height + self._above)
        width = self._across * (self._width + self._between) - self._between
        plane: IntArray = np.full((height, width), -1)
        for tile, (row, column) in zip(tiles, self._corners(), strict=True):
            plane[row : row + self._height, column : column + self._width] = tile
        return plane

    def title_places(self) -> list[tuple[float, float]]:
        """Middle of the upper side of each tile, (x, y)."""
        return [(column + (self._width - 1) / 2, row - 0.5) for row, column in self._corners()]

    def row_ticks(self, indices: IntArray) -> tuple[list[float], list[str]]:
        """Ticks at the ends of the tiles of the first column."""
        starts = sorted({row for row, _ in self._corners()})
        return _ends(starts, indices)

    def column_ticks(self, indices: IntArray) -> tuple[list[float], list[str]]:
        """Ticks at the ends of the tiles of the first column; more would touch each other."""
        return _ends([0], indices)


def _ends(starts: Sequence[int], indices: IntArray) -> tuple[list[float], list[str]]:
    ends = [0, len(indices) - 1] if len(indices) > 1 else [0]
    return [float(start + end) for start in starts for end in ends], [str(indices[e]) for _ in starts for e in ends]
