"""Transformers of the steps with a short name for which scikit-learn has none."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import BoolArray, FloatArray, LabelArray


class Log1p(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Logarithm of one more than each value."""

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the values of a training set."""
        self._checked(X, reset=True)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Compute the logarithms; NaN stays NaN."""
        check_is_fitted(self)
        return np.log1p(self._checked(X, reset=False))

    def _checked(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        values: FloatArray = validate_data(
            self, X, dtype=np.float64, reset=reset, ensure_all_finite="allow-nan"
        )
        if (values <= -1).any():
            raise ValueError(
                "Negative values in data: log1p takes values above -1, and one is"
                f" {np.nanmin(values):g}"
            )
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        return tags


class QuantileClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Values beyond two quantiles of the training samples, moved to these."""

    low_: FloatArray
    high_: FloatArray

    def __init__(self, quantiles: tuple[float, float] = (0.01, 0.99)) -> None:
        self.quantiles = quantiles

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute the quantiles of each column without NaN."""
        values: FloatArray = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        empty = np.isnan(values).all(axis=0)
        bounds = np.nanquantile(np.where(empty, 0.0, values), self.quantiles, axis=0)
        self.low_, self.high_ = bounds
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Clip values to the quantiles of the training samples; NaN stays NaN."""
        check_is_fitted(self)
        values: FloatArray = validate_data(
            self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan"
        )
        return np.clip(values, self.low_, self.high_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class JointScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns with mean 0 and variance 1 over all values together, which keep differences."""

    mean_: float
    scale_: float

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute mean and standard deviation of all training values but NaN."""
        values: FloatArray = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        known = values[~np.isnan(values)]
        self.mean_, self.scale_ = 0.0, 1.0
        if len(known):
            self.mean_ = float(known.mean())
            self.scale_ = float(known.std()) or 1.0
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale samples by the moments of the training samples; NaN stays NaN."""
        check_is_fitted(self)
        values: FloatArray = validate_data(
            self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan"
        )
        return (values - self.mean_) / self.scale_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class NearConstantFilter(SelectorMixin, BaseEstimator):
    """Columns but those of which one value, or NaN, is a share of the training samples."""

    support_: BoolArray

    def __init__(self, share: float = 0.95) -> None:
        self.share = share

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the most frequent value of each column."""
        values: FloatArray = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        ordered = np.sort(values, axis=0)  # NaN last
        place = np.arange(len(values))[:, None]
        same = (ordered[1:] == ordered[:-1]) | (np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
        first = np.vstack([np.zeros((1, values.shape[1]), dtype=bool), same])
        starts = np.maximum.accumulate(np.where(first, 0, place), axis=0)
        longest = (place - starts + 1).max(axis=0)
        self.support_ = longest < self.share * len(values)
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Residualiser(TransformerMixin, BaseEstimator):
    """Residuals of the least-squares fit, with intercept, of columns on the last, confounds."""

    def __init__(self, n_beside: int = 1) -> None:
        self.n_beside = n_beside

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the columns to the confounds of the training samples."""
        values: FloatArray = validate_data(
            self, X, dtype=np.float64, ensure_min_features=self.n_beside + 1
        )
        self.regression_ = LinearRegression().fit(
            values[:, -self.n_beside :], values[:, : -self.n_beside]
        )
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Subtract what the confounds of samples tell by the fit to the training samples."""
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        told = self.regression_.predict(values[:, -self.n_beside :])
        return values[:, : -self.n_beside] - told.reshape(len(values), -1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> LabelArray:
        """Return the names of all but the confounds."""
        return name_inputs(self, input_features)[: -self.n_beside]


def name_inputs(transformer: Any, input_features: ArrayLike | None) -> LabelArray:
    """Return the names of the columns that a transformer was fitted to, as scikit-learn does."""
    check_is_fitted(transformer)
    names: LabelArray = OneToOneFeatureMixin.get_feature_names_out(transformer, input_features)
    return names
