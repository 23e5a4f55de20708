"""What graph net and total variation share, and classes and quantities with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.base.classifiers import (
    OneAgainstRest,
    Selector,
    SignedTarget,
    TensorShaped,
    signed_target,
)
from raysel.base.estimator import (
    POSITIVE,
    TENSOR,
    VOLUME,
    Capabilities,
    IterativeEstimator,
)
from raysel.base.regressors import LinearRegressor
from raysel.core.arrays import BoolArray, FloatArray, Interval, LabelArray, StrOptions
from raysel.data.layouts import Layout
from raysel.numerics.least_squares import QuantityScale, centre_and_scale, standardised
from raysel.solvers.losses import LogisticLoss, SeparableLoss, SquaredLoss
from raysel.solvers.spatial.grid import Grid
from raysel.solvers.spatial.penalties import DifferencePenalty
from raysel.solvers.spatial.splitting import GridSamples, Problem


@dataclass(frozen=True, kw_only=True)
class PreparedGrid:
    """A training set, decomposed, with its zero solution."""

    #: What the columns of the targets stand for.
    target: SignedTarget | QuantityScale
    loss: SeparableLoss
    #: Samples of the features that vary, centred and divided by ``scale``.
    samples: GridSamples
    #: Whether a feature varies; shape (n_features,).
    varying: BoolArray
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    scale: float
    #: Largest slope of the loss along a weight of the scaled features, at W = 0.
    largest_slope: float


class NeighbourModel(IterativeEstimator, TensorShaped, Selector):
    """Parameters and iterations of both penalties, whatever the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [POSITIVE],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "alpha_scale": [StrOptions({"max", "absolute"})],
    }

    simpler_first = ("-alpha",)

    #: Makes the loss of targets.
    _loss: ClassVar[type[SeparableLoss]]
    # Of the base class that says what the targets are.
    _columns: Callable[[LabelArray], tuple[Any, FloatArray]]
    _keep_columns: Callable[..., None]

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        alpha: float = 0.1,
        l1_ratio: float = 0.5,
        alpha_scale: Literal["max", "absolute"] = "max",
        max_iter: int = 500,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
        mask: BoolArray | None = None,
    ) -> None:
        self.shape = shape
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.alpha_scale = alpha_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.mask = mask

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the share with which neighbours do not matter."""
        return {"l1_ratio": 1.0}

    @staticmethod
    @abstractmethod
    def _penalty(weight: float, scale: float) -> DifferencePenalty:
        """Return the penalty on differences of the weights of features divided by `scale`."""

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedGrid:
        """Centre, scale and decompose the features that vary, once for all parameters."""
        target, Y = self._columns(y)
        centred, X_mean, constant, scale = centre_and_scale(X)
        sides = self._sides(X.shape[1])
        mask, inside = self._inside(), np.ones(sides, dtype=bool)
        if mask is not None:
            inside = mask.reshape(sides).copy()
        inside[inside] = ~constant
        samples = GridSamples.decompose(centred[:, ~constant], Grid(inside))
        loss = self._loss(Y)
        intercepts = loss.values(np.zeros_like(Y))[1]
        slopes = samples.X.T @ loss.gradient(np.zeros_like(Y) + intercepts)
        return PreparedGrid(
            target=target,
            loss=loss,
            samples=samples,
            varying=~constant,
            X_mean=X_mean,
            scale=scale,
            largest_slope=float(np.abs(slopes).max(initial=0.0)),
        )

    def is_zero_solution(self, prepared: PreparedGrid) -> bool:
        """Return whether alpha is at least alpha_max, or no feature tells anything."""
        slope = prepared.largest_slope
        return (
            slope == 0.0 or self._absolute_alpha(prepared) * self.l1_ratio >= slope * prepared.scale
        )

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedGrid) -> None:
        """Set the fitted attributes to W = 0 and the best intercepts."""
        losses, b = prepared.loss.values(np.zeros_like(prepared.loss.Y))
        self._keep(np.zeros((len(b), np.count_nonzero(prepared.varying))), b, prepared)
        self.objective_path_ = np.array([losses.sum()])
        self.n_iter_, self.converged_, self.dual_gap_ = 1, True, 0.0

    def _absolute_alpha(self, prepared: PreparedGrid) -> float:
        """Return alpha for the features as given."""
        if self.alpha_scale == "absolute":
            return self.alpha
        return self.alpha * prepared.largest_slope * prepared.scale / self.l1_ratio

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedGrid) -> Iterator[float]:
        alpha, scale = self._absolute_alpha(prepared), prepared.scale
        problem = Problem(
            prepared.samples,
            prepared.loss,
            l1=alpha * self.l1_ratio / scale,
            penalty=self._penalty(alpha * (1.0 - self.l1_ratio), scale),
        )
        for step in problem.minimise():
            self.dual_gap_ = step.gap
            self._keep(step.W, step.b, prepared)
            yield step.J

    def _keep(self, W: FloatArray, b: FloatArray, prepared: PreparedGrid) -> None:
        """Set the fitted attributes to these weights of the scaled features that vary."""
        coef = np.zeros((len(W), len(prepared.varying)))
        coef[:, prepared.varying] = W / prepared.scale
        self.scores_ = np.linalg.norm(coef, axis=0)
        self._keep_columns(coef, b - coef @ prepared.X_mean, prepared.target)


class NeighbourClassifier(NeighbourModel, OneAgainstRest):
    """Logistic regressions of each class against the rest."""

    capabilities: ClassVar[Capabilities] = replace(
        OneAgainstRest.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the classes"
    _loss = LogisticLoss

    @staticmethod
    def _columns(y: LabelArray) -> tuple[SignedTarget, FloatArray]:
        target = signed_target(y)
        return target, np.ascontiguousarray(target.signs.T)

    def _keep_columns(self, coef: FloatArray, intercept: FloatArray, target: SignedTarget) -> None:
        self._keep_target(target)
        self.coef_, self.intercept_ = coef, intercept


class NeighbourRegressor(NeighbourModel, LinearRegressor):
    """Least squares of each standardised quantity."""

    capabilities: ClassVar[Capabilities] = replace(
        LinearRegressor.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the quantities"
    _loss = SquaredLoss

    @staticmethod
    def _columns(y: LabelArray) -> tuple[QuantityScale, FloatArray]:
        return standardised(y)

    def _keep_columns(self, coef: FloatArray, intercept: FloatArray, scale: QuantityScale) -> None:
        self._keep_linear(coef, intercept, scale)
