"""Arrays of cells: differences between neighbours, and the cosine transform of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft

from raysel.core.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Grid:
    """An array of which some cells are features.

    Weights W are (k, *sides), one array for each of k targets; their differences along the axes are
    (n_axes, k, *sides), 0 at the last cell of an axis.
    """

    #: Whether a cell is a feature; shape ``sides``.
    inside: BoolArray

    @property
    def axes(self) -> tuple[int, ...]:
        """Axes of weights that are axes of the array."""
        return tuple(range(1, self.inside.ndim + 1))

    @cached_property
    def pairs(self) -> BoolArray:
        """Whether a cell and the next one along an axis are features; (n_axes, 1, *sides)."""
        made = np.zeros((self.inside.ndim, 1, *self.inside.shape), dtype=bool)
        for axis, (first, second) in enumerate(self._neighbours()):
            made[axis][first] = self.inside[None][first] & self.inside[None][second]
        return made

    @cached_property
    def roots(self) -> FloatArray:
        """Square roots of the eigenvalues of I + D'D, with the differences D; shape ``sides``.

        The eigenvectors are those of the cosine transform.
        """
        eigenvalues = np.ones(self.inside.shape)
        for axis, side in enumerate(self.inside.shape):
            along = 2.0 - 2.0 * np.cos(np.pi * np.arange(side) / side)
            eigenvalues += along.reshape(-1, *[1] * (self.inside.ndim - axis - 1))
        return np.sqrt(eigenvalues)

    def _neighbours(self) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
        """Yield for each axis the index of all cells but the last, and of all but the first."""
        for axis in self.axes:
            before = (slice(None),) * axis
            yield (*before, slice(None, -1)), (*before, slice(1, None))

    def differences(self, W: FloatArray) -> FloatArray:
        """Next cell less this one, along each axis."""
        made = np.zeros((self.inside.ndim, *W.shape))
        for axis, (first, second) in enumerate(self._neighbours()):
            np.subtract(W[second], W[first], out=made[axis][first])
        return made

    def adjoint(self, V: FloatArray) -> FloatArray:
        """Apply the transpose of `differences`."""
        made = np.zeros(V.shape[1:])
        for axis, (first, second) in enumerate(self._neighbours()):
            made[first] -= V[axis][first]
            made[second] += V[axis][first]
        return made

    def spread(self, values: FloatArray) -> FloatArray:
        """Give values of the features, (k, n_features), their cells; others are 0."""
        cells = np.zeros((len(values), *self.inside.shape))
        cells[:, self.inside] = values
        return cells

    def transform(self, W: FloatArray) -> FloatArray:
        """Cosine transform, orthonormal."""
        return scipy.fft.dctn(W, norm="ortho", axes=self.axes)

    def inverse_transform(self, coordinates: FloatArray) -> FloatArray:
        """Inverse of `transform`."""
        return scipy.fft.idctn(coordinates, norm="ortho", axes=self.axes)

    def smooth(self, W: FloatArray) -> FloatArray:
        """Apply the inverse of I + D'D."""
        return self.inverse_transform(self.transform(W) / self.roots**2)
