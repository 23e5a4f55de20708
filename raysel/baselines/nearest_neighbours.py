"""Nearest-neighbour classifiers: by the nearest samples, and ML-kNN by counts of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances_chunked
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from raysel.base.classifiers import (
    OneAgainstRestClassifier,
    SignedTarget,
    positive_classes,
    signed_target,
)
from raysel.base.estimator import COUNT, POSITIVE, OneShotEstimator
from raysel.baselines.mcgf import ROUNDING
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray


class NearestNeighbor(OneShotEstimator, OneAgainstRestClassifier):
    """Classification by the nearest training samples, by scikit-learn's KNeighborsClassifier.

    It is the reference for feature selection. Distances are Euclidean, several modalities are
    concatenated. For a multi-label target each label that more than half of the neighbours have is
    predicted.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number of neighbours, which have equal votes; more than the training samples count as all of
        them.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_neighbors": [COUNT]}

    samples_: FloatArray

    simpler_first = ("-n_neighbors",)

    def __init__(self, n_neighbors: int = 1) -> None:
        self.n_neighbors = n_neighbors

    def prepare(self, X: FloatArray, y: LabelArray) -> SignedTarget:
        """Encode the labels."""
        return signed_target(y)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: SignedTarget) -> Iterator[float]:
        self._keep_target(prepared)
        self.samples_ = X
        self.targets_ = (prepared.signs.T > 0).astype(np.int64)
        if self.targets_.shape[1] == 1:
            self.targets_ = self.targets_[:, 0]
        elif not self.multilabel_:
            self.targets_ = self.targets_.argmax(axis=1)
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
            Distance to the nearest training sample of another class (without the label) minus that
            to the nearest one of the class (with the label); for two classes that of the second
            one. A label that all or no training sample has gets 1 or -1. With ``n_neighbors`` above
            1 the largest value may belong to another class than the predicted one.
        """
        features = self._checked(X)
        members = self._members()
        chunks = pairwise_distances_chunked(
            features, self.samples_, reduce_func=lambda D, _: _margins(D, members)
        )
        return self._take_second(np.concatenate(list(chunks)))

    def _members(self) -> BoolArray:
        """Mask (n_problems, n_samples) of the training samples of each class or label."""
        if self.multilabel_:
            return self.targets_.T > 0
        return self.targets_ == positive_classes(len(self.classes_))[:, None]

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the most frequent class among the nearest samples, of several the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            Predicted classes, or an indicator of 0 and 1 for a multi-label target.
        """
        features = self._checked(X)
        machine = KNeighborsClassifier(min(self.n_neighbors, len(self.samples_))).fit(
            self.samples_, self.targets_
        )
        predicted: LabelArray = machine.predict(features)
        if self.multilabel_:
            return predicted
        return self.classes_[predicted]


def _margins(distances: FloatArray, members: BoolArray) -> FloatArray:
    """Distance to the nearest non-member less that to the nearest member, (n, n_problems)."""
    values = np.empty((len(distances), len(members)))
    for value, inside in zip(values.T, members, strict=True):
        if inside.all():
            value[:] = 1.0
        elif not inside.any():
            value[:] = -1.0
        else:
            value[:] = distances[:, ~inside].min(axis=1) - distances[:, inside].min(axis=1)
    return values


#: Number of neighbours that are prepared; configurations with more search for theirs.
PREPARED_NEIGHBORS = 64
#: Entries of the matrix of distances that is computed at a time.
_BATCH_ENTRIES = 2**22


@dataclass(frozen=True)
class PreparedNeighbours:
    """Target and nearest neighbours of a training set."""

    target: SignedTarget
    #: Indices of each sample's nearest other samples, nearest first; shape (n_samples,
    #: min(n_samples - 1, 64)).
    neighbours: IntArray


