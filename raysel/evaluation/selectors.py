"""Selectors of the features that a method scores best, and the score of a constant feature."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from raysel.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    LabelArray,
    validate_params,
)
from raysel.core.errors import ConfigError, DataError
from raysel.data.preparation.outputs import Outputs, select_columns, sum_own_statistics
from raysel.data.task_blocks import TaskBlocks, as_samples, constant_features
from raysel.numerics.rankings import ranks


def has_names(X: Any) -> bool:
    """Return whether samples are a table with named columns, not an array."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a table."""
    return list(X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ()))


def usable_scores(
    scores: FloatArray,
    constant: BoolArray | None,
    outputs: Outputs | None = None,
    *,
    scale: str,
) -> FloatArray:
    """Return a method's scores of the features, 0 for those constant before scaling.

    No method may decide this by itself: rows of unit length make a constant feature vary with the
    norm of the row, and a projection leaves it the score that rounding gives. All records of scores
    are made by this function. The score of a feature that was prepared as several columns is that
    of `raysel.numerics.column_scores`. ``scale`` is ``Capabilities.score_scale``.

    `scores` and `constant` are (n_columns,); returns (n_features,).
    """
    if constant is not None:
        scores = np.where(constant, 0.0, scores)
    if outputs is None:
        return scores
    return outputs.joint_scores(scores, scale=scale)


def score_scale(method: Any) -> str:
    """Return the scale of a method's scores; those of other packages are as F values."""
    scale: str = getattr(method, "score_scale", "squared")
    return scale


