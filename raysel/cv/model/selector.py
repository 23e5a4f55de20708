"""Selection of the best features by the scores of a fitted method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.cv.model.scored_selector import ScoredSelector
from raysel.data.task_blocks import TaskBlocks, as_samples, constant_features
from raysel.errors import ConfigError, DataError
from raysel.validation import validate_params


class RankedSelector(MetaEstimatorMixin, ScoredSelector):
    """Selector of the features that a method scores best."""

    estimator_: Any

    def __init__(self, estimator: Any, n_features_to_select: int | None = None) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select

    @classmethod
    def of(cls, fitted: Any, constant: BoolArray, n_features_to_select: int | None) -> Self:
        """Make the selector of a method that is fitted already. `constant` is (n_features,)."""
        selector = cls(clone(fitted), n_features_to_select)
        selector._keep(fitted, constant)
        return selector

    def _keep(self, fitted: Any, constant: BoolArray) -> None:
        self.estimator_ = fitted
        self.scores_ = np.where(constant, 0.0, fitted.scores_)
        self.n_features_in_ = len(self.scores_)

    def fit(self, X: ArrayLike | TaskBlocks, y: ArrayLike) -> Self:
        """Fit the method and keep its scores.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        validate_params(self)
        if self.estimator is None:
            raise ConfigError(
                f"{type(self).__name__}(estimator=None) holds no method to fit: the model file was written without it. "
                "Give the method as estimator."
            )
        fitted = clone(self.estimator).fit(X, y)
        if not hasattr(fitted, "scores_"):
            raise DataError(f"{type(fitted).__name__} gives no feature scores; use a method that ranks features.")
        values = X if isinstance(X, TaskBlocks) else check_array(X, dtype=np.float64, ensure_all_finite=False)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self._keep(fitted, constant_features(values))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.estimator is not None:
            own = get_tags(self.estimator)
            tags.target_tags.multi_output = own.target_tags.multi_output
            tags.classifier_tags = own.classifier_tags
            tags.input_tags.positive_only = own.input_tags.positive_only
            tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags


def _method_has(name: str) -> Callable[[RankedClassifier], bool]:
    def has(model: RankedClassifier) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)  # AttributeError names the missing method
        return True

    return has


class RankedClassifier(RankedSelector):
    """Classifier that predicts by a method with all features, and whose ``transform`` selects the best ones."""

    @property
    def classes_(self) -> LabelArray:
        """Class labels."""
        classes: LabelArray = self.estimator_.classes_
        return classes

    @available_if(_method_has("predict"))
    def predict(self, X: ArrayLike | TaskBlocks) -> LabelArray:
        """Predict by the method. `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_labels)."""
        check_is_fitted(self)
        predicted: LabelArray = self.estimator_.predict(as_samples(X))
        return predicted

    @available_if(_method_has("predict_proba"))
    def predict_proba(self, X: ArrayLike | TaskBlocks) -> FloatArray:
        """Compute class probabilities by the method. `X` is (n_samples, n_features); returns (n_samples, n_classes)."""
        check_is_fitted(self)
        probabilities: FloatArray = self.estimator_.predict_proba(as_samples(X))
        return probabilities

    @available_if(_method_has("decision_function"))
    def decision_function(self, X: ArrayLike | TaskBlocks) -> FloatArray:
        """Compute the scores of the classes by the method.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_classes).
        """
        check_is_fitted(self)
        values: FloatArray = self.estimator_.decision_function(as_samples(X))
        return values

    @available_if(_method_has("score"))
    def score(self, X: ArrayLike | TaskBlocks, y: ArrayLike) -> float:
        """Compute the method's own score, e.g. the accuracy of a classifier.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        check_is_fitted(self)
        return float(self.estimator_.score(as_samples(X), y))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.estimator_type = get_tags(self.estimator).estimator_type
        return tags
