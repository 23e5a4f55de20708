"""Norms of blocks of coefficients as penalties, their proximal steps and projections.

A block of coefficients W (c, d) is one feature's on all problems (a column) or one problem's on one
modality (consecutive entries of a row). Shrinking by t, ``(1 - t / ||block||)_+ block``, is the
proximal step of ``t ||block||``. Capping at t projects a block on the ball of radius t: it is what
shrinking takes away. A further penalty is a subclass of `BlockNorm` that says which entries are a
block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raysel.core.arrays import FloatArray, IntArray


def shrink_factors(norms: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Factors ``(1 - threshold / norm)_+`` that shrink blocks; 0 for blocks of zeros.

    `norms` has one entry a block, `thresholds` one each or fewer, which are broadcast.
    """
    factors = np.divide(thresholds, norms, out=np.ones_like(norms), where=norms > 0)
    np.subtract(1.0, factors, out=factors)
    return np.maximum(factors, 0.0, out=factors)


def cap_factors(norms: FloatArray, radii: FloatArray) -> FloatArray:
    """Factors ``min(1, radius / norm)`` that project blocks on balls of these radii, above 0.

    `norms` has one entry a block, `radii` one each or fewer, which are broadcast.
    """
    return 1.0 / np.maximum(norms / radii, 1.0)


@dataclass(frozen=True)
class BlockNorm(ABC):
    """The penalty ``sum_b weight_b ||block_b||`` on coefficients (n_classes, n_features)."""

    #: Positive weights of the blocks: one a feature in `FeatureNorm`, one a modality in
    #: `ModalityNorm`; shape (n_weights,).
    weights: FloatArray

    @abstractmethod
    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of the entries of each block.

        `W` is (n_classes, n_features); returns (n_features,) or (n_classes, n_modalities).
        """

    @abstractmethod
    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Indices of the entries of each block. Yields `rows`, `columns` (block_size,)."""

    def norms(self, W: FloatArray) -> FloatArray:
        """Euclidean norm of each block, in the shape that `sums` gives."""
        return np.sqrt(self.sums(W * W))

    @abstractmethod
    def spread(self, factors: FloatArray) -> FloatArray:
        """Repeat one factor a block so that the result multiplies W entry by entry."""

    def value(self, W: FloatArray) -> float:
        """The penalty of W."""
        return float((self.norms(W) * self.weights).sum())

    def ratios(self, U: FloatArray) -> FloatArray:
        """Norm of each block over its weight; U is in the dual ball where none exceeds 1."""
        return self.norms(U) / self.weights

    def shrink(self, W: FloatArray, step: float, out: FloatArray) -> FloatArray:
        """Proximal point of the penalty: ``argmin_Z step value(Z) + ||Z - W||^2 / 2``.

        `W` and `out` are (n_classes, n_features); returns (n_classes, n_features).
        """
        factors = shrink_factors(self.norms(W), step * self.weights)
        return np.multiply(W, self.spread(factors), out=out)

    def cap(self, U: FloatArray) -> FloatArray:
        """Projection of U on the dual ball, where no block's norm exceeds its weight."""
        return U * self.spread(cap_factors(self.norms(U), self.weights))


@dataclass(frozen=True)
class FeatureNorm(BlockNorm):
    """The penalty ``sum_r weight_r ||W[:, r]||``: it drops a feature for all classes."""

    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of each column, shape (n_features,)."""
        return W.sum(axis=0)

    def norms(self, W: FloatArray) -> FloatArray:
        """Norm of each column, shape (n_features,)."""
        return np.sqrt(np.einsum("jr,jr->r", W, W))

    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Indices of each column's entries."""
        rows = np.arange(shape[0])
        return ((rows, np.full_like(rows, r)) for r in range(shape[1]))

    def spread(self, factors: FloatArray) -> FloatArray:
        """The factors themselves, shape (n_features,): they multiply columns."""
        return factors


@dataclass(frozen=True)
class ModalityNorm(BlockNorm):
    """The penalty ``sum_jk weight_k ||W[j, modality k]||``: it drops one for a class."""

    #: Number of columns of each modality, in column order; each at least 1; shape (n_modalities,).
    widths: IntArray

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum(self.widths) - self.widths

    def sums(self, W: FloatArray) -> FloatArray:
        """Sum of each class's entries in each modality, shape (n_classes, n_modalities)."""
        return np.add.reduceat(W, self._starts, axis=1)

    def members(self, shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
        """Indices of each class's entries in each modality, class by class."""
        parts = [
            np.arange(a, a + width) for a, width in zip(self._starts, self.widths, strict=True)
        ]
        for j in range(shape[0]):
            for columns in parts:
                yield np.full_like(columns, j), columns

    def spread(self, factors: FloatArray) -> FloatArray:
        """Repeat each modality's factor over its columns, shape (n_classes, n_features)."""
        return np.repeat(factors, self.widths, axis=1)
