"""Base classes of selectors that are linear regressions of one quantity or several."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from raysel.base.classifiers import Selector, TensorShaped
from raysel.base.estimator import TENSOR, VOLUME, Capabilities
from raysel.core.arrays import FloatArray, LabelArray, validate_samples
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import QUANTITIES
from raysel.numerics.least_squares import QuantityScale, standardised


class LinearRegressor(RegressorMixin, Selector):
    """Base class of selectors that are linear regressions of quantities.

    The quantities are standardised over the training samples, so that the unit of none of them
    matters; the predictions are in the units of y.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    """

    capabilities: ClassVar[Capabilities] = replace(
        Selector.capabilities, predicts=True, targets=frozenset({QUANTITIES})
    )
    score_meaning = "norm of the feature's coefficients over the quantities"

    coef_: FloatArray
    intercept_: FloatArray

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict the quantities, ``X coef_' + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_quantities)
            Predicted quantities, in units of y.
        """
        check_is_fitted(self)
        if isinstance(X, StoredSamples):
            return X.computed(self.predict)
        features: FloatArray = validate_samples(self, X, dtype=np.float64, reset=False)
        predicted: FloatArray = features @ self.coef_.T + self.intercept_
        return predicted

    @staticmethod
    def _targets(y: LabelArray) -> tuple[QuantityScale, FloatArray]:
        """Return means and deviations of the quantities, and these standardised."""
        return standardised(y)

    def _keep_linear(self, coef: FloatArray, intercept: FloatArray, scale: QuantityScale) -> None:
        """Set ``coef_`` and ``intercept_`` from coefficients of the standardised quantities."""
        shape = scale.shape
        self.coef_ = np.ascontiguousarray(
            (coef * scale.deviation[:, None]).reshape(*shape, coef.shape[1])
        )
        # A number, not an array of no axes, where y has one axis.
        self.intercept_ = (intercept * scale.deviation + scale.mean).reshape(shape)[()]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class TensorRegressor(TensorShaped, LinearRegressor):
    """Base class of linear regressions of samples that are arrays, with a ``shape``."""

    capabilities: ClassVar[Capabilities] = replace(
        LinearRegressor.capabilities, layouts=frozenset({TENSOR, VOLUME})
    )
    score_meaning = "norm of the cell's coefficients over the quantities"
