"""Scaling of multimodal data, modality by modality, fitted on a training set only."""

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
    """Make modalities of different units and widths comparable.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Each modality's number of columns of X, in column order. None: all of X is one modality.
    method : {"zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"}, default="zscore_sqrt_width"
        "zscore": zero mean and unit variance for each feature. "zscore_sqrt_width": that divided by the square root
        of the modality's width, so that every modality has the same total variance. "minmax": each feature to
        [0, 1]. "row_unit": each sample to unit l2 norm in each modality. "none": the data as they are.

    Attributes
    ----------
    offset_, scale_ : ndarray of shape (n_features,)
        The transform is (X - offset_) / scale_, followed by the rows' normalisation for "row_unit".
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had names

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
                f"modalities {dict(layout.modalities)!r} have {layout.n_features} columns together,"
                f" X has {n_features}: every column belongs to exactly one modality."
            )
        return layout

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Take offsets and scales from the training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            If the modalities do not fit X.
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
        """Scale by what the training set told.

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
        scaled /= self.scale_
        if self.method == "row_unit":
            for columns in self._layout(scaled.shape[1]).slices().values():
                scaled[:, columns] = normalize(scaled[:, columns])
        return scaled
