"""Losses of linear models with an intercept, and what a dual point proves of them.

Of k targets the fits Z are (n_samples, k). Each loss is a mean over the samples. A dual point theta
bounds the loss from below:

    loss(Z + b) >= bound(theta) - <theta, Z>   for all Z and b, if sum_i theta_i = 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, logit, logsumexp, softmax

from raysel.core.arrays import FloatArray

#: Largest number of steps of a Newton method with bisection, and the change that ends it.
_STEPS, _CHANGE = 100, 1e-13
#: Damping of Newton's method for several intercepts, as a share of the largest slope.
_DAMPING = 0.1


@dataclass(frozen=True)
class Loss(ABC):
    """A loss of targets."""

    #: Targets; shape (n_samples, k).
    Y: FloatArray

    #: Largest second derivative of a sample's loss.
    curvature = 1.0

    @abstractmethod
    def values(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss of the fits with the best intercepts, and these; shapes (k,)."""

    @abstractmethod
    def gradient(self, Z: FloatArray) -> FloatArray:
        """Gradient by the fits, for the intercepts that they include."""

    @abstractmethod
    def balance(self, theta: FloatArray) -> FloatArray:
        """Change a dual point so that its columns sum to 0."""

    @abstractmethod
    def bounds(self, theta: FloatArray) -> FloatArray:
        """Return what a dual point proves; shape (k,)."""


class SeparableLoss(Loss):
    """A loss that is separate for each target and each sample, as splitting needs it."""

    @abstractmethod
    def approach(self, Z: FloatArray, strength: float, start: FloatArray) -> FloatArray:
        """Minimise the loss plus ``strength / 2 ||. - Z||^2``, iteratively from a start."""


