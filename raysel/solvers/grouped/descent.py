"""Proximal gradient descent with momentum on a growing set of groups.

Of centred samples X (n, n_columns), weights W of k targets and a loss that is a mean over samples

    J(W, b) = loss(X W + b)  +  alpha penalty(W)

is minimised over a working set of groups, outside of which W = 0, by accelerated proximal gradient
steps with restarts (Beck and Teboulle, SIAM Journal on Imaging Sciences 2(1), 2009; O'Donoghue and
Candes, Foundations of Computational Mathematics 15(3), 2015). The gradient of the loss by the fits,
scaled by s <= 1 into the dual ball of the penalty, is a dual point that bounds J from below over
all groups. Groups of the largest dual norm enter the working set (Massias, Gramfort, Salmon, ICML
2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from raysel.core.arrays import FloatArray, IntArray
from raysel.solvers.grouped.penalty import SparseGroupPenalty
from raysel.solvers.losses import Loss
from raysel.solvers.penalised_model import Bounded

#: Steps between two evaluations; the smallest working set; the share of the gap of all groups to
#: which that of the working set falls before others may enter.
STEPS, _SMALLEST, _SHARE = 10, 10, 0.3


@dataclass(frozen=True)
class Problem:
    """The terms of J, or their part on a working set."""

    X: FloatArray
    loss: Loss
    penalty: SparseGroupPenalty
    alpha: float

    def minimise(self) -> Iterator[Bounded]:
        """Yield the weights, (n_columns, k), after every `STEPS` steps."""
        n_columns, k = self.X.shape[1], self.loss.Y.shape[1]
        best = self._bounded(np.zeros((n_columns, k)), -np.inf)
        groups = self._most_violating(best, np.empty(0, dtype=np.int64))
        while True:
            columns = self.penalty.columns(groups)
            part = Problem(
                np.asfortranarray(self.X[:, columns]),
                self.loss,
                self.penalty.within(groups),
                self.alpha,
            )
            aim = _SHARE * (best.J - best.lower)
            for inner in part.descend(best.W[columns]):
                W = np.zeros((n_columns, k))
                W[columns] = inner.W
                if inner.J - inner.lower <= aim:
                    break
                yield Bounded(W, inner.b, inner.J, best.lower)
            best = self._bounded(W, best.lower)
            yield best
            groups = self._most_violating(best, np.flatnonzero(self.penalty.group_norms(W)))

    def descend(self, W: FloatArray) -> Iterator[Bounded]:
        """Yield the weights of all columns of this problem after every `STEPS` steps."""
        n = len(self.X)
        curvature = self.loss.curvature
        length = n / (curvature * max(_largest_eigenvalue(self.X), np.finfo(float).tiny))
        b = self.loss.values(self.X @ W)[1]
        V, a, momentum, lower = W, b, 1.0, -np.inf
        while True:
            for _ in range(STEPS):
                gradient = self.loss.gradient(self.X @ V + a)
                moved = self.penalty.shrink(V - length * (self.X.T @ gradient), length * self.alpha)
                moved_b = a - gradient.sum(axis=0) / curvature
                if np.vdot(V - moved, moved - W) > 0.0:  # past the optimum along the momentum
                    momentum = 1.0
                ahead = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
                V = moved + (momentum - 1.0) / ahead * (moved - W)
                a = moved_b + (momentum - 1.0) / ahead * (moved_b - b)
                W, b, momentum = moved, moved_b, ahead
            bounded = self._bounded(W, lower)
            lower = bounded.lower
            yield bounded

    def _bounded(self, W: FloatArray, lower: float) -> Bounded:
        """Return weights with their best intercepts and the better of two lower bounds."""
        Z = self.X @ W
        losses, b = self.loss.values(Z)
        theta = self.loss.balance(-self.loss.gradient(Z + b))
        largest = self.penalty.dual_norms(self.X.T @ theta).max(initial=0.0)
        s = self.alpha / max(largest, self.alpha)
        J = float(losses.sum()) + self.alpha * self.penalty.value(W)
        return Bounded(W, b, J, max(lower, float(self.loss.bounds(s * theta).sum())))

    def _most_violating(self, at: Bounded, kept: IntArray) -> IntArray:
        """Return the groups kept and as many others, of the largest dual norm of the gradient."""
        theta = self.loss.gradient(self.X @ at.W + at.b)
        norms = self.penalty.dual_norms(self.X.T @ theta)
        norms[kept] = np.inf
        size = min(max(2 * len(kept), _SMALLEST), len(norms))
        return np.sort(np.argpartition(-norms, size - 1)[:size])


def _largest_eigenvalue(X: FloatArray) -> float:
    """Largest eigenvalue of ``X'X``."""
    gram = X @ X.T if X.shape[0] < X.shape[1] else X.T @ X
    last = len(gram) - 1
    return float(scipy.linalg.eigvalsh(gram, subset_by_index=(last, last))[0])
