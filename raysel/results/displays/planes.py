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

_FEW = 4  # so many slices are all shown, whatever their scores
_MOST_SLICES = 12
_TITLE, _GAP = 0.22, 0.1  # inches: height of the title of a slice, and width between two slices

#: Places of ticks, and their labels.
Ticks = tuple[Sequence[float], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Plane:
    """Arrangement of the cells of a sample in a plane."""

    #: Cell of the sample's array, counted in C order, at each place; -1 between slices; shape (height, width).
    cells: IntArray
    #: Feature at each place; -1 between slices and outside a mask; shape (height, width).
    features: IntArray
    axes: tuple[str, str]
    titles: tuple[tuple[float, float, str], ...] = ()
    ticks: tuple[Ticks, Ticks] | None = None
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
        image = np.ravel(values)[self.cells]
        return np.ma.array(image, mask=(self.cells < 0) | np.isnan(image))


def make_plane(
    layout: Layout, weights: FloatArray | None = None, largest: tuple[float, float] = (3.9, 5.2)
) -> Plane | None:
    """Arrange the cells of images or volumes in a plane of at most the given inches; None for other samples.

    Of volumes with many slices the 12 with the highest weights are shown.
    """
    if not layout.is_image:
        return None
    features = layout.arranged(np.arange(layout.n_features), outside=-1)
    if features.ndim > 2:
        return _slices(features, layout, weights, largest)
    first, second = layout.axes()
    return Plane(features, features, (first, second))


def _slices(features: IntArray, layout: Layout, weights: FloatArray | None, largest: tuple[float, float]) -> Plane:
    # In space the first other axis runs to the right and the second upwards; else the first runs down and the second to
    # the right, as in a matrix.
    in_space, along, axes = layout.affine is not None, layout.slice_axis, layout.axes()
    others = [axis for axis in range(3) if axis != along]
    down, right = others[::-1] if in_space else others
    cells = np.arange(features.size).reshape(features.shape)
    volume = np.stack([cells, features]).transpose(0, along + 1, down + 1, right + 1)
    chosen = _chosen(volume[1], weights)
    rows, columns = _extent(volume[1], 1), _extent(volume[1], 2)
    rows = rows[::-1] if in_space else rows
    n, height, width = len(chosen), len(rows), len(columns)

    def scale(across: int) -> float:
        return min(largest[0] / (across * width), largest[1] / (math.ceil(n / across) * height))

    across = max(range(1, n + 1), key=scale)
    above, between = (max(1, math.ceil(inches / scale(across))) for inches in (_TITLE, _GAP))
    corners = [(i // across * (height + above) + above, i % across * (width + between)) for i in range(n)]
    plane = np.full((2, math.ceil(n / across) * (height + above), across * (width + between) - between), -1)
    for i, (top, left) in zip(chosen, corners, strict=True):
        plane[:, top : top + height, left : left + width] = volume[:, i][:, rows[:, None], columns]
    about = f"{n} of the {volume.shape[1]} slices along {axes[along]} are shown" if n < volume.shape[1] else ""
    return Plane(
        plane[0],
        plane[1],
        (axes[down], axes[right]),
        tuple(
            (left + (width - 1) / 2, top - 0.5, f"{axes[along]} = {i}")
            for (top, left), i in zip(corners, chosen, strict=True)
        ),
        (_ends(sorted({top for top, _ in corners}), rows), _ends([0], columns)),
        f"{about}, those with the highest scores" if about and weights is not None else about,
    )


def _chosen(volume: IntArray, weights: FloatArray | None) -> list[int]:
    """Indices of the slices that are shown, increasing."""
    if weights is None:
        filled = np.flatnonzero((volume >= 0).any(axis=(1, 2)))
        places = np.linspace(0, len(filled) - 1, min(len(filled), _MOST_SLICES)).round().astype(int)
        return filled[np.unique(places)].tolist()
    if len(volume) <= _FEW:
        return list(range(len(volume)))
    best = np.where(volume >= 0, weights[volume], 0.0).max(axis=(1, 2))
    order = np.argsort(-best, kind="stable")
    shown = [i for i in order[:_MOST_SLICES].tolist() if best[i] > 0]
    return sorted(shown or order[:1].tolist())


def _extent(volume: IntArray, axis: int) -> IntArray:
    """Indices from the first to the last with a feature in any slice, and one more on each side."""
    filled = np.flatnonzero((volume >= 0).any(axis=(0, 3 - axis)))
    return np.arange(max(0, filled[0] - 1), min(volume.shape[axis], filled[-1] + 2))


def _ends(starts: Sequence[int], indices: IntArray) -> Ticks:
    """Ticks at the first and the last index of tiles; more would touch each other."""
    ends = [0, len(indices) - 1] if len(indices) > 1 else [0]
    return [float(start + end) for start in starts for end in ends], [str(indices[e]) for _ in starts for e in ends]
