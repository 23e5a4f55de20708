"""The hinge loss of several two-class problems and norms of the blocks of their coefficients, with
proximal steps.

Each row is one problem. Scores m and signs y in {-1, 1} have the shape (c, n): c problems, n
samples. The loss is ``sum_ij (1 - y_ij m_ij)_+``.

A block of coefficients W (c, d) is one feature's on all problems (a column) or one problem's on one
modality (consecutive entries of a row). Shrinking by t, ``(1 - t / ||block||)_+ block``, is the
proximal step of ``t ||block||``. Capping at t projects a block on the ball of radius t: it is what
shrinking takes away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raysel.core.arrays import FloatArray, IntArray


def hinge_loss(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """Hinge loss of each problem, ``sum_i (1 - y_i m_i)_+``. `margins` and `signs` are (c, n);
    returns (c,).
    """
    losses = 1.0 - signs * margins
    return np.maximum(losses, 0.0, out=losses).sum(axis=1)


def hinge_step(margins: FloatArray, signs: FloatArray, step: float, out: FloatArray) -> FloatArray:
    """Proximal point of ``step`` times the loss: a violated margin moves towards 1 by at most
    ``step``.

    `margins`, `signs` and `out` are (c, n); returns (c, n).
    """
    np.multiply(signs, margins, out=out)
    np.subtract(1.0, out, out=out)
    np.clip(out, 0.0, step, out=out)
    out *= signs
    out += margins
    return out


def best_bias(margins: FloatArray, signs: FloatArray) -> FloatArray:
    """Bias b that minimises the loss of each problem at margins + b.

    The loss is piecewise linear in b. It has one breakpoint a sample, y_i - m_i; its slope begins
    at minus the number p of positive samples and grows by 1 at each breakpoint. Every b between the
    p-th and the next is best.

    `margins` and `signs` are (c, n); returns (c,).
    """
    n = margins.shape[1]
    positives = np.count_nonzero(signs > 0, axis=1)
    breakpoints = np.sort(signs - margins, axis=1)
    # Without positives (or negatives) every b far enough on one side is best; both are then the
    # nearest of them.
    below, above = np.maximum(positives - 1, 0), np.minimum(positives, n - 1)
    problems = np.arange(len(breakpoints))
    return 0.5 * (breakpoints[problems, below] + breakpoints[problems, above])


def balanced(alpha: FloatArray, signs: FloatArray) -> FloatArray:
    """Dual variables made feasible for a free bias: in [0, 1], with ``sum_i alpha_i y_i = 0``.

    Those of the positive and those of the negative samples are scaled to a common sum, which is the
    mean of both sums where the bounds allow it.

    `alpha` and `signs` are (c, n); returns (c, n).
    """
    alpha = np.clip(alpha, 0.0, 1.0)
    sides = (signs > 0, signs <= 0)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    # The smaller side goes up as far as the bounds let it, and the other comes down to meet it.
    middle = 0.5 * (sums[0] + sums[1])
    for side, total in zip(sides, sums, strict=True):
        growth = np.divide(
            middle, total, out=np.ones_like(total), where=(total > 0) & (total < middle)
        )
        alpha *= np.where(side, growth, 1.0)
    np.minimum(alpha, 1.0, out=alpha)
    sums = [np.where(side, alpha, 0.0).sum(axis=1, keepdims=True) for side in sides]
    for side, total in zip(sides, sums, strict=True):
        share = np.divide(np.minimum(*sums), total, out=np.zeros_like(total), where=total > 0)
        alpha *= np.where(side, share, 1.0)
    return alpha


@dataclass(frozen=True)
class BlockNorm(ABC):
    """The penalty ``sum_b weight_b ||block_b||`` on a coefficient matrix W of shape (n_classes,
    n_features).
    """

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
        """Norm of each block over its weight; U is in the penalty's dual ball where none exceeds
        1.
        """
        return self.norms(U) / self.weights

    def shrink(self, W: FloatArray, step: float, out: FloatArray) -> FloatArray:
        """Proximal point of ``step`` times the penalty: ``argmin_Z step value(Z) + ||Z - W||^2 /
        2``.

        `W` and `out` are (n_classes, n_features); returns (n_classes, n_features).
        """
        norms = self.norms(W)
        kept = np.divide(step * self.weights, norms, out=np.ones_like(norms), where=norms > 0)
        np.subtract(1.0, kept, out=kept)
        return np.multiply(W, self.spread(np.maximum(kept, 0.0, out=kept)), out=out)

    def cap(self, U: FloatArray) -> FloatArray:
        """Projection of U on the penalty's dual ball, where each block's norm is at most its
        weight.
        """
        return U * self.spread(1.0 / np.maximum(self.ratios(U), 1.0))


@dataclass(frozen=True)
class FeatureNorm(BlockNorm):
    """The penalty ``sum_r weight_r ||W[:, r]||``, which keeps or drops a feature for all classes
    together.
    """

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
    """The penalty ``sum_jk weight_k ||W[j, modality k]||``, which keeps or drops a modality for
    each class.
    """

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
        return ((np.full_like(columns, j), columns) for j in range(shape[0]) for columns in parts)

    def spread(self, factors: FloatArray) -> FloatArray:
        """Repeat each modality's factor over its columns, shape (n_classes, n_features)."""
        return np.repeat(factors, self.widths, axis=1)
