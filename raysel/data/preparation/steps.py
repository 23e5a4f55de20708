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

from raysel.core.arrays import BoolArray, FloatArray


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
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite="allow-nan")
        if (values <= -1).any():
            raise ValueError(f"log1p takes values above -1, and one is {np.nanmin(values):g}")
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
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        return np.clip(values, self.low_, self.high_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class NearConstantFilter(SelectorMixin, BaseEstimator):
    """Columns without those of which one value, or NaN, makes up a share of the training samples."""

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


class BesideTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers that also read columns beside those that they transform."""

    def fit(self, X: ArrayLike, y: Any = None, *, beside: FloatArray) -> Self:
        """Fit to samples and the values of the other columns, (n_samples, n_beside)."""
        raise NotImplementedError

    def transform(self, X: ArrayLike, *, beside: FloatArray) -> FloatArray:
        """Transform samples by the values of the other columns, (n_samples, n_beside)."""
        raise NotImplementedError


class Residualiser(BesideTransformer):
    """Residuals of the least-squares fit, with an intercept, of each column on the confounds."""

    def fit(self, X: ArrayLike, y: Any = None, *, beside: FloatArray) -> Self:
        """Fit the columns to the confounds of the training samples."""
        self.regression_ = LinearRegression().fit(beside, validate_data(self, X, dtype=np.float64))
        return self

    def transform(self, X: ArrayLike, *, beside: FloatArray) -> FloatArray:
        """Subtract what the confounds of samples tell by the fit to the training samples."""
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return values - self.regression_.predict(beside).reshape(values.shape)