class SquaredLoss(SeparableLoss):
    """Half of the mean square of the residuals, of centred targets and fits."""

    def values(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss and intercepts of 0."""
        return ((self.Y - Z) ** 2).mean(axis=0) / 2, np.zeros(Z.shape[1])

    def approach(self, Z: FloatArray, strength: float, start: FloatArray) -> FloatArray:
        """Return a weighted mean of fits and targets."""
        n_strength = len(Z) * strength
        return (self.Y + n_strength * Z) / (1.0 + n_strength)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Residuals, divided by the number of samples."""
        return (Z - self.Y) / len(Z)

    def balance(self, theta: FloatArray) -> FloatArray:
        """Subtract the means."""
        return theta - theta.mean(axis=0)

    def bounds(self, theta: FloatArray) -> FloatArray:
        """Return ``<theta, y> - n / 2 ||theta||^2``."""
        return (theta * self.Y).sum(axis=0) - len(theta) / 2 * (theta**2).sum(axis=0)


class LogisticLoss(SeparableLoss):
    """Mean of ``log(1 + exp(-y z))`` for targets y of 1 and -1, both of which each column has."""

    curvature = 0.25

    def values(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss and the best intercepts, by Newton's method."""
        share = logit((self.Y > 0).mean(axis=0))
        low, high = share - Z.max(axis=0), share - Z.min(axis=0)

        def slope(b: FloatArray) -> tuple[FloatArray, FloatArray]:
            q = expit(-self.Y * (Z + b))
            return -(self.Y * q).sum(axis=0), (q * (1.0 - q)).sum(axis=0)

        b = _root(slope, (low + high) / 2, low, high)
        return np.logaddexp(0.0, -self.Y * (Z + b)).mean(axis=0), b

    def approach(self, Z: FloatArray, strength: float, start: FloatArray) -> FloatArray:
        """Solve one equation a sample by Newton's method."""
        n_strength = len(Z) * strength
        low = self.Y * Z

        def slope(margins: FloatArray) -> tuple[FloatArray, FloatArray]:
            q = expit(-margins)
            return n_strength * (margins - low) - q, n_strength + q * (1.0 - q)

        return self.Y * _root(slope, self.Y * start, low, low + 1.0 / n_strength)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Probabilities of the other class with the sign of it, divided by the samples' number."""
        return -self.Y * expit(-self.Y * Z) / len(Z)

    def balance(self, theta: FloatArray) -> FloatArray:
        """Scale down the class of the larger sum."""
        of_first = self.Y > 0
        above = np.where(of_first, theta, 0.0).sum(axis=0)
        below = -np.where(of_first, 0.0, theta).sum(axis=0)
        least = np.minimum(above, below)
        tiny = np.finfo(float).tiny
        factors = np.where(
            of_first, least / np.maximum(above, tiny), least / np.maximum(below, tiny)
        )
        return theta * factors

    def bounds(self, theta: FloatArray) -> FloatArray:
        """Return the mean entropy of ``n y theta``."""
        q = np.clip(len(theta) * self.Y * theta, 0.0, 1.0)
        return (entr(q) + entr(1.0 - q)).mean(axis=0)


class MultinomialLoss(Loss):
    """Mean of the negative log-likelihood of classes, whose scores are a softmax of the fits.

    Targets are 1 for the class of a sample and 0 elsewhere. The targets share one loss, which
    stands in the first column.
    """

    curvature = 0.5

    def values(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss and the best intercepts, of sum 0, by Newton's method."""
        shares = self.Y.mean(axis=0)
        b = np.log(shares) - np.log(shares).mean()
        loss = self._mean(Z + b)
        for _ in range(_STEPS):
            step, slope = self._intercept_step(Z + b, shares)
            if slope <= _CHANGE:
                break
            length, most = 1.0, loss + _CHANGE * (1.0 + loss)  # a rise by rounding is none
            while (moved := self._mean(Z + b - length * step)) > most and length > _CHANGE:
                length /= 2
            b, loss = b - length * step, moved
        return np.append(loss, np.zeros(len(b) - 1)), b

    @staticmethod
    def _intercept_step(Z: FloatArray, shares: FloatArray) -> tuple[FloatArray, float]:
        """Newton's step, damped by the largest slope, and this slope."""
        P = softmax(Z, axis=1)
        slopes = P.mean(axis=0) - shares
        largest = float(np.abs(slopes).max())
        hessian = np.diag(P.mean(axis=0) + _DAMPING * largest + _CHANGE) - P.T @ P / len(P)
        hessian += 1.0 / len(shares)  # it is 0 along equal changes of all intercepts
        return np.linalg.solve(hessian, slopes), largest

    def _mean(self, Z: FloatArray) -> float:
        return float((logsumexp(Z, axis=1) - (self.Y * Z).sum(axis=1)).mean())

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Probabilities less targets, divided by the number of samples."""
        return (softmax(Z, axis=1) - self.Y) / len(Z)

    def balance(self, theta: FloatArray) -> FloatArray:
        """Return it as it is: its sums are 0 but for rounding, as the intercepts are the best."""
        return theta

    def bounds(self, theta: FloatArray) -> FloatArray:
        """Return the mean entropy of the probabilities ``Y - n theta``."""
        P = np.clip(self.Y - len(theta) * theta, 0.0, 1.0)
        bound = entr(P).sum(axis=1).mean()
        return np.append(bound, np.zeros(P.shape[1] - 1))


def _root(
    slope: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Find the roots of increasing functions between bounds, from their values and slopes.

    A step of Newton's method that leaves the bounds, which each step narrows, is replaced by a
    bisection.
    """
    x = np.clip(start, low, high)
    for _ in range(_STEPS):
        value, rise = slope(x)
        low, high = np.where(value < 0.0, x, low), np.where(value > 0.0, x, high)
        step = x - value / np.maximum(rise, np.finfo(float).tiny)
        leaves = (step < low) | (step > high)
        step = np.where(leaves, (low + high) / 2, step)
        change = np.abs(step - x)
        x = step
        if (change <= _CHANGE * (1.0 + np.abs(x))).all():
            break
    return x
