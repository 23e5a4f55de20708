"""A training set, prepared and scaled by itself, and other samples prepared and scaled by its
statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin

from raysel.core.arrays import BoolArray, LabelArray
from raysel.data.preparation.outputs import Outputs
from raysel.data.preparation.preparation import Preparation
from raysel.data.scaling import scale_in_place, scale_training
from raysel.data.task_blocks import Samples, constant_features


@dataclass(frozen=True)
class TrainingSet:
    """Training samples with the preparation and the scaler that are fitted to them."""

    #: Prepared and scaled training samples; shape (n_train, n_columns).
    X: Any
    #: Mask of the columns that are constant in the unscaled training samples; shape (n_columns,).
    constant: BoolArray
    scaler: TransformerMixin
    preparation: Preparation | None = None

    @classmethod
    def of(
        cls,
        samples: Samples,
        y: LabelArray,
        scaler: TransformerMixin,
        preparation: Preparation | None = None,
    ) -> Self:
        """Fit an unfitted preparation and scaler to training samples, an array of which is
        overwritten.

        `samples` is (n_train, d), `y` (n_train,) or (n_train, n_labels).
        """
        if preparation is not None:
            samples = preparation.fit_transform(samples, y)
            set_parameters(scaler, preparation.parameters)
        constant = constant_features(samples)
        return cls(scale_training(scaler, samples), constant, scaler, preparation)

    def transform(self, samples: Samples) -> Any:
        """Prepare and scale other samples, (n_samples, d), of which an array is overwritten."""
        return scale_in_place(self.scaler, self.prepared(samples)) if len(samples) else samples

    def prepared(self, samples: Samples) -> Any:
        """Prepare other samples without scaling them."""
        return samples if self.preparation is None else self.preparation.transform(samples)

    @property
    def outputs(self) -> Outputs | None:
        """Columns of each feature; None where each feature is one column."""
        return None if self.preparation is None else self.preparation.outputs

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of estimators that hold the arrangement of the prepared columns, if it has
        changed.
        """
        return {} if self.preparation is None else self.preparation.parameters


def set_parameters(estimator: Any, parameters: Mapping[str, Any]) -> None:
    """Set those of some parameters that an estimator has."""
    if parameters and isinstance(estimator, BaseEstimator):
        known = estimator.get_params()
        estimator.set_params(**{name: value for name, value in parameters.items() if name in known})
