"""Scalings, fitted on a training set only: one range for all features, z-scores, or none."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray
from raysel.data.layouts import Layout, Modalities, Tasks
from raysel.data.modality_scaler import ModalityScaler
from raysel.data.task_scaler import TaskScaler
from raysel.errors import ConfigError


class UnitScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map the training set's overall range to [0, 1].

    All features share one offset and one range, ``(X - offset_) / range_``, so that the pixels of an
    image keep their variances relative to each other.

    Attributes
    ----------
    offset_ : float
        The smallest value of the training set.
    range_ : float
        Its largest value less the smallest; 1 where all values are equal.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had names

    Examples
    --------
    >>> UnitScaler().fit_transform([[0, 2], [4, 8]])
    array([[0.  , 0.25],
           [0.5 , 1.  ]])
    """

    offset_: float
    range_: float

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Take the range of the training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        self.offset_ = float(values.min())
        self.range_ = float(values.max()) - self.offset_ or 1.0
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Shift and divide by the training set's range; new samples may fall outside [0, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = values - self.offset_
        scaled /= self.range_
        return scaled


def make_scaler(name: str, layout: Layout | None = None) -> TransformerMixin:
    """Make the scaler that a study's ``dataset.scaling`` names, not fitted yet.

    Parameters
    ----------
    name : {"unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"}
        One range for all features, zero mean and unit variance for each, or the data as they are; the last
        three are those of `ModalityScaler`.
    layout : Layout, default=None
        Names the tasks or the modalities; without any, all features are one.

    Returns
    -------
    UnitScaler, StandardScaler, FunctionTransformer, ModalityScaler or TaskScaler

    Raises
    ------
    ConfigError
        If the name is none of these, or the scaling not for such data.

    Examples
    --------
    >>> make_scaler("zscore")
    StandardScaler()
    """
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
            raise ConfigError(f"scaling {name!r} knows no tasks; for several of them give unit, zscore or none.")
        case "zscore_sqrt_width" | "minmax" | "row_unit":
            return ModalityScaler(layout.modalities if isinstance(layout, Modalities) else None, method=name)
        case _:
            raise ConfigError(
                f"scaling {name!r} is unknown; give unit, zscore, none, zscore_sqrt_width, minmax or row_unit."
            )
