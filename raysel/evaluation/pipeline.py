"""Pipeline that knows the names of its features and transforms samples to the selected ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import ConfigError
from raysel.data.preparation.preparation import Preparation
from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation.selectors import RankedSelector, ScoredSelector, column_names, has_names


def _last_has(name: str) -> Callable[[FeaturePipeline], bool]:
    def has(pipeline: FeaturePipeline) -> bool:
        getattr(pipeline.steps[-1][1], name)  # AttributeError names the missing method
        return True

    return has


class FeaturePipeline(TransformerMixin, Pipeline):
    """Pipeline of preparation, scaler, selector and classifier: the model of a study.

    The steps are ``preparation``, if the study has one, ``scaler``, ``selector`` (`RankedSelector`)
    and ``classifier``; without ``selector`` where the method itself classifies by all features
    (``evaluation.estimator: native``), and then ``classifier`` is a `RankedClassifier`, or the
    method if it does not rank features.

    Samples in an array are taken by position. A table (pandas, polars) must have the columns
    ``feature_names_in_`` in this order. With a preparation they are as they were read: cells may be
    empty, and categories are text.
    """

    @classmethod
    def of(cls, steps: Sequence[tuple[str, Any]], feature_names: Sequence[str]) -> Self:
        """Make a pipeline of fitted steps."""
        pipeline = cls(list(steps))
        pipeline._pin()
        if len(feature_names):
            # Of text, because in a file an array of objects takes 200 bytes a name.
            pipeline._name(np.array(feature_names, dtype=np.str_))
        return pipeline

    def _pin(self) -> None:
        """Let the steps exchange arrays, whatever scikit-learn's global output is."""
        for _, step in self.steps:
            if hasattr(step, "set_output"):
                step.set_output(transform="default")

    def _name(self, names: LabelArray) -> None:
        self.feature_names_in_ = names
        if self.selector is not None:
            if self.preparation is not None:
                names = self.preparation.get_feature_names_out()
            self.selector.feature_names_in_ = names.astype(np.str_, copy=False)

    @property
    def selector(self) -> ScoredSelector | None:
        """Step that selects features; None if the method does not rank them."""
        return next(
            (step for _, step in reversed(self.steps) if isinstance(step, ScoredSelector)), None
        )

    @property
    def preparation(self) -> Preparation | None:
        """Step that prepares the columns; None if the study has none."""
        first = self.steps[0][1]
        return first if isinstance(first, Preparation) else None

    @property
    def method(self) -> Any:
        """Fitted method of the study, e.g. with ``coef_``; None if the file lacks it."""
        if self.selector is None:
            return self.steps[-1][1]
        return getattr(self.selector, "estimator_", None)

    def without_method(self) -> Self:
        """Return a copy without the fitted method, which cannot be fitted again."""
        if type(self.selector) is not RankedSelector:
            raise ConfigError(
                "this pipeline classifies by the method itself, which cannot be left out."
            )
        selector = RankedSelector(
            None,
            self.selector.n_features_to_select,
            self.selector.origin,
            self.selector.joined_to,
        )
        selector.scores_ = self.selector.scores_
        selector.n_features_in_ = self.selector.n_features_in_
        steps = [(name, selector if step is self.selector else step) for name, step in self.steps]
        return type(self).of(steps, vars(self).get("_feature_names", ()))

    # Pipeline derives them from the first step, which is fitted to arrays, and has no setter.
    @property
    def feature_names_in_(self) -> LabelArray:
        """Names of the features."""
        if "_feature_names" not in vars(self):
            raise AttributeError(
                f"this {type(self).__name__} has no feature_names_in_: it was fitted to an array."
            )
        names: LabelArray = self._feature_names.astype(object)
        return names

    @feature_names_in_.setter
    def feature_names_in_(self, names: LabelArray) -> None:
        self._feature_names = names

    @feature_names_in_.deleter
    def feature_names_in_(self) -> None:
        del self._feature_names

    def _array(self, X: ArrayLike | TaskBlocks) -> Any:
        """Check the columns of a table, and return it as an array; other samples as they are."""
        if not has_names(X):
            return X
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._values(X)

    def _values(self, X: Any) -> Any:
        """A table as an array of numbers."""
        if self.preparation is not None:
            return self.preparation.numbers(X)
        # In C order, of which sums have the same last bits.
        return np.ascontiguousarray(np.asarray(X))

    def fit(self, X: ArrayLike | TaskBlocks, y: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the steps one after the other.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        self._pin()
        if "_feature_names" in vars(self):
            del self.feature_names_in_
        samples = self._values(X) if has_names(X) else X
        if self.preparation is None:
            super().fit(samples, y, **params)
        else:  # the selector has to know the columns of each feature
            prepared = self.preparation.fit_transform(samples, y)
            if self.selector is not None:
                self.selector.arrange(self.preparation.outputs)
            Pipeline(self.steps[1:]).fit(prepared, y, **params)
        names = column_names(X)
        # scikit-learn ignores other names.
        if names and all(isinstance(name, str) for name in names):
            self._name(np.array(names, dtype=np.str_))
        return self

    def transform(self, X: ArrayLike | TaskBlocks) -> Any:
        """Scale samples and select the best features.

        Scaled values of the selected features, in the order of the data; a table if ``set_output``
        asks for one.

        `X` is (n_samples, n_features); returns (n_samples, n_selected).
        """
        selector = self._ranking()
        check_is_fitted(self)
        samples = self._array(X)
        for _, step in self.steps:
            samples = step.transform(samples)
            if step is selector:
                break
        return samples

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> LabelArray:
        """Return the names of the features that `transform` selects. Returns (n_selected,)."""
        names: LabelArray = self._ranking().get_feature_names_out(input_features)
        return names

    def _ranking(self) -> ScoredSelector:
        if self.selector is None:
            raise AttributeError(
                f"this {type(self).__name__} selects no features, because its method gives no"
                " feature scores."
            )
        return self.selector

    @available_if(_last_has("predict"))
    def predict(self, X: ArrayLike | TaskBlocks, **params: Any) -> LabelArray:
        """Predict by the classifier.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_labels).
        """
        predicted: LabelArray = super().predict(self._array(X), **params)
        return predicted

    @available_if(_last_has("predict_proba"))
    def predict_proba(self, X: ArrayLike | TaskBlocks, **params: Any) -> FloatArray:
        """Compute class probabilities by the classifier.

        `X` is (n_samples, n_features); returns (n_samples, n_classes).
        """
        probabilities: FloatArray = super().predict_proba(self._array(X), **params)
        return probabilities

    @available_if(_last_has("decision_function"))
    def decision_function(self, X: ArrayLike | TaskBlocks, **params: Any) -> FloatArray:
        """Compute the scores of the classes by the classifier.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_classes).
        """
        values: FloatArray = super().decision_function(self._array(X), **params)
        return values

    @available_if(_last_has("score"))
    def score(
        self,
        X: ArrayLike | TaskBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> float:
        """Compute the classifier's own score, the accuracy of those of raysel and scikit-learn.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels), `sample_weight`
        (n_samples,).
        """
        return float(super().score(self._array(X), y, sample_weight=sample_weight, **params))