class MLkNN(OneShotEstimator, OneAgainstRestClassifier):
    """ML-kNN: predicts labels by the numbers of nearest neighbours that have them.

        P(l | j) = P1_l L1_l[j] / (P1_l L1_l[j] + (1 - P1_l) L0_l[j])
        P1_l = (s + n_l) / (2 s + n)
        L1_l[j] = (s + c1_l[j]) / (s (k + 1) + sum_j c1_l[j]),   L0_l[j] accordingly from c0_l

    for n training samples, of which n_l have label l, k neighbours by the Euclidean distance and
    the smoothing s. c1_l[j] is the number of training samples with label l, and c0_l[j] that of
    those without it, for which j of the k neighbours have label l; a sample is not its own
    neighbour. Several modalities are concatenated. With one label a sample the class of the largest
    probability is predicted.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours, at most n - 1; a larger value counts as n - 1.
    smoothing : float, default=1.0
        Number s that is added to each count, above 0.

    Attributes
    ----------
    samples_ : ndarray of shape (n_samples, n_features)
        Training samples.
    labelled_ : ndarray of bool, shape (n_samples, n_problems)
        Whether each training sample has each class or label; for two classes one column, that of
        the second.
    priors_ : ndarray of shape (n_problems,)
        P1_l.
    likelihoods_ : ndarray of shape (2, k + 1, n_problems)
        L0_l[j] and L1_l[j].
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    objective_path_ : ndarray of shape (1,)
        0, because the method minimises nothing.

    Notes
    -----
    Of training samples at the same distance the first ones are the neighbours. The implementations
    in scikit-multilearn differ: they count a training sample as its own neighbour.

    References
    ----------
    Zhang & Zhou, "ML-KNN: A lazy learning approach to multi-label learning", Pattern Recognition
    40, 2007, doi:10.1016/j.patcog.2006.12.019.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=0)
    >>> model = MLkNN(n_neighbors=5).fit(X[:150], Y[:150])
    >>> bool((model.predict(X[150:]) == Y[150:]).mean() > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [COUNT],
        "smoothing": [POSITIVE],
    }

    samples_: FloatArray
    priors_: FloatArray
    likelihoods_: FloatArray

    simpler_first = ("-n_neighbors", "-smoothing")

    def __init__(self, n_neighbors: int = 10, smoothing: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedNeighbours:
        """Find the nearest neighbours of the training samples."""
        return PreparedNeighbours(signed_target(y), nearest_others(X, PREPARED_NEIGHBORS))

    def _updates(
        self, X: FloatArray, y: LabelArray, prepared: PreparedNeighbours
    ) -> Iterator[float]:
        k = min(self.n_neighbors, len(X) - 1)
        neighbours = prepared.neighbours
        if k > PREPARED_NEIGHBORS:
            neighbours = nearest_others(X, k)
        labelled = prepared.target.signs.T > 0
        n, n_problems = labelled.shape
        counts = label_counts(labelled, neighbours[:, :k])
        cells = (labelled * (k + 1) + counts) * n_problems + np.arange(n_problems)
        tables = np.bincount(cells.ravel(), minlength=2 * (k + 1) * n_problems).reshape(
            2, k + 1, n_problems
        )
        s = self.smoothing
        self._keep_target(prepared.target)
        self.samples_, self.labelled_ = X, np.ascontiguousarray(labelled)
        self.priors_ = (s + labelled.sum(axis=0)) / (2 * s + n)
        self.likelihoods_ = (s + tables) / (s * (k + 1) + tables.sum(axis=1, keepdims=True))
        yield 0.0

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the probabilities of the classes or labels minus 1/2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            P(l | j) - 1/2 of each class or label; for two classes that of the second one.
        """
        features = self._checked(X)
        k = self.likelihoods_.shape[1] - 1
        counts = label_counts(self.labelled_, nearest(features, self.samples_, k))
        without, having = np.take_along_axis(self.likelihoods_, counts[None], axis=1)
        having, without = self.priors_ * having, (1 - self.priors_) * without
        # P - 1/2, without the rounding of P: its sign is exactly that of the difference.
        return self._take_second(0.5 * (having - without) / (having + without))

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of the largest probability, or labels of at least 1/2.

        Of classes with equal probabilities the most frequent one of the training set is predicted,
        of equally frequent ones the first.

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
        if self.multilabel_:
            return (self.decision_function(X) >= 0).astype(np.int64)
        return super().predict(X)


def nearest_others(X: FloatArray, most: int) -> IntArray:
    """Find the nearest other samples of each sample.

    `X` is (n, d); returns (n, min(most, n - 1)).
    """
    return nearest(X, X, min(most, len(X) - 1), leave_out_own=True)


def nearest(X: FloatArray, others: FloatArray, k: int, *, leave_out_own: bool = False) -> IntArray:
    """Find the nearest of some samples, the first ones of those at the same distance.

    scikit-learn's ``NearestNeighbors`` chooses among samples at the same distance by the number of
    threads.

    `X` is (n, d), `others` (n_others, d); returns (n, k).
    """
    neighbours = np.empty((len(X), k), dtype=np.int64)
    centre = others.mean(axis=0)
    centred, others_centred = X - centre, others - centre
    largest = float((others_centred**2).sum(axis=1).max())
    for rows in gen_batches(len(X), max(1, _BATCH_ENTRIES // len(others))):
        squared = euclidean_distances(centred[rows], others_centred, squared=True)
        if leave_out_own:
            squared[np.arange(len(squared)), np.arange(rows.start, rows.stop)] = np.inf
        # The matrix product rounds, and so does centring: the nearest ones are compared again by
        # their differences.
        slack = 2 * ROUNDING * ((centred[rows] ** 2).sum(axis=1) + largest)
        bounds = np.partition(squared, k - 1, axis=1)[:, k - 1] + slack
        for row, sample, distances, bound in zip(
            neighbours[rows], X[rows], squared, bounds, strict=True
        ):
            near = np.flatnonzero(distances <= bound)
            exact = ((others[near] - sample) ** 2).sum(axis=1)
            row[:] = near[np.argsort(exact, kind="stable")[:k]]
    return neighbours


def label_counts(labelled: LabelArray, neighbours: IntArray) -> IntArray:
    """Count the neighbours that have each label.

    `labelled` is (n_train, n_labels), `neighbours` (n, k); returns (n, n_labels).
    """
    counts = np.zeros((len(neighbours), labelled.shape[1]), dtype=np.int64)
    for nearest in neighbours.T:  # one neighbour at a time: no array of n x k x n_labels
        counts += labelled[nearest]
    return counts
