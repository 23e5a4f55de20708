"""Linear classifiers that pose one two-class problem a class, or one a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from raysel.arrays import FloatArray, LabelArray
from raysel.errors import DataError
from raysel.solvers.base import LinearSelector


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
    multilabel_ : bool
    """

    multilabel_: bool

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

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) of 0 and 1
        """
        if getattr(self, "multilabel_", False):
            return (self.decision_function(X) > 0).astype(np.int64)
        return super().predict(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
