"""Classifiers by one binary problem for each class or label, linear or not."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from raysel.base.estimator import Capabilities, Estimator
from raysel.base.selector import LinearSelector
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.numerics.classes import distinct_classes


@dataclass(frozen=True)
class SignedTarget:
    """Target of one binary problem for each class or label."""

    #: 1 for samples of the class or label, -1 for the others; shape (n_problems, n_samples).
    signs: FloatArray
    #: Class labels, or 0, 1, ... for a multi-label target; shape (n_classes,).
    classes: LabelArray
    multilabel: bool

    @property
    def counts(self) -> IntArray:
        """Number of samples of each class, (n_classes,), or without and with each label, (n_labels, 2)."""
        above = np.count_nonzero(self.signs > 0, axis=1)
        if len(self.classes) > 2 and not self.multilabel:
            return above
        sides = np.column_stack([self.signs.shape[1] - above, above])
        return sides if self.multilabel else sides[0]


def signed_target(y: ArrayLike) -> SignedTarget:
    """Make one binary problem for each class or label. `y` is (n_samples,) or (n_samples, n_labels)."""
    y = np.asarray(y)
    multilabel = y.ndim == 2 and y.shape[1] > 1
    if multilabel:
        positive, classes = _positive_labels(y), np.arange(y.shape[1])
    else:
        classes, codes = distinct_classes(y)
        columns = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
        positive = codes.reshape(-1, 1) == columns
    return SignedTarget(np.ascontiguousarray(np.where(positive.T, 1.0, -1.0)), classes, multilabel)


def _positive_labels(y: LabelArray) -> LabelArray:
    """Mask of the entries 1 of an indicator of 0/1 or -1/1."""
    if type_of_target(y) != "multilabel-indicator" or not set(np.unique(y)) <= {-1, 0, 1}:
        values = ", ".join(map(repr, np.unique(y)[:5].tolist()))
        raise DataError(f"y of shape {y.shape} holds {values}: give labels, or an indicator of 0/1 or -1/1.")
    return y > 0


class OneAgainstRestClassifier(ClassifierMixin, Estimator):
    """Base class of classifiers with a score for each class against the rest, which also support multi-label targets.

    A method also derives from `IterativeEstimator` or `OneShotEstimator`, implements ``decision_function`` and calls
    ``_keep_target`` when it is fitted. By default it ranks no features.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... for a multi-label target.
    class_count_ : ndarray of int64, shape (n_classes,) or (n_labels, 2)
        Number of training samples of each class; for a multi-label target without and with each label.
    multilabel_ : bool
        Whether the target was multi-label.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(ranks=False, predicts=True, multilabel=True)

    classes_: LabelArray
    class_count_: IntArray
    multilabel_: bool

    def _keep_target(self, target: SignedTarget) -> None:
        """Set the fitted attributes that the labels alone determine."""
        self.classes_, self.multilabel_, self.class_count_ = target.classes, target.multilabel, target.counts

    def _validate_data(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, LabelArray]:
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            features, target = validate_data(
                self, X, y, dtype=np.float64, order="C", ensure_min_samples=2, multi_output=True
            )
            check_classification_targets(target)
            return features, target
        return super()._validate_data(X, y)

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes or labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class or label; for two classes that of the second one. A label is predicted where it is
            positive.
        """

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of largest score, or for a multi-label target all labels of positive score.

        Of classes with equal scores the most frequent one of the training set is predicted, of equally frequent ones
        the first. A label (or the second of two classes) with score 0 is predicted if most training samples have it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Predicted classes, or an indicator of 0 and 1 for a multi-label target.
        """
        values = self.decision_function(X)
        if values.ndim == 2 and not self.multilabel_:
            order = np.argsort(-self.class_count_, kind="stable")
            return self.classes_[order[values[:, order].argmax(axis=1)]]
        majority = self.class_count_[..., 1] > self.class_count_[..., 0]
        positive = np.where(values == 0, majority, values > 0).astype(np.int64)
        return positive if self.multilabel_ else self.classes_[positive]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


class OneAgainstRest(OneAgainstRestClassifier, LinearSelector):
    """Base class of linear classifiers of one class against the rest, which rank the features by their coefficients."""

    capabilities: ClassVar[Capabilities] = replace(LinearSelector.capabilities, multilabel=True)

    decision_function = LinearSelector.decision_function
