"""Base classes of feature selectors and of selectors that are linear classifiers."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.base.capabilities import Capabilities
from raysel.base.estimator import Estimator


class Selector(SelectorMixin, Estimator):
    """Base class of methods whose ``transform`` selects the ``n_features_to_select`` best features.

    By default half of the features are selected. Features with score 0 are never selected, so that fewer may remain.
    """

    n_features_to_select: int | None

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        n_selected = self.n_features_to_select
        # Half of the features by default, as in scikit-learn's RFE.
        limit = max(1, self.n_features_in_ // 2) if n_selected is None else n_selected
        return (self.ranking_ <= limit) & (self.scores_ > 0)


class LinearSelector(ClassifierMixin, Selector):
    """Base class of selectors that are linear classifiers.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    capabilities: ClassVar[Capabilities] = replace(Selector.capabilities, predicts=True)

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes, ``X coef_' + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class; for two classes that of the second one.
        """
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        values = features @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of largest score; for two classes the second one if its score is positive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted classes.
        """
        values = self.decision_function(X)
        positions = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[positions]
