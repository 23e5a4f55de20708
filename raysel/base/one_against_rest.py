"""Linear classifiers that pose one two-class problem a class, or one a label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.capabilities import Capabilities
from raysel.base.selector import LinearSelector
from raysel.errors import DataError


@dataclass(frozen=True)
class SignedTarget:
    """A target as two-class problems.

    Attributes
    ----------
    signs : ndarray of shape (n_problems, n_samples)
        1 for the class or label, -1 for the rest; one row, that of the second class, for two classes.
    classes : ndarray of shape (n_classes,)
        The classes, or 0, 1, ... for labels.
    multilabel : bool
    """

    signs: FloatArray
    classes: LabelArray
    multilabel: bool

    @property
    def counts(self) -> IntArray:
        """Samples of each class, (n_classes,), or without and with each label, (n_labels, 2)."""
        above = np.count_nonzero(self.signs > 0, axis=1)
        if len(self.classes) > 2 and not self.multilabel:
            return above
        sides = np.column_stack([self.signs.shape[1] - above, above])
        return sides if self.multilabel else sides[0]


def signed_target(y: ArrayLike) -> SignedTarget:
    """One problem a class, or one a label.

    Parameters
    ----------
    y : array-like of shape (n_samples,), or (n_samples, n_labels) of 0/1 or -1/1

    Returns
    -------
    SignedTarget

    Raises
    ------
    DataError
        If y holds one class only, or is neither labels nor an indicator.

    Examples
    --------
    >>> signed_target(["a", "b", "b"]).signs
    array([[-1.,  1.,  1.]])
    """
    y = np.asarray(y)
    multilabel = y.ndim == 2 and y.shape[1] > 1
    if multilabel:
        positive, classes = _positive_labels(y), np.arange(y.shape[1])
    else:
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y holds one class only ({classes[0]!s}): at least two classes are needed.")
        columns = np.arange(len(classes)) if len(classes) > 2 else np.array([1])
        positive = codes.reshape(-1, 1) == columns
    return SignedTarget(np.ascontiguousarray(np.where(positive.T, 1.0, -1.0)), classes, multilabel)


def _positive_labels(y: LabelArray) -> LabelArray:
    """Where an indicator holds 1; it may say 0 or -1 elsewhere."""
    if type_of_target(y) != "multilabel-indicator" or not set(np.unique(y)) <= {-1, 0, 1}:
        found = ", ".join(map(repr, np.unique(y)[:5].tolist()))
        raise DataError(f"y of shape {y.shape} holds {found}: give labels, or an indicator of 0/1 or -1/1.")
    return y > 0


class OneAgainstRest(LinearSelector):
    """A linear classifier of classes, each against the rest, or of any number of labels a sample.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        For a multi-label target 0, 1, ..., one a label.
    class_count_ : ndarray of int64, shape (n_classes,), or (n_labels, 2) for a multi-label target
        Training samples of each class; without and with each label.
    multilabel_ : bool
    """

    capabilities: ClassVar[Capabilities] = replace(LinearSelector.capabilities, multilabel=True)

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

    def predict(self, X: ArrayLike) -> LabelArray:
        """The class of largest score, or for a multi-label target each label whose score is positive.

        Among equal scores the most frequent class of the training set wins, the first of equally frequent ones; a
        label (or the second of two classes) whose score is 0 is given where more training samples have it than not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) of 0 and 1
        """
        values = self.decision_function(X)
        if values.ndim == 2 and not self.multilabel_:
            order = np.argsort(-self.class_count_, kind="stable")
            chosen: LabelArray = self.classes_[order[values[:, order].argmax(axis=1)]]
            return chosen
        majority = self.class_count_[..., 1] > self.class_count_[..., 0]
        positive = np.where(values == 0, majority, values > 0).astype(np.int64)
        return positive if self.multilabel_ else self.classes_[positive]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
