"""Nearest neighbours for increasing numbers of the best features, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dgemm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, fit_context
from raysel.core.errors import DataError
from raysel.data.targets import has_columns
from raysel.evaluation.nearest_class import PRECISION, WIDEST, middle, nearest_class
from raysel.numerics.classification import distance_differences

#: Number of distances in a block of test samples, so that the block stays in a core's cache.
_CACHED = 2**16


def knn_path(
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
    n_neighbors: int = 1,
) -> LabelArray:
    """Predict by the nearest neighbours in the best ``n`` features, for each ``n``.

    The squared distance over the best n features is the one over the best m < n features plus the
    contribution of the features in between, so predicting for all ``n`` costs about as much as
    predicting for the largest.

    `X_train` is (n_train, d), `y_train` (n_train,), `X_test` (n_test, d), `order` (d,); returns
    (len(n_features), n_test) or (len(n_features), n_test, n_labels).
    """
    n_neighbors = min(n_neighbors, len(X_train))
    multilabel = has_columns(y_train)
    classes, codes = _encode(y_train)
    if set_decides(y_train, n_features[-1], n_neighbors):
        return classes[nearest_class(X_train, codes, X_test, order, n_features)]
    predicted = np.empty((len(n_features), len(X_test), *codes.shape[1:]), dtype=codes.dtype)
    for block in _distances(X_train, X_test, order, n_features):
        votes = _votes(block, codes, len(classes), n_neighbors)
        winners = votes.argmax(axis=1)
        if multilabel:
            winners = votes > n_neighbors / 2
        predicted[block.position, block.rows] = winners.astype(codes.dtype)
    return classes[predicted]


def knn_shares(
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
    n_neighbors: int = 1,
) -> FloatArray:
    """Share of each class, or label, among the nearest neighbours in the best ``n`` features.

    `X_train` is (n_train, d), `y_train` (n_train,), `X_test` (n_test, d), `order` (d,); returns
    (len(n_features), n_test, n_classes) or (len(n_features), n_test, n_labels).
    """
    n_neighbors = min(n_neighbors, len(X_train))
    classes, codes = _encode(y_train)
    n_columns = codes.shape[1] if has_columns(y_train) else len(classes)
    shares = np.empty((len(n_features), len(X_test), n_columns))
    for block in _distances(X_train, X_test, order, n_features):
        shares[block.position, block.rows] = (
            _votes(block, codes, len(classes), n_neighbors) / n_neighbors
        )
    return shares


def _encode(y: LabelArray) -> tuple[LabelArray, IntArray]:
    """Return the values of y, sorted, and their positions: (n_samples,), or an indicator."""
    if has_columns(y):
        return np.arange(2), y
    return np.unique(y, return_inverse=True)


def set_decides(y_train: LabelArray, n_features: int, n_neighbors: int) -> bool:
    """Whether `knn_path` predicts the same bits for the same features in another order."""
    return n_neighbors == 1 and not has_columns(y_train) and n_features <= WIDEST


def knn_scores(
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
) -> FloatArray:
    """Score each class by the distances to the nearest samples in the best ``n`` features.

    The score of a class is the distance to the nearest training sample of another class minus that
    to the nearest of its own; that of a label, the distance to the nearest sample without it minus
    that to the nearest with it.

    `X_train` is (n_train, d), `y_train` (n_train,), `X_test` (n_test, d), `order` (d,); returns
    (len(n_features), n_test, n_classes).
    """
    if has_columns(y_train):
        return _label_scores(X_train, y_train, X_test, order, n_features)
    _, codes = np.unique(y_train, return_inverse=True)
    by_class = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[by_class], prepend=-1))
    scores = np.empty((len(n_features), len(X_test), len(starts)))
    for block in _distances(X_train[by_class], X_test, order, n_features):
        nearest = np.minimum.reduceat(block.squared, starts, axis=1)
        scores[block.position, block.rows] = distance_differences(_rooted(nearest, block))
    return scores


def _label_scores(
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
) -> FloatArray:
    """Score each label; returns (len(n_features), n_test, n_labels)."""
    having = [label == 1 for label in y_train.T]
    scores = np.empty((len(n_features), len(X_test), len(having)))
    for block in _distances(X_train, X_test, order, n_features):
        sides = [
            [block.squared[:, m].min(axis=1, initial=np.inf) for m in (~label, label)]
            for label in having
        ]
        without, having_it = (
            _rooted(np.stack(side, axis=1), block) for side in zip(*sides, strict=True)
        )
        scores[block.position, block.rows] = without - having_it
    return scores


class _Distances(NamedTuple):
    """Squared distances in some best features, for a block of test samples."""

    position: int  # of the number of features
    rows: slice  # of the test samples
    squared: FloatArray  # (n_rows, n_train), up to the squared norm of each test sample
    of_test: FloatArray  # (n_rows,), PRECISION times the squared norms of the test samples
    # (n_train,), as of_test; the sum of both bounds the rounding error of a distance
    of_train: FloatArray


def _pieces(n_features: Sequence[int]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield the columns that are computed at once, and whether a number of features ends there."""
    for position, (start, stop) in enumerate(pairwise([0, *n_features])):
        for first in range(start, stop, WIDEST):
            yield position, first, min(first + WIDEST, stop), first + WIDEST >= stop


