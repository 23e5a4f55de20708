"""Scaling of multimodal data, fitted on a training set only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray
from raysel.data.layouts import Modalities
from raysel.errors import ConfigError, DataError
from raysel.validation import StrOptions, fit_context


class ModalityScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale modalities of different units and widths to comparable values.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, in column order. None: all columns are one modality.
    method : {"zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"}, default="zscore_sqrt_width"
        "zscore": zero mean and unit variance for each feature. "zscore_sqrt_width": z-scores divided by the square
        root of the modality's number of columns, so that every modality has the same total variance. "minmax": each
        feature to [0, 1]. "row_unit": each sample to unit l2 norm in each modality. "none": no scaling.

    Attributes
    ----------
    offset_ : ndarray of shape (n_features,)
        Value that is subtracted from each feature.
    scale_ : ndarray of shape (n_features,)
        Value that each feature is divided by afterwards; "row_unit" then normalises the rows.
    n_features_in_ : int
        Number of features of the training set.
    feature_names_in_ : ndarray of str
        Names of the features; only if X had names.

    Examples
    --------
    >>> X = [[0.0, 10.0, 1.0], [2.0, 30.0, 3.0]]
    >>> ModalityScaler({"a": 1, "b": 2}, method="zscore").fit_transform(X)
    array([[-1., -1., -1.],
           [ 1.,  1.,  1.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "modalities": [dict, None],
        "method": [StrOptions({"zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"})],
    }

    fitted_shapes: ClassVar[dict[str, str]] = {"offset_": "n_features", "scale_": "n_features"}

    offset_: FloatArray
    scale_: FloatArray
    n_features_in_: int

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        method: Literal["zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"] = "zscore_sqrt_width",
    ) -> None:
        self.modalities = modalities
        self.method = method

    def _layout(self, n_features: int) -> Modalities:
        try:
            layout = Modalities(self.modalities or {"all": n_features})
        except DataError as error:
            raise ConfigError(str(error)) from error
        if layout.n_features != n_features:
            raise ConfigError(
                f"modalities {dict(layout.modalities)!r} have {layout.n_features} columns in total,"
                f" but X has {n_features}: every column must belong to exactly one modality."
            )
        return layout

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute offsets and scales from a training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted scaler.

        Raises
        ------
        ConfigError
            If the numbers of columns of the modalities do not sum to n_features.
        """
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        layout = self._layout(values.shape[1])
        self.offset_, self.scale_ = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.method == "minmax":
            ranges = MinMaxScaler().fit(values)
            self.offset_, self.scale_ = ranges.data_min_, 1.0 / ranges.scale_
        elif self.method.startswith("zscore"):
            moments = StandardScaler().fit(values)
            self.offset_, self.scale_ = moments.mean_, moments.scale_
            if self.method == "zscore_sqrt_width":
                widths = np.array(list(layout.modalities.values()))
                self.scale_ = self.scale_ * np.sqrt(np.repeat(widths, widths))
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale samples by the offsets and scales of the training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scaled samples.
        """
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = values - self.offset_
        scaled /= self.scale_
        if self.method == "row_unit":
            for columns in self._layout(scaled.shape[1]).slices().values():
                scaled[:, columns] = normalize(scaled[:, columns])
        return scaled