class ScoredSelector(SelectorMixin, BaseEstimator):
    """Base class of selectors that hold a score for each feature and select the best ones.

    Columns of an array are taken by their position; those of a table must be ``feature_names_in_``
    if that is known.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Score of each feature, larger is better; features with score 0 are never selected.
    n_features_in_ : int
        Number of columns, each of which is a feature unless ``origin`` says which one it comes
        from.
    feature_names_in_ : ndarray of str, shape (n_columns,)
        Names of the columns, if they are known.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None]
    }

    n_features_to_select: int | None
    origin: IntArray | None = None
    joined_to: IntArray | None = None

    scores_: FloatArray
    n_features_in_: int
    feature_names_in_: LabelArray

    @property
    def ranking_(self) -> IntArray:
        """Rank of each feature, 1 for the largest score; of equal ones the lower index first."""
        return ranks(self.scores_)

    def arrange(self, outputs: Outputs | None) -> None:
        """Set which columns are of which feature; None: each is one."""
        self.origin = self.joined_to = None
        if outputs is not None:
            self.origin, self.joined_to = outputs.origin, outputs.joined_to

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask: BoolArray = self.scores_ > 0
        if self.n_features_to_select is not None:
            mask &= self.ranking_ <= self.n_features_to_select
        if self.origin is None:
            return mask
        return select_columns(mask, self.origin, self.joined_to)

    def transform(self, X: ArrayLike | TaskBlocks) -> Any:
        """Select the columns of the best features, in the order of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or TaskBlocks
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_selected)
            Columns of the selected features; for TaskBlocks NaN outside the columns of a sample's
            own task.

        Raises
        ------
        ValueError
            If X has another number of columns, or is a table with other columns than
            ``feature_names_in_`` or in another order.
        """
        check_is_fitted(self)
        support = self.get_support()
        if isinstance(X, TaskBlocks):
            self._check_width(X.shape[1])
            selected = np.full((len(X), int(support.sum())), np.nan)
            columns_out = np.cumsum(support) - 1
            for rows, columns, block in X.parts():
                kept = support[columns]
                selected[np.ix_(rows, columns_out[columns][kept])] = block[:, kept]
            return selected
        if has_names(X):
            return super().transform(X)
        # Not by scikit-learn's validate_data, which warns of an array where names are known.
        finite = not get_tags(self).input_tags.allow_nan
        values = check_array(X, dtype=None, accept_sparse="csr", ensure_all_finite=finite)
        self._check_width(values.shape[1])
        return values[:, support]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> LabelArray:
        """Return the names of the selected features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features, by default ``feature_names_in_``; must be equal to those if they
            are known.

        Returns
        -------
        ndarray of str, shape (n_selected,)
            Names in the order of the data; ``x0``, ``x1``, ... by the columns' positions if no
            names are known.
        """
        names: LabelArray = super().get_feature_names_out(input_features)
        return names.astype(object)

    def _check_width(self, n_columns: int) -> None:
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting"
                f" {self.n_features_in_} features as input."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class RankedSelector(MetaEstimatorMixin, ScoredSelector):
    """Selector of the features that a method scores best."""

    estimator_: Any

    def __init__(
        self,
        estimator: Any,
        n_features_to_select: int | None = None,
        origin: IntArray | None = None,
        joined_to: IntArray | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.origin = origin
        self.joined_to = joined_to

    @classmethod
    def of(
        cls,
        fitted: Any,
        scores: FloatArray,
        n_features_to_select: int | None,
        outputs: Outputs | None = None,
    ) -> Self:
        """Make the selector of a fitted method.

        `scores` are its `usable_scores`, (n_features,).
        """
        selector = cls(clone(fitted), n_features_to_select)
        selector.arrange(outputs)
        selector._keep(fitted, scores)
        return selector

    def _keep(self, fitted: Any, scores: FloatArray) -> None:
        self.estimator_, self.scores_ = fitted, scores
        self.n_features_in_ = len(scores) if self.origin is None else len(self.origin)

    def fit(self, X: ArrayLike | TaskBlocks, y: ArrayLike) -> Self:
        """Fit the method and keep its scores.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        validate_params(self)
        if self.estimator is None:
            raise ConfigError(
                f"{type(self).__name__}(estimator=None) holds no method to fit: the model file was"
                " written without it. Give the method as estimator."
            )
        fitted = clone(self.estimator).fit(X, y)
        if not hasattr(fitted, "scores_"):
            raise DataError(
                f"{type(fitted).__name__} gives no feature scores; use a method that ranks"
                " features."
            )
        values: Any = X
        if not isinstance(X, TaskBlocks):
            values = check_array(X, dtype=np.float64, ensure_all_finite=False)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        outputs = None
        if self.origin is not None:
            n_features = int(self.origin.max()) + 1
            if self.joined_to is not None:
                n_features = len(self.joined_to)
            own = sum_own_statistics(values, np.asarray(y), self.origin, n_features)
            outputs = Outputs(self.origin, n_features, own, self.joined_to)
        scale = score_scale(fitted)
        constant = constant_features(values)
        self._keep(fitted, usable_scores(fitted.scores_, constant, outputs, scale=scale))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.estimator is not None:
            inner = get_tags(self.estimator)
            tags.target_tags.multi_output = inner.target_tags.multi_output
            tags.classifier_tags = inner.classifier_tags
            tags.input_tags.positive_only = inner.input_tags.positive_only
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _method_has(name: str) -> Callable[[RankedClassifier], bool]:
    def has(model: RankedClassifier) -> bool:
        fitted = getattr(model, "estimator_", model.estimator)
        getattr(fitted, name)  # AttributeError names the missing method
        return True

    return has


class RankedClassifier(RankedSelector):
    """Classifier by a method with all features, whose ``transform`` selects the best ones."""

    @property
    def classes_(self) -> LabelArray:
        """Class labels."""
        classes: LabelArray = self.estimator_.classes_
        return classes

    @available_if(_method_has("predict"))
    def predict(self, X: ArrayLike | TaskBlocks) -> LabelArray:
        """Predict by the method.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_labels).
        """
        check_is_fitted(self)
        predicted: LabelArray = self.estimator_.predict(as_samples(X))
        return predicted

    @available_if(_method_has("predict_proba"))
    def predict_proba(self, X: ArrayLike | TaskBlocks) -> FloatArray:
        """Compute class probabilities by the method.

        `X` is (n_samples, n_features); returns (n_samples, n_classes).
        """
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
