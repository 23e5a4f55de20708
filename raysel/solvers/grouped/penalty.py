"""The sparse group penalty: its proximal step, and its dual norm.

Of weights W (n_columns, k), columns in groups of consecutive ones,

    penalty(W) = share sum_j ||w_j|| + (1 - share) sum_g weight_g ||W_g||_F

Its proximal step shrinks the rows, then the groups (Simon, Friedman, Hastie, Tibshirani, Journal of
Computational and Graphical Statistics 22(2), 2013). Its dual norm is the largest over the groups of
the t at which ``||(u - share t)_+|| = (1 - share) weight_g t`` for the norms u of the rows (Ndiaye,
Fercoq, Gramfort, Salmon, NeurIPS 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics.block_norms import shrink_factors

#: Most steps of Newton's method, and the relative change that ends it; what is added for rounding.
_STEPS, _CHANGE, _ROUNDING = 100, 1e-14, 1e-12


@dataclass(frozen=True)
class SparseGroupPenalty:
    """The penalty of columns in groups."""

    #: Number of columns of each group, in their order; shape (n_groups,).
    sizes: IntArray
    #: Positive weight of each group; shape (n_groups,).
    weights: FloatArray
    share: float

    @cached_property
    def starts(self) -> IntArray:
        """First column of each group, shape (n_groups,)."""
        return np.cumsum(self.sizes) - self.sizes

    def within(self, groups: IntArray) -> SparseGroupPenalty:
        """Return the penalty of some groups."""
        return replace(self, sizes=self.sizes[groups], weights=self.weights[groups])

    def columns(self, groups: IntArray) -> IntArray:
        """Return the columns of some groups, in their order."""
        sizes = self.sizes[groups]
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(self.starts[groups], sizes) + offsets

    def group_norms(self, W: FloatArray) -> FloatArray:
        """Frobenius norm of the weights of each group, shape (n_groups,)."""
        return np.sqrt(np.add.reduceat(np.einsum("jk,jk->j", W, W), self.starts))

    def value(self, W: FloatArray) -> float:
        """Return the penalty of W."""
        rows = np.linalg.norm(W, axis=1).sum()
        groups = (self.weights * self.group_norms(W)).sum()
        return float(self.share * rows + (1.0 - self.share) * groups)

    def shrink(self, W: FloatArray, step: float) -> FloatArray:
        """Return the proximal point: ``argmin_Z step penalty(Z) + ||Z - W||^2 / 2``."""
        rows = shrink_factors(np.linalg.norm(W, axis=1), np.array(step * self.share))
        shrunk = W * rows[:, None]
        groups = shrink_factors(self.group_norms(shrunk), step * (1.0 - self.share) * self.weights)
        shrunk *= np.repeat(groups, self.sizes)[:, None]
        return shrunk

    def dual_norms(self, C: FloatArray) -> FloatArray:
        """Dual norm of each group, shape (n_groups,), by Newton's method from below."""
        u = np.linalg.norm(C, axis=1)
        slopes = (1.0 - self.share) * self.weights
        t = np.zeros(len(self.sizes))
        for _ in range(_STEPS):
            above = np.maximum(u - self.share * np.repeat(t, self.sizes), 0.0)
            lengths = np.sqrt(np.add.reduceat(above * above, self.starts))
            falls = self.share * np.add.reduceat(above, self.starts)
            values = lengths - slopes * t
            steep = falls + slopes * lengths
            steps = np.divide(
                values * lengths, steep, out=np.zeros_like(t), where=(values > 0.0) & (steep > 0.0)
            )
            t += steps
            if (steps <= _CHANGE * t).all():
                break
        return t * (1.0 + _ROUNDING)
