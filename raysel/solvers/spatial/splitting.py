"""Linear models whose weights are sparse and alike in neighbouring cells, solved by splitting.

Of samples X (n x d), centred, weights W of k targets and their differences D W between neighbours

    J(W, b) = loss(X W + b)  +  l1 ||W||_1  +  penalty(D W)

is minimised by the alternating direction method of multipliers (ADMM; Boyd et al., Foundations and
Trends in Machine Learning 3(1), 2011, section 3) with copies of X W + b, W and D W, on each of
which one term acts. The weights that fit all copies solve

    (rho X'X + tau (I + D'D)) W = right side.

The cosine transform makes I + D'D diagonal for an array of cells, and the singular vectors of the X
that it and the roots of I + D'D transform make the whole system diagonal, whatever rho and tau: one
decomposition serves all configurations. Cells of the array that are no features have neither
samples nor penalties.

The multipliers theta and V of the copies of X W + b and D W, scaled by s <= 1 so that all entries
of ``X'theta - D'V`` are within l1, are a dual point: no J is below ``bound(s theta) - penalty*(s
V)``. Before, V takes some steps ``V + D (I + D'D)^-1 r`` with the part r of the entries beyond l1,
by which s is nearer to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.solvers.losses import SeparableLoss
from raysel.solvers.penalised_model import Bounded
from raysel.solvers.spatial.grid import Grid
from raysel.solvers.spatial.penalties import DifferencePenalty

#: Steps of ADMM between two evaluations of objective and bound, and the over-relaxation of a step.
STEPS, _RELAXATION = 10, 1.8
#: First tau, as a share of the largest eigenvalue of rho X'X; and the most by which the balance of
#: residuals changes rho or tau at once.
_SHARE, _MOST = 1e-2, 10.0
#: Steps by which the multipliers of the differences approach what the bound asks for.
_REPAIRS = 10
#: Singular values below this share of the largest are of rounding.
_DEPENDENT = 1e-12


@dataclass(frozen=True, kw_only=True)
class GridSamples:
    """Centred samples of the cells of an array, and their singular value decomposition."""

    grid: Grid
    #: Samples, of the features alone; shape (n_samples, n_features).
    X: FloatArray
    #: Decomposition of the transformed samples; shapes (n_samples, p), (p,) and (n_cells, p).
    left: FloatArray
    values: FloatArray
    right: FloatArray

    @classmethod
    def decompose(cls, X: FloatArray, grid: Grid) -> GridSamples:
        """Decompose samples of the grid's features."""
        transformed = grid.transform(grid.spread(X)) / grid.roots
        flat = transformed.reshape(len(X), -1)
        left, values, right = np.linalg.svd(flat, full_matrices=False)
        kept = values > _DEPENDENT * values[0]
        return cls(
            grid=grid,
            X=X,
            left=np.ascontiguousarray(left[:, kept]),
            values=values[kept],
            right=np.ascontiguousarray(right[kept].T),
        )

    def solve(self, copies: Copies, ratio: float) -> Copies:
        """Fit weights to all copies, with the weight `ratio` on those of the fits; b is free."""
        grid = self.grid
        cells = copies.W + grid.adjoint(copies.V)
        coordinates = (grid.transform(cells) / grid.roots).reshape(len(cells), -1)
        plain = coordinates @ self.right
        fitted = plain + ratio * (copies.Z.T @ self.left) * self.values
        fitted /= 1.0 + ratio * self.values**2
        coordinates += (fitted - plain) @ self.right.T
        W = grid.inverse_transform(coordinates.reshape(cells.shape) / grid.roots)
        Z = self.left @ (fitted * self.values).T + copies.Z.mean(axis=0)
        return Copies(Z, W, grid.differences(W))


class Copies(NamedTuple):
    """Copies of the fits (n_samples, k), the weights (k, *sides), and their differences."""

    Z: FloatArray
    W: FloatArray
    V: FloatArray


