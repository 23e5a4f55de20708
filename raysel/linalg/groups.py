"""Norms of the groups that a coefficient matrix W (classes x features) falls into, and shrinkage of each group.

A *block* is one class's coefficients on one modality (consecutive columns), a *row* of the paper's d x c matrix is
one feature's coefficients on all classes (here a column). Shrinking by t, ``(1 - t / ||group||)_+ group``, is the
proximal step of ``t ||group||``; capping at t, the projection on the ball, is what shrinking takes away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raysel.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class GroupNorm(ABC):
    """The penalty sum_g weight_g ||group_g||.

    Attributes
    ----------
    weights : ndarray
        One a modality for blocks, one a feature for rows; positive.
    """

    weights: FloatArray

    @abstractmethod
    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of each group of W (c, d): (c, n_modalities) for blocks, (d,) for rows."""

    @abstractmethod
    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Rows and columns of each group's entries in a W of this shape."""

    def norms(self, W: FloatArray) -> FloatArray:
        """Norm of each group of W (c, d): (c, n_modalities) for blocks, (d,) for rows."""
        return np.sqrt(self.sums(W * W))

    @abstractmethod
    def spread(self, factors: FloatArray) -> FloatArray:
        """One factor a group, shaped so that it multiplies W."""

    def value(self, W: FloatArray) -> float:
        """The penalty of W."""
        return float((self.norms(W) * self.weights).sum())

    def ratios(self, U: FloatArray) -> FloatArray:
        """Norm of each group over its weight; at most 1 where U is in the penalty's dual ball."""
        return self.norms(U) / self.weights

    def shrink(self, W: FloatArray, step: float, out: FloatArray) -> FloatArray:
        """The proximal point of ``step`` times the penalty, written to ``out``."""
        norms = self.norms(W)
        kept = np.divide(step * self.weights, norms, out=np.ones_like(norms), where=norms > 0)
        np.subtract(1.0, kept, out=kept)
        return np.multiply(W, self.spread(np.maximum(kept, 0.0, out=kept)), out=out)

    def cap(self, U: FloatArray) -> FloatArray:
        """The projection of U on the penalty's dual ball."""
        return U * self.spread(1.0 / np.maximum(self.ratios(U), 1.0))


@dataclass(frozen=True)
class RowNorm(GroupNorm):
    """sum_r weight_r ||W[:, r]||: a feature is in or out for all classes together.

    Examples
    --------
    >>> RowNorm(np.array([1.0, 10.0])).value(np.array([[3.0, 0.0], [4.0, 1.0]]))
    15.0
    """

    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of each column, shape (d,)."""
        return W.sum(axis=0)

    def norms(self, W: FloatArray) -> FloatArray:
        """Norm of each column, shape (d,)."""
        return np.sqrt(np.einsum("jr,jr->r", W, W))

    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Each column's entries."""
        rows = np.arange(shape[0])
        return ((rows, np.full_like(rows, r)) for r in range(shape[1]))

    def spread(self, factors: FloatArray) -> FloatArray:
        """The factors themselves: they multiply columns."""
        return factors


@dataclass(frozen=True)
class BlockNorm(GroupNorm):
    """sum_jk weight_k ||W[j, modality k]||: a modality is in or out for each class on its own.

    Attributes
    ----------
    widths : ndarray of int64, shape (n_modalities,)

    Examples
    --------
    >>> BlockNorm(np.array([1.0, 1.0]), np.array([2, 1])).norms(np.array([[3.0, 4.0, 2.0]]))
    array([[5., 2.]])
    """

    widths: IntArray

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum(self.widths) - self.widths

    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of each class's part in each modality, shape (c, n_modalities)."""
        return np.add.reduceat(W, self._starts, axis=1)

    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Each class's entries in each modality."""
        blocks = [np.arange(a, a + width) for a, width in zip(self._starts, self.widths, strict=True)]
        return ((np.full_like(columns, j), columns) for j in range(shape[0]) for columns in blocks)

    def spread(self, factors: FloatArray) -> FloatArray:
        """Repeat each modality's factor over its columns."""
        return np.repeat(factors, self.widths, axis=1)
