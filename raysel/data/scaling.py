"""Scalers by name, fitted on a training set only."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray, column_blocks
from raysel.data.layouts import Layout, Modalities, Tasks, Tensor
from raysel.data.modality_scaler import ModalityScaler
from raysel.data.task_blocks import Samples, as_samples
from raysel.data.task_scaler import TaskScaler
from raysel.errors import ConfigError


class UnitScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale all features by one offset and one range, so that the training set lies in [0, 1].

    The transform is ``(X - offset_) / range_``. It preserves the ratios of the features' variances, e.g. of the
    pixels of an image.
    """

    fitted_shapes: ClassVar[dict[str, str]] = {"offset_": "scalar", "range_": "scalar"}

    offset_: float
    range_: float

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute the offset and the range of a training set."""
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        self.offset_ = float(values.min())
        self.range_ = float(values.max()) - self.offset_ or 1.0
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale samples by the training set's range; new samples may lie outside [0, 1]."""
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = values - self.offset_
        scaled /= self.range_
        return scaled


def default_scaling(layout: Layout) -> str:
    """Return the name of the scaling that fits a layout: "unit" only where all features have the same unit."""
    if isinstance(layout, Modalities):
        return "zscore_sqrt_width"
    if isinstance(layout, Tasks):
        return "zscore" if any(isinstance(shape, int) for shape in layout.tasks.values()) else "unit"
    return "zscore" if isinstance(layout, Tensor) and sum(side > 1 for side in layout.shape) <= 1 else "unit"


def make_scaler(name: str, layout: Layout | None = None) -> TransformerMixin:
    """Make an unfitted scaler by name."""
    match name:
        case "unit" | "zscore" | "none" if isinstance(layout, Tasks):
            return TaskScaler(dict(layout.tasks), method=name)
        case "unit":
            return UnitScaler()
        case "zscore":
            return StandardScaler()
        case "none":
            return FunctionTransformer(feature_names_out="one-to-one")
        case "zscore_sqrt_width" | "minmax" | "row_unit" if isinstance(layout, Tasks):
            raise ConfigError(f"scaling {name!r} does not support several tasks; give unit, zscore or none.")
        case "zscore_sqrt_width" | "minmax" | "row_unit":
            return ModalityScaler(layout.modalities if isinstance(layout, Modalities) else None, method=name)
        case _:
            raise ConfigError(
                f"scaling {name!r} is unknown; give unit, zscore, none, zscore_sqrt_width, minmax or row_unit."
            )


def scale_training(scaler: TransformerMixin, X: Samples) -> Any:
    """Fit a scaler to a training set and scale it, in place and by blocks of columns where X is an array.

    The result and the fitted attributes are those of ``fit_transform`` to the last bit.
    """
    if type(scaler) is not StandardScaler or not isinstance(X, np.ndarray) or not X.shape[1]:
        return scale_in_place(scaler.fit(X), X)
    fitted = [clone(scaler).fit(block) for block in column_blocks(X)]
    scaler.n_features_in_, scaler.n_samples_seen_ = X.shape[1], fitted[0].n_samples_seen_
    for name in ("mean_", "var_", "scale_"):
        setattr(scaler, name, np.concatenate([getattr(part, name) for part in fitted]))
    return scale_in_place(scaler, X)


def scale_in_place(scaler: TransformerMixin, X: Samples) -> Any:
    """Return samples scaled as ``transform`` scales them, which overwrites an array for the usual scalers."""
    if isinstance(X, np.ndarray) and X.flags.writeable and X.dtype == np.float64 and len(X):
        if type(scaler) is StandardScaler:
            X -= scaler.mean_
            X /= scaler.scale_
            return X
        if isinstance(scaler, UnitScaler) or (isinstance(scaler, ModalityScaler) and scaler.method != "row_unit"):
            X -= scaler.offset_
            X /= scaler.range_ if isinstance(scaler, UnitScaler) else scaler.scale_
            return X
    return as_samples(scaler.transform(X))
