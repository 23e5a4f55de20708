"""Nearest-neighbour classifier on all features."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.iterative import OneShotEstimator
from raysel.base.one_against_rest import OneAgainstRestClassifier, SignedTarget, signed_target
from raysel.core.arrays import BoolArray, FloatArray, Interval, LabelArray


class NearestNeighbor(OneShotEstimator, OneAgainstRestClassifier):
    """Classification by the nearest training samples in all features, by scikit-learn's KNeighborsClassifier.

    It is the reference for feature selection. Distances are Euclidean, several modalities are concatenated. For a
    multi-label target each label that more than half of the neighbours have is predicted.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number of neighbours, which have equal votes; more than the training samples count as all of them.

    Attributes
    ----------
    samples_ : ndarray of shape (n_samples, n_features)
        Training samples.
    targets_ : ndarray of int64, shape (n_samples,) or (n_samples, n_labels)
        Position of each training sample's class in ``classes_``, or an indicator of 0 and 1.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    objective_path_ : ndarray of shape (1,)
        0, because the method minimises nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> NearestNeighbor().fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_neighbors": [Interval(Integral, 1, None, closed="left")]}

    samples_: FloatArray

    def __init__(self, n_neighbors: int = 1) -> None:
        self.n_neighbors = n_neighbors

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which more neighbours come first."""
        return (-float(self.n_neighbors),)

    def prepare(self, X: FloatArray, y: LabelArray) -> SignedTarget:
        """Encode the labels."""
        return signed_target(y)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: SignedTarget) -> Iterator[float]:
        self._keep_target(prepared)
        self.samples_ = X
        self.targets_ = (prepared.signs.T > 0).astype(np.int64)
        if not self.multilabel_:
            one_hot = len(self.classes_) > 2
            self.targets_ = self.targets_.argmax(axis=1) if one_hot else self.targets_[:, 0]
        yield 0.0

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute how much closer each class is than all others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Distance to the nearest training sample of another class (without the label) minus that to the nearest one
            of the class (with the label); for two classes that of the second one. A label that all or no training
            sample has gets 1 or -1. With ``n_neighbors`` above 1 the largest value may belong to another class than
            the predicted one.
        """
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        members = self._members()
        chunks = pairwise_distances_chunked(features, self.samples_, reduce_func=lambda D, _: _margins(D, members))
        values: FloatArray = np.concatenate(list(chunks))
        return values if len(self.classes_) > 2 or self.multilabel_ else values[:, 0]

    def _members(self) -> BoolArray:
        """Mask of the training samples of each class or with each label, of shape (n_problems, n_samples)."""
        if self.multilabel_:
            return self.targets_.T > 0
        wanted = np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.array([1])
        return self.targets_ == wanted[:, None]

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the most frequent class among the nearest training samples, the first of equally frequent ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Predicted classes, or an indicator of 0 and 1 for a multi-label target.
        """
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        machine = KNeighborsClassifier(min(self.n_neighbors, len(self.samples_))).fit(self.samples_, self.targets_)
        predicted: LabelArray = machine.predict(features)
        return predicted if self.multilabel_ else self.classes_[predicted]


def _margins(distances: FloatArray, members: BoolArray) -> FloatArray:
    """Difference of the distances to the nearest non-member and to the nearest member, (n, n_problems)."""
    values = np.empty((len(distances), len(members)))
    for value, inside in zip(values.T, members, strict=True):
        if inside.all() or not inside.any():
            value[:] = 1.0 if inside.all() else -1.0
        else:
            value[:] = distances[:, ~inside].min(axis=1) - distances[:, inside].min(axis=1)
    return values
