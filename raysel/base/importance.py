"""Permutation importance: ranks features by what an estimator loses without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.inspection import permutation_importance
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import Tags, _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.adapter import tagged_type, wrapped_has
from raysel.base.cells import allows_nan
from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, validate_params
from raysel.data.targets import find_target, has_columns, squeeze_column
from raysel.numerics.metrics import metric

#: Share of the largest loss below which a mean loss is a rounding error.
_ROUNDING = 1e-12


class PermutationImportance(MetaEstimatorMixin, BaseEstimator):
    """Classifier or regressor whose features are ranked by permutation importance.

    The samples are divided into folds, and a clone of the estimator is fitted to all folds but one.
    The importance of a feature is what the clone's score on the samples left out loses where the
    values of that feature are permuted among them [1]_, the mean over permutations and folds; 0
    where it loses nothing. So every estimator that predicts can rank its features, one without
    ``coef_`` and ``feature_importances_`` too, and no feature is rewarded for what is only learnt
    by heart. A feature that another one can replace has a low importance, though the labels depend
    on it.

    Predictions are those of the estimator fitted to all samples.

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor in scikit-learn's style.
    metric : str, default=None
        Metric of the loss, larger is better: one of raysel's, or any scorer name of scikit-learn.
        None: "accuracy" for a classifier, "r2" for a regressor.
    n_folds : int, default=5
        Number of folds, stratified by class and shuffled; as many as the smallest class of two
        samples or more has if those are fewer. Groups of samples are not kept whole, so that a
        study with groups or blocks refuses it.
    n_repeats : int, default=5
        Number of permutations of each feature in each fold.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds and of the permutations.
    origin : ndarray of int, shape (n_columns,), default=None
        Feature, or group of features, of each column of X, from 0, e.g. a text of which each value
        has a column. The columns of one are permuted together, and each has its importance. None:
        each is a feature. A study sets it where `dataset.prepare` makes several columns of a
        feature.

    Attributes
    ----------
    estimator_ : estimator
        The estimator fitted to all samples.
    feature_importances_ : ndarray of shape (n_features,)
        Importance of each feature, or that of the feature of each column, in units of the metric,
        >= 0.
    classes_ : ndarray of shape (n_classes,)
        Class labels; only of a classifier.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features; only if X had names.

    Raises
    ------
    ConfigError
        In `fit`: a parameter is invalid.

    References
    ----------
    .. [1] L. Breiman, "Random Forests", Machine Learning 45, 2001; computed by
       `sklearn.inspection.permutation_importance`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    >>> ranked = PermutationImportance(model, n_repeats=2).fit(X, y)
    >>> importances = ranked.feature_importances_
    >>> importances.shape, ranked.feature_names_in_[importances.argmax()]
    ((13,), 'flavanoids')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "metric": [str, None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "origin": [np.ndarray, None],
    }

    #: `Capabilities.score_scale`: what is lost without a feature is that of all its columns
    #: already.
    score_scale = "weight"

    estimator_: Any
    feature_importances_: FloatArray

    #: A study refuses it where its folds keep samples together.
    ranks_by_permutation: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        metric: str | None = None,
        *,
        n_folds: int = 5,
        n_repeats: int = 5,
        random_state: Any = 0,
        origin: IntArray | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.random_state = random_state
        self.origin = origin

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the estimator, and measure the importance of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), (n_samples, n_labels) or (n_samples, n_quantities)
            Labels or quantities.

        Returns
        -------
        self
            The fitted estimator.
        """
        validate_params(self)
        measure = metric(self.metric or ("r2" if self._is_regressor else "accuracy"), "metric")
        self.estimator_ = fit_to_labels(self.estimator, X, np.asarray(y))
        samples, labels = indexable(validate_data(self, X, skip_check_array=True), np.asarray(y))
        labels = squeeze_column(labels)
        target = find_target(labels)

        def loss(train: IntArray, test: IntArray) -> FloatArray:
            known = target.known(labels[train])
            model = fit_to_labels(self.estimator, _safe_indexing(samples, train), labels[train])
            classes = getattr(model, "classes_", known)
            left_out = _safe_indexing(samples, test)

            def score(fitted: Any, values: Any, true: LabelArray) -> float:
                if self.origin is not None:  # the values are numbers of rows, one for each feature
                    values = left_out[values[:, self.origin], np.arange(len(self.origin))]
                return measure(true, measure.output(fitted, values, true), classes)

            cells = left_out
            if self.origin is not None:  # the numbers of the rows, once for each feature
                cells = np.repeat(np.arange(len(test))[:, None], 1 + self.origin.max(), axis=1)
            drop = permutation_importance(
                model,
                cells,
                labels[test],
                scoring=score,
                n_repeats=self.n_repeats,
                random_state=self.random_state,
            ).importances_mean
            if self.origin is None:
                return drop
            return drop[self.origin]

        losses = np.array([loss(train, test) for train, test in self._folds(labels)])
        mean = losses.mean(axis=0)
        # What losses and gains of the folds leave by rounding is no loss.
        self.feature_importances_ = np.where(mean > _ROUNDING * np.abs(losses).max(), mean, 0.0)
        return self

    def _folds(self, y: LabelArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield training and held-out samples; the only sample of a class is in none."""
        if self._is_regressor or has_columns(y):
            splitter, rows = KFold, np.arange(len(y))
            n_folds = len(y) // 2  # a metric of one sample may be undefined
        else:
            splitter, (classes, counts) = StratifiedKFold, np.unique(y, return_counts=True)
            several = counts >= min(2, counts.max())
            rows, n_folds = np.flatnonzero(np.isin(y, classes[several])), counts[several].min()
        n_folds = max(2, min(self.n_folds, n_folds))
        folds = splitter(n_folds, shuffle=True, random_state=self.random_state).split(
            rows[:, None], y[rows]
        )
        for train, test in folds:
            yield rows[train], rows[test]

    @property
    def classes_(self) -> LabelArray:
        """Class labels of the fitted estimator."""
        classes: LabelArray = self.estimator_.classes_
        return classes

    @available_if(wrapped_has("predict"))
    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict by the estimator fitted to all samples."""
        return self._fitted.predict(X)

    @available_if(wrapped_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Compute class probabilities by the estimator fitted to all samples."""
        return self._fitted.predict_proba(X)

    @available_if(wrapped_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the decision function of the estimator fitted to all samples."""
        return self._fitted.decision_function(X)

    @available_if(wrapped_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Compute the score of the estimator fitted to all samples."""
        return float(self._fitted.score(X, y))

    @property
    def _is_regressor(self) -> bool:
        return tagged_type(self.estimator) == "regressor"

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not hasattr(self.estimator, "__sklearn_tags__"):
            return tags
        wrapped = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = wrapped.estimator_type, wrapped.target_tags
        tags.classifier_tags, tags.regressor_tags = wrapped.classifier_tags, wrapped.regressor_tags
        tags.input_tags = replace(
            wrapped.input_tags, sparse=False, allow_nan=allows_nan(self.estimator)
        )
        tags.non_deterministic = wrapped.non_deterministic
        return tags
