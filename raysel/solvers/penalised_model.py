"""What linear models of a loss and a penalty share: alpha, the zero solution, and the targets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from raysel.base.classifiers import OneAgainstRest, Selector, SignedTarget, signed_target
from raysel.base.estimator import POSITIVE, IterativeEstimator
from raysel.base.regressors import LinearRegressor
from raysel.core.arrays import FloatArray, LabelArray, StrOptions
from raysel.numerics.least_squares import QuantityScale, standardised
from raysel.numerics.optimality import relative_gap
from raysel.solvers.losses import LogisticLoss, Loss, SquaredLoss


class Bounded(NamedTuple):
    """Weights after some steps, and a lower bound of the optimum."""

    #: Weights in the form of the problem, and intercepts for centred samples; b is (k,).
    W: FloatArray
    b: FloatArray
    J: float
    lower: float

    @property
    def gap(self) -> float:
        """Upper bound of how far J is above the optimum, relative to it."""
        return relative_gap(self.J, self.lower)


@dataclass(frozen=True, kw_only=True)
class PreparedLinear:
    """A training set, centred and scaled."""

    #: What the columns of the targets stand for.
    target: SignedTarget | QuantityScale
    loss: Loss
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    #: What the centred features are divided by.
    scale: float


class PenalisedModel(IterativeEstimator, Selector):
    """Strength of the penalty and iterations, whatever the penalty and the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [POSITIVE],
        "alpha_scale": [StrOptions({"max", "absolute"})],
    }

    simpler_first = ("-alpha",)

    # Set by the constructors of the subclasses.
    alpha: float
    alpha_scale: Literal["max", "absolute"]
    # Of the base class that says what the targets are.
    _target_loss: Callable[[LabelArray], tuple[Any, Any]]
    _keep_columns: Callable[..., None]

    @abstractmethod
    def _largest_alpha(self, prepared: Any) -> float:
        """Return alpha_max for the features as given, from which on the solution is zero."""

    @abstractmethod
    def _zero_weights(self, prepared: Any) -> FloatArray:
        """Return W = 0."""

    @abstractmethod
    def _minimise(self, prepared: Any, alpha: float) -> Iterator[Bounded]:
        """Yield weights of the scaled features, for an alpha of the features as given."""

    @abstractmethod
    def _keep(self, W: FloatArray, b: FloatArray, prepared: Any) -> None:
        """Set the fitted attributes to these weights of the scaled features."""

    def is_zero_solution(self, prepared: Any) -> bool:
        """Return whether alpha is at least alpha_max, or no feature tells anything."""
        largest = self._largest_alpha(prepared)
        return largest == 0.0 or self._absolute_alpha(largest) >= largest

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: Any) -> None:
        """Set the fitted attributes to W = 0 and the best intercepts."""
        losses, b = prepared.loss.values(np.zeros_like(prepared.loss.Y))
        self._keep(self._zero_weights(prepared), b, prepared)
        self.objective_path_ = np.array([losses.sum()])
        self.n_iter_, self.converged_, self.dual_gap_ = 1, True, 0.0

    def _absolute_alpha(self, largest: float) -> float:
        """Return alpha for the features as given."""
        if self.alpha_scale == "absolute":
            return self.alpha
        return self.alpha * largest

    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        alpha = self._absolute_alpha(self._largest_alpha(prepared))
        for step in self._minimise(prepared, alpha):
            self.dual_gap_ = step.gap
            self._keep(step.W, step.b, prepared)
            yield step.J


class LogisticTargets(OneAgainstRest):
    """Logistic regressions of each class against the rest, or of each label."""

    def _target_loss(self, y: LabelArray) -> tuple[SignedTarget, Loss]:
        """Return what the columns of the targets stand for, and their loss."""
        target = signed_target(y)
        return target, LogisticLoss(np.ascontiguousarray(target.signs.T))

    def _keep_columns(self, coef: FloatArray, intercept: FloatArray, target: SignedTarget) -> None:
        self._keep_target(target)
        self.coef_, self.intercept_ = coef, intercept


class QuantityTargets(LinearRegressor):
    """Least squares of each standardised quantity."""

    def _target_loss(self, y: LabelArray) -> tuple[QuantityScale, Loss]:
        """Return what the columns of the targets stand for, and their loss."""
        scale, Y = standardised(y)
        return scale, SquaredLoss(Y)

    def _keep_columns(self, coef: FloatArray, intercept: FloatArray, scale: QuantityScale) -> None:
        self._keep_linear(coef, intercept, scale)
