"""Adapter of estimators and selectors in scikit-learn's style to raysel's interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import VarianceThreshold
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.estimator import Capabilities, OneShotEstimator
from raysel.base.feature_scores import feature_scores
from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import FloatArray, LabelArray, validate_params
from raysel.core.errors import ConfigError, DataError
from raysel.data.table_rows import TableRows
from raysel.data.targets import CLASSES, LABELS, QUANTITIES, TARGETS, has_columns
from raysel.data.task_blocks import constant_features


def wrapped_has(method: str) -> Callable[[Any], bool]:
    """Return a condition of `available_if`: the wrapped estimator has a method."""

    def has(adapter: Any) -> bool:
        getattr(
            getattr(adapter, "estimator_", adapter.estimator), method
        )  # AttributeError names the missing method
        return True

    return has


class ScikitLearnMethod(OneShotEstimator):
    """Adapter of a classifier, regressor or selector in scikit-learn's style, fitted in one step.

    The score of a feature is the Euclidean norm over classes or quantities of its ``coef_``, or
    else its ``feature_importances_``, or else its ``scores_`` or ``variances_`` (NaN counts as 0,
    infinity as the largest finite score). A selector without these ranks by its ``ranking_``, the
    weights of its ``estimator_``, or else by what it selects. A feature that is constant in the
    training set has score 0. Of a Pipeline they are those of the last step that has some, as far as
    no step before it mixes the features; a feature that a step leaves out has score 0. If the
    estimator has none of these attributes, ``scores_`` is not set.

    The objective is the training error; 0 of a selector, and of `TableRows`, of which the estimator
    gets the cells.
    """

    # Upper bound for all wrapped classes; the registry and the study check the actual class.
    capabilities: ClassVar[Capabilities] = Capabilities(
        ranks=None, predicts=True, targets=frozenset(TARGETS)
    )

    scored_by_: str = "coef_"
    estimator_: Any
    classes_: LabelArray
    n_outputs_: int

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def score_scale(self) -> str:
        """What its scores are: coefficients sizes of an effect, importances squares of one.

        An estimator may say otherwise, as `PermutationImportance` does.
        """
        known = {"coef_": "effect", "ranking_": "place", "get_support": "place"}
        scale = known.get(self.scored_by_, "squared")
        return getattr(self.estimator, "score_scale", scale)

    def check(self, n_features: int) -> None:
        """Check the parameters by the own constraints of the estimator and of those in it."""
        try:
            for part in (self.estimator, getattr(self.estimator, "estimator", None)):
                validate_params(part)
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def prepare(self, X: FloatArray, y: LabelArray) -> tuple[()]:
        """Return an empty tuple: configurations have no computation in common."""
        return ()

    def _validate_data(self, X: ArrayLike | TableRows, y: ArrayLike) -> tuple[Any, LabelArray]:
        if isinstance(X, TableRows):
            features, target = X, np.asarray(y)
        else:
            features, target = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                order="C",
                ensure_min_samples=2,
                multi_output=has_columns(y),
            )
        if QUANTITIES not in find_capabilities(self.estimator).targets:
            check_classification_targets(target)
        return features, target

    @property
    def _is_regressor(self) -> bool:
        return tagged_type(self.estimator) == "regressor"

    def _updates(self, X: Any, y: LabelArray, prepared: Any) -> Iterator[float]:
        for name in ("scores_", "_training_prediction"):
            self.__dict__.pop(name, None)
        rows = unwrap_cells(X)
        self._fit_estimator(rows, y)
        found = feature_scores(self.estimator_, constant_features(X))
        if found is not None:
            self.scored_by_, self.scores_ = found
        if isinstance(X, TableRows) or not hasattr(self.estimator_, "predict"):
            yield 0.0  # reading rows that are no numbers once more may take as long as the fit
            return
        predicted = self._training_prediction = self._predicted(rows)
        if self._is_regressor:
            yield float(np.mean((predicted - y) ** 2))
        else:
            yield float(np.mean((predicted != y).reshape(len(y), -1).any(axis=1)))

    def take_training_prediction(self) -> LabelArray | None:
        """Return what the fit predicted of its samples, and forget it."""
        return self.__dict__.pop("_training_prediction", None)

    def _fit_estimator(
        self, rows: Any, y: LabelArray, fit: Callable[..., Any] = fit_to_labels
    ) -> None:
        """Fit a clone of the estimator, and note whether it converged."""
        self.__dict__.pop("classes_", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = fit(self.estimator, rows, y)
        self._ended = not any(
            issubclass(warning.category, ConvergenceWarning) for warning in caught
        )
        for warning in caught:
            if not issubclass(warning.category, ConvergenceWarning):  # reported by converged_
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        self._keep(fitted, y)

    def _keep(self, fitted: Any, y: LabelArray) -> None:
        """Keep the fitted estimator as what predicts."""
        self.estimator_ = fitted
        self.n_outputs_ = y.reshape(len(y), -1).shape[1]
        if hasattr(fitted, "classes_"):
            self.classes_ = fitted.classes_

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the estimator was fitted without a ConvergenceWarning."""
        return self._ended

    def _not_converged(self) -> str:
        return (
            f"{type(self.estimator).__name__} did not converge: increase its number of iterations"
            " or its tolerance."
        )

    def _checked(self, X: ArrayLike | TableRows) -> Any:
        """Return samples as the estimator gets them."""
        check_is_fitted(self)
        if isinstance(X, TableRows):
            return X.cells
        return validate_data(self, X, dtype=np.float64, reset=False)

    @available_if(wrapped_has("predict"))
    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict by the wrapped estimator."""
        return self._predicted(self._checked(X))

    def _predicted(self, rows: Any) -> LabelArray:
        """Predict labels in the shape of the training labels, a single column in one dimension."""
        predicted: LabelArray = self.estimator_.predict(rows)
        expected: tuple[int, ...] = (len(rows), self.n_outputs_)
        if self.n_outputs_ == 1:
            expected = (len(rows),)
            if np.shape(predicted) == (len(rows), 1):
                predicted = np.ravel(predicted)
        if np.shape(predicted) != expected:
            raise DataError(
                f"{type(self.estimator_).__name__}.predict returned an array of shape"
                f" {np.shape(predicted)}, not {expected}, for {len(rows)} samples: it must return"
                " labels in the shape of y."
            )
        return predicted

    @available_if(wrapped_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Predict class probabilities by the wrapped estimator."""
        rows = self._checked(X)
        return self.estimator_.predict_proba(rows)

    @available_if(wrapped_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the decision function of the wrapped estimator."""
        rows = self._checked(X)
        return self.estimator_.decision_function(rows)

    @available_if(wrapped_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Compute the score of the wrapped estimator."""
        rows = self._checked(X)
        return float(self.estimator_.score(rows, y))

    @available_if(wrapped_has("transform"))
    def transform(self, X: ArrayLike) -> FloatArray:
        """Transform samples by the wrapped estimator."""
        rows = self._checked(X)
        return self.estimator_.transform(rows)

    @available_if(wrapped_has("transform"))
    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """Fit the estimator, then transform the same samples."""
        return self.fit(X, y).transform(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            wrapped = get_tags(self.estimator)
            tags.estimator_type, tags.classifier_tags = (
                wrapped.estimator_type,
                wrapped.classifier_tags,
            )
            tags.regressor_tags = wrapped.regressor_tags
            tags.transformer_tags, tags.non_deterministic = (
                wrapped.transformer_tags,
                wrapped.non_deterministic,
            )
            tags.target_tags.multi_output = wrapped.target_tags.multi_output
            tags.input_tags.positive_only = wrapped.input_tags.positive_only
        return tags


def unwrap_cells(X: Any) -> Any:
    """Return samples as an estimator gets them."""
    if isinstance(X, TableRows):
        return X.cells
    return X


def wrapped_capabilities(cls: type) -> Capabilities:
    """Determine the capabilities of a class in scikit-learn's style before it is fitted."""
    estimator: Any = cls
    with suppress(Exception):  # the class needs parameters
        estimator = cls()
    return find_capabilities(estimator)


def find_capabilities(estimator: Any) -> Capabilities:
    """Determine what an unfitted estimator in scikit-learn's style, or its class, is able to do."""
    cls = estimator if isinstance(estimator, type) else type(estimator)
    try:
        tags = get_tags(estimator)
        multilabel = bool(tags.classifier_tags and tags.classifier_tags.multi_label)
        is_regressor = tags.estimator_type == "regressor"
    except Exception:  # it has no tags  # noqa: BLE001
        multilabel, is_regressor = False, issubclass(cls, RegressorMixin)
    predicts = hasattr(estimator, "predict")
    targets = {QUANTITIES if is_regressor else CLASSES}
    if multilabel:
        targets.add(LABELS)
    if not predicts and hasattr(estimator, "transform"):
        targets.add(QUANTITIES)  # a selector may be for either
    return Capabilities(
        ranks=None,
        predicts=predicts,
        iterates=False,
        targets=frozenset(targets),
        by_variance=issubclass(cls, VarianceThreshold),
    )


def tagged_type(estimator: Any) -> str | None:
    """Return "classifier", "regressor", ... as the estimator's tags say; None without tags."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return None
    return get_tags(estimator).estimator_type
