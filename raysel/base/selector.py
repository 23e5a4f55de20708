"""Methods that keep the best features, and those among them that are linear classifiers."""

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
    """A method whose ``transform`` keeps the best ``n_features_to_select`` features, half by default.

    Features without a score (0) are never kept: fewer remain where fewer have one.
    """

    n_features_to_select: int | None

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        wanted = self.n_features_to_select
        # Half of the features by default, as scikit-learn's RFE does.
        keep = max(1, self.n_features_in_ // 2) if wanted is None else wanted
        return (self.ranking_ <= keep) & (self.scores_ > 0)


class LinearSelector(ClassifierMixin, Selector):
    """A selector that is also a linear classifier.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), one row for two classes
    intercept_ : ndarray of shape (n_classes,), one entry for two classes
    classes_ : ndarray of shape (n_classes,)
    """

    capabilities: ClassVar[Capabilities] = replace(Selector.capabilities, predicts=True)

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the classes: ``X coef_' + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        values = features @ self.coef_.T + self.intercept_
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: ArrayLike) -> LabelArray:
        """The class of largest score; for two classes the second where its score is positive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[chosen]
