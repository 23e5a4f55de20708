"""What graph net and total variation share, and classes and quantities with them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.base.classifiers import TensorShaped
from raysel.base.estimator import TENSOR, VOLUME, Capabilities
from raysel.core.arrays import BoolArray, FloatArray, Interval, LabelArray
from raysel.data.layouts import Layout
from raysel.numerics.least_squares import centre_and_scale
from raysel.solvers.losses import SeparableLoss
from raysel.solvers.penalised_model import (
    Bounded,
    LogisticTargets,
    PenalisedModel,
    PreparedLinear,
    QuantityTargets,
)
from raysel.solvers.spatial.grid import Grid
from raysel.solvers.spatial.penalties import DifferencePenalty
from raysel.solvers.spatial.splitting import GridSamples, Problem


@dataclass(frozen=True, kw_only=True)
class PreparedGrid(PreparedLinear):
    """A training set, decomposed, with its zero solution."""

    loss: SeparableLoss
    #: Samples of the features that vary, centred and divided by ``scale``.
    samples: GridSamples
    #: Whether a feature varies; shape (n_features,).
    varying: BoolArray
    #: Largest slope of the loss along a weight of the scaled features, at W = 0.
    largest_slope: float


class NeighbourModel(PenalisedModel, TensorShaped):
    """Parameters and iterations of both penalties, whatever the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
    }

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
        target, loss = self._target_loss(y)
        centred, X_mean, constant, scale = centre_and_scale(X)
        sides = self._sides(X.shape[1])
        mask, inside = self._inside(), np.ones(sides, dtype=bool)
        if mask is not None:
            inside = mask.reshape(sides).copy()
        inside[inside] = ~constant
        samples = GridSamples.decompose(centred[:, ~constant], Grid(inside))
        start = np.zeros_like(loss.Y)
        slopes = samples.X.T @ loss.gradient(start + loss.values(start)[1])
        return PreparedGrid(
            target=target,
            loss=loss,
            samples=samples,
            varying=~constant,
            X_mean=X_mean,
            scale=scale,
            largest_slope=float(np.abs(slopes).max(initial=0.0)),
        )

    def _largest_alpha(self, prepared: PreparedGrid) -> float:
        return prepared.largest_slope * prepared.scale / self.l1_ratio

    def _zero_weights(self, prepared: PreparedGrid) -> FloatArray:
        n_varying = int(np.count_nonzero(prepared.varying))
        return np.zeros((prepared.loss.Y.shape[1], n_varying))

    def _minimise(self, prepared: PreparedGrid, alpha: float) -> Iterator[Bounded]:
        scale = prepared.scale
        return Problem(
            prepared.samples,
            prepared.loss,
            l1=alpha * self.l1_ratio / scale,
            penalty=self._penalty(alpha * (1.0 - self.l1_ratio), scale),
        ).minimise()

    def _keep(self, W: FloatArray, b: FloatArray, prepared: PreparedGrid) -> None:
        """Set the fitted attributes to these weights of the scaled features that vary."""
        coef = np.zeros((len(W), len(prepared.varying)))
        coef[:, prepared.varying] = W / prepared.scale
        self.scores_ = np.linalg.norm(coef, axis=0)
        self._keep_columns(coef, b - coef @ prepared.X_mean, prepared.target)


class NeighbourClassifier(NeighbourModel, LogisticTargets):
    """Logistic regressions of each class against the rest."""

    capabilities: ClassVar[Capabilities] = replace(
        LogisticTargets.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the classes"


class NeighbourRegressor(NeighbourModel, QuantityTargets):
    """Least squares of each standardised quantity."""

    capabilities: ClassVar[Capabilities] = replace(
        QuantityTargets.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the quantities"
