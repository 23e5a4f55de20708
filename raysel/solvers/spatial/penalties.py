"""Penalties on the differences between neighbouring cells, (n_axes, k, *sides) for k targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from raysel.core.arrays import FloatArray


@dataclass(frozen=True)
class DifferencePenalty(ABC):
    """A convex penalty on differences, for each of k targets."""

    weight: float

    @abstractmethod
    def values(self, V: FloatArray) -> FloatArray:
        """Penalty of differences V (n_axes, k, *sides); shape (k,)."""

    @abstractmethod
    def shrink(self, V: FloatArray, strength: float) -> FloatArray:
        """Minimise the penalty plus ``strength / 2 ||. - V||^2``."""

    @abstractmethod
    def nearest(self, V: FloatArray) -> FloatArray:
        """Return the nearest point at which the convex conjugate is finite."""

    @abstractmethod
    def conjugates(self, V: FloatArray) -> FloatArray:
        """Convex conjugate, where it is finite; shape (k,)."""


class SquaredDifferences(DifferencePenalty):
    """Half of the sum of squares."""

    def values(self, V: FloatArray) -> FloatArray:
        """Penalty of each target."""
        return self.weight / 2 * _sums(V**2)

    def shrink(self, V: FloatArray, strength: float) -> FloatArray:
        """Scale all differences."""
        return V * (strength / (strength + self.weight))

    def nearest(self, V: FloatArray) -> FloatArray:
        """Return V itself, or 0 for a penalty of no weight."""
        if self.weight == 0.0:
            return np.zeros_like(V)
        return V

    def conjugates(self, V: FloatArray) -> FloatArray:
        """Half of the sum of squares, divided by the weight."""
        if self.weight == 0.0:
            return np.zeros(V.shape[1])
        return _sums(V**2) / (2 * self.weight)


class TotalVariation(DifferencePenalty):
    """Sum over the cells of the lengths of their differences: isotropic total variation."""

    def values(self, V: FloatArray) -> FloatArray:
        """Penalty of each target."""
        return self.weight * _sums(np.linalg.norm(V, axis=0, keepdims=True))

    def shrink(self, V: FloatArray, strength: float) -> FloatArray:
        """Shorten the differences of each cell by the same length."""
        lengths = np.linalg.norm(V, axis=0)
        threshold = self.weight / strength
        return V * (1.0 - threshold / np.maximum(lengths, max(threshold, np.finfo(float).tiny)))

    def nearest(self, V: FloatArray) -> FloatArray:
        """Shorten the differences that are longer than the weight."""
        lengths = np.linalg.norm(V, axis=0)
        return V * np.minimum(1.0, self.weight / np.maximum(lengths, np.finfo(float).tiny))

    def conjugates(self, V: FloatArray) -> FloatArray:
        """Return 0, which it is where no length is above the weight."""
        return np.zeros(V.shape[1])


def _sums(V: FloatArray) -> FloatArray:
    """Sums over axes and cells; of (n_axes, k, *sides) to (k,)."""
    return V.swapaxes(0, 1).reshape(V.shape[1], -1).sum(axis=1)
