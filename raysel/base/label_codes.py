"""Classifiers that take 0 to k - 1 as labels only, fitted to any labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.targets import Classes
from raysel.numerics.wide_svm import SampleSpan, fit_clone


def fit_to_labels(estimator: Any, X: Any, y: LabelArray, span: SampleSpan | None = None) -> Any:
    """Fit a clone to labels, or to their numbers 0 to k - 1 where it takes only those.

    ``span`` is that of `X` if it is known, by which `fit_clone` fits a linear SVM.
    """
    try:
        return fit_clone(estimator, X, y, span)
    except Exception as refused:
        if not may_want_codes(estimator, y):
            raise
        try:
            return CodedClassifier(estimator).fit(X, y)
        except Exception:  # not for its labels  # noqa: BLE001
            raise refused from None


def may_want_codes(estimator: Any, y: LabelArray) -> bool:
    """Return whether a part of an estimator may want labels from 0 to k - 1, not these."""
    if not Classes().holds(y) or type_of_target(y) not in ("binary", "multiclass"):
        return False
    classes = np.unique(y)
    if classes.dtype.kind in "biuf" and np.array_equal(classes, np.arange(len(classes))):
        return False
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(_classifies(part) for part in parts if hasattr(part, "predict"))


def _classifies(estimator: Any) -> bool:
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return not isinstance(estimator, type)
    return get_tags(estimator).estimator_type in (None, "classifier")


def _wrapped_has(name: str) -> Any:
    def has(model: CodedClassifier) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)  # AttributeError names it
        return True

    return has


class CodedClassifier(MetaEstimatorMixin, BaseEstimator):
    """Classifier that is fitted to the numbers of the classes, and predicts the labels."""

    estimator_: Any
    classes_: LabelArray

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit a clone of the estimator to the places of the labels. `y` is (n_samples,)."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    @available_if(_wrapped_has("predict"))
    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict labels. Returns (n_samples,)."""
        check_is_fitted(self)
        return self.classes_[self._places(np.ravel(self.estimator_.predict(X)))]

    def _places(self, predicted: LabelArray) -> IntArray:
        places = np.asarray(predicted, dtype=np.float64)
        if not np.isin(places, np.arange(len(self.classes_))).all():
            raise DataError(
                f"{type(self.estimator_).__name__} predicts {predicted[0]} where it was fitted to"
                f" the numbers 0 to {len(self.classes_) - 1} of the classes; use a classifier."
            )
        return places.astype(np.int64)

    @available_if(_wrapped_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> Any:
        """Compute class probabilities. Returns (n_samples, n_classes)."""
        return self.estimator_.predict_proba(X)

    @available_if(_wrapped_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> Any:
        """Compute the scores of the classes. Returns (n_samples,) or (n_samples, n_classes)."""
        return self.estimator_.decision_function(X)

    @available_if(_wrapped_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Compute the accuracy of the predictions."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    @available_if(_wrapped_has("transform"))
    def transform(self, X: ArrayLike) -> Any:
        """Transform samples by the fitted estimator."""
        return self.estimator_.transform(X)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)