def _distances(
    X_train: FloatArray, X_test: FloatArray, order: IntArray, n_features: Sequence[int]
) -> Iterator[_Distances]:
    """Yield the distances of each block of test samples; the arrays are reused."""
    features = order[: n_features[-1]]
    pieces = list(_pieces(n_features))
    centre = middle(X_train, features)

    def part(first: int, stop: int) -> tuple[FloatArray, FloatArray]:
        # ||a - b||^2 - ||a||^2 = (a, 1) . (-2b, ||b||^2); ||a||^2 is the same for all b.
        a, b = (X[:, features[first:stop]] - centre[first:stop] for X in (X_test, X_train))
        return np.insert(a, stop - first, 1.0, axis=1), np.insert(
            -2.0 * b, stop - first, (b * b).sum(1), axis=1
        )

    narrow = []
    if n_features[-1] <= WIDEST:
        narrow = [part(first, stop) for _, first, stop, _ in pieces]
    block = max(16, _CACHED // len(X_train))
    for first in range(0, len(X_test), block):
        rows = slice(first, first + block)
        distances = np.zeros((len(X_test[rows]), len(X_train)))
        of_test, of_train = np.zeros(len(distances)), np.zeros(len(X_train))
        for number, (position, first_column, stop, last) in enumerate(pieces):
            a, b = narrow[number] if narrow else part(first_column, stop)
            dgemm(1.0, b.T, a[rows].T, 1.0, distances.T, trans_a=True, overwrite_c=True)
            of_test += PRECISION * (a[rows, :-1] ** 2).sum(axis=1)
            of_train += PRECISION * b[:, -1]
            if last:
                yield _Distances(position, rows, distances, of_test, of_train)


def _rooted(nearest: FloatArray, block: _Distances) -> FloatArray:
    """Distances from squared ones that lack the test samples' squared norms."""
    # They are rounded to single precision: equal distances must give equal scores, whatever their
    # last bits.
    norms = (block.of_test / PRECISION)[:, None]
    squared = nearest + norms
    # Near zero the sample has about the norm of its neighbour.
    squared[squared <= 3 * PRECISION * norms] = 0.0
    rounded: FloatArray = np.sqrt(squared).astype(np.float32).astype(np.float64)
    return rounded


def _votes(block: _Distances, codes: IntArray, n_classes: int, n_neighbors: int) -> FloatArray:
    """Votes for each class or label, of all samples that are tied with the last neighbour."""
    distances, rounding = block.squared, (block.of_test, block.of_train)
    rows = np.arange(len(distances))
    nearest = np.argpartition(distances, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    last = distances[rows, nearest]
    error = (rounding[0] + rounding[1][nearest])[:, None]
    within = distances - rounding[1] <= last[:, None] + error
    nearer = within & (distances + rounding[1] < last[:, None] - error)
    n_nearer = nearer.sum(axis=1)
    # The samples at the last neighbour's distance share the votes that the nearer ones leave.
    share = (n_neighbors - n_nearer) / (within.sum(axis=1) - n_nearer)
    row, column = np.nonzero(within)
    weights = np.where(nearer[row, column], 1.0, share[row])
    if codes.ndim == 2:
        shares = np.zeros((len(distances), codes.shape[1]))
        np.add.at(shares, row, weights[:, None] * codes[column])
        return shares.round(9)
    counts = np.bincount(row * n_classes + codes[column], weights, len(distances) * n_classes)
    votes: FloatArray = np.asarray(counts, dtype=np.float64)
    return votes.reshape(-1, n_classes).round(9)


class NearestNeighborsClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by the nearest training samples, as ``evaluation.classifier: knn`` scores.

    Unlike scikit-learn's KNeighborsClassifier it breaks ties independently of the order of the
    training samples: all samples at the distance of the last neighbour share the votes that the
    nearer ones leave, where distances that differ by less than their rounding error count as equal;
    see `raysel.evaluation.neighbours.knn_path`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")]
    }

    samples_: FloatArray
    labels_: LabelArray
    classes_: LabelArray
    n_features_in_: int

    def __init__(self, n_neighbors: int = 1) -> None:
        self.n_neighbors = n_neighbors

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep the training samples.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        several = has_columns(y)
        samples, labels = validate_data(
            self, X, y, dtype=np.float64, order="C", multi_output=several
        )
        check_classification_targets(labels)
        if several and not np.isin(labels, (0, 1)).all():
            raise DataError(f"y of shape {labels.shape} must be an indicator of 0 and 1.")
        self.samples_, self.labels_ = samples, labels
        self.classes_ = np.unique(labels)
        if several:
            self.classes_ = np.arange(labels.shape[1])
        return self

    def _checked(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        features: FloatArray = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return features

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the most frequent class among the nearest neighbours.

        `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_labels).
        """
        samples = self._checked(X)
        predicted: LabelArray = knn_path(
            self.samples_,
            self.labels_,
            samples,
            np.arange(samples.shape[1]),
            [samples.shape[1]],
            self.n_neighbors,
        )[0]
        return predicted

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Score each class by the distances to the nearest training samples.

        `X` is (n_samples, n_features); returns (n_samples, n_classes) or (n_samples,).
        """
        samples = self._checked(X)
        order, sizes = np.arange(samples.shape[1]), [samples.shape[1]]
        values = knn_scores(self.samples_, self.labels_, samples, order, sizes)[0]
        if len(self.classes_) == 2 and not has_columns(self.labels_):
            return values[:, 1]
        return values

    def predict_proba(self, X: ArrayLike) -> FloatArray | list[FloatArray]:
        """Return the share of each class among the nearest neighbours.

        `X` is (n_samples, n_features); returns (n_samples, n_classes), or a list of (n_samples, 2),
        the shares without and with each label.
        """
        samples = self._checked(X)
        order, sizes = np.arange(samples.shape[1]), [samples.shape[1]]
        shares: FloatArray = knn_shares(
            self.samples_, self.labels_, samples, order, sizes, self.n_neighbors
        )[0]
        if not has_columns(self.labels_):
            return shares
        return [np.stack([1 - share, share], axis=1) for share in shares.T]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