@dataclass(frozen=True)
class Problem:
    """The terms of J."""

    samples: GridSamples
    loss: SeparableLoss
    l1: float
    penalty: DifferencePenalty

    def minimise(self) -> Iterator[Bounded]:
        """Yield the weights of the lowest J so far, (k, n_features), after every `STEPS` steps."""
        splitting = _Splitting(self)
        best = Bounded(np.empty(0), np.empty(0), np.inf, -np.inf)
        count = 0
        while True:
            moved = splitting.advance()
            count += 1
            W = splitting.copies.W[:, self.samples.grid.inside]
            J, b = self._objective(W)
            lower = max(best.lower, self._bound(*splitting.multipliers()))
            if not J >= best.J:  # NaN where the data overflow
                best = Bounded(W, b, J, lower)
            best = best._replace(lower=lower)
            yield best
            if count & (count - 1) == 0:  # ever more rarely, so that it converges
                splitting.adjust(moved)

    def _objective(self, W: FloatArray) -> tuple[float, FloatArray]:
        """Return J for the best intercepts, and these."""
        grid = self.samples.grid
        losses, b = self.loss.values(self.samples.X @ W.T)
        between = grid.differences(grid.spread(W)) * grid.pairs
        values = losses + self.l1 * np.abs(W).sum(axis=1) + self.penalty.values(between)
        return float(values.sum()), b

    def _bound(self, theta: FloatArray, V: FloatArray) -> float:
        """Return the lower bound of J from multipliers of the fits and of the differences."""
        grid = self.samples.grid
        theta = self.loss.balance(theta)
        of_samples = grid.spread(theta.T @ self.samples.X)
        for _ in range(_REPAIRS):
            slopes = (of_samples - grid.adjoint(V)) * grid.inside
            beyond = slopes - np.clip(slopes, -self.l1, self.l1)
            step = grid.differences(grid.smooth(beyond)) * grid.pairs
            V = self.penalty.nearest(V + step)
        slopes = (of_samples - grid.adjoint(V))[:, grid.inside]
        largest = np.abs(slopes).max(axis=1)
        s = self.l1 / np.maximum(largest, self.l1)
        bounds = self.loss.bounds(s * theta) - s**2 * self.penalty.conjugates(V)
        return float(bounds.sum())


class _Splitting:
    """State of ADMM: the copies and their scaled multipliers."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        samples, loss = problem.samples, problem.loss
        n, k = loss.Y.shape
        sides = samples.grid.inside.shape
        self.copies = Copies(
            np.zeros((n, k)), np.zeros((k, *sides)), np.zeros((len(sides), k, *sides))
        )
        self._scaled = self.copies
        self._rho = loss.curvature / n
        self._tau = _SHARE * self._rho * float(samples.values[0]) ** 2

    def multipliers(self) -> tuple[FloatArray, FloatArray]:
        """Return the multipliers of the fits, with the sign of theta, and of the differences."""
        pairs = self._problem.samples.grid.pairs
        return -self._rho * self._scaled.Z, self._tau * self._scaled.V * pairs

    def advance(self) -> _Residuals:
        """Take `STEPS` steps and return the residuals of the last."""
        for _ in range(STEPS):
            former = self.copies
            wanted = Copies(*(c - u for c, u in zip(former, self._scaled, strict=True)))
            fitted = self._problem.samples.solve(wanted, self._rho / self._tau)
            relaxed = [
                _RELAXATION * f + (1.0 - _RELAXATION) * c + u
                for f, c, u in zip(fitted, former, self._scaled, strict=True)
            ]
            self.copies = self._shrink(Copies(*relaxed))
            self._scaled = Copies(*(r - c for r, c in zip(relaxed, self.copies, strict=True)))
        return _Residuals(fitted, former, self.copies)

    def _shrink(self, points: Copies) -> Copies:
        """Let the loss and the penalties act on their copies."""
        problem = self._problem
        grid = problem.samples.grid
        Z = problem.loss.approach(points.Z, self._rho, self.copies.Z)
        threshold = problem.l1 / self._tau
        W = points.W - np.clip(points.W, -threshold, threshold)
        V = problem.penalty.shrink(points.V * grid.pairs, self._tau)
        return Copies(Z, np.where(grid.inside, W, points.W), np.where(grid.pairs, V, points.V))

    def adjust(self, residuals: _Residuals) -> None:
        """Change rho and tau so that copies and multipliers converge alike (ibid., 3.4.1)."""
        of_fits, of_cells = residuals.factors()
        self._rho *= of_fits
        self._tau *= of_cells
        scaled = self._scaled
        self._scaled = Copies(scaled.Z / of_fits, scaled.W / of_cells, scaled.V / of_cells)


class _Residuals(NamedTuple):
    """What a step of ADMM fitted, and the copies before and after it."""

    fitted: Copies
    former: Copies
    copies: Copies

    def factors(self) -> tuple[float, float]:
        """Return the factors by which rho and tau shall change."""
        apart = [_length(f - c) for f, c in zip(self.fitted, self.copies, strict=True)]
        moved = [_length(c - o) for c, o in zip(self.copies, self.former, strict=True)]
        of_cells = _factor(math.hypot(*apart[1:]), math.hypot(*moved[1:]))
        return _factor(apart[0], moved[0]), of_cells


def _length(values: FloatArray) -> float:
    return float(np.linalg.norm(values))


def _factor(apart: float, moved: float) -> float:
    """Square root of the quotient of two lengths, within bounds."""
    if apart == moved:
        return 1.0
    if apart >= _MOST**2 * moved:
        return _MOST
    return max(math.sqrt(apart / moved), 1.0 / _MOST)
