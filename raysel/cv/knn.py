"""Nearest-neighbour accuracy all the way down a ranking, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.linalg.blas import dgemm

from raysel.arrays import FloatArray, IntArray, LabelArray

#: Distances that stay in a core's cache while the path goes down the ranking.
_CACHED = 2**16


def knn_path(
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
    n_neighbors: int = 1,
) -> LabelArray:
    """Predict with the best ``n`` features, for each ``n``, each distance summed once.

    Squared distances over the best n features are those over the best m < n plus the new features'
    share, so the whole path costs what its last point costs.

    Parameters
    ----------
    X_train : ndarray of shape (n_train, d)
    y_train : ndarray of shape (n_train,), or a 0/1 indicator of shape (n_train, n_labels)
    X_test : ndarray of shape (n_test, d)
    order : ndarray of int, shape (d,)
        Features, best first.
    n_features : sequence of int, increasing
    n_neighbors : int, default=1
        Votes are uniform and a tied vote goes to the smaller label. Samples at the same distance as the
        ``n_neighbors``-th nearest share the votes that the nearer ones leave, so the order of the samples does not
        matter: with one neighbour the most frequent class among the nearest samples is predicted.

    Returns
    -------
    ndarray of shape (len(n_features), n_test), or (len(n_features), n_test, n_labels)
        Predicted labels; of an indicator each label that more than half of the neighbours have.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0]])
    >>> knn_path(X, np.array(["a", "b"]), X, np.array([0, 1]), [1, 2]).tolist()
    [['a', 'b'], ['a', 'b']]
    """
    n_neighbors = min(n_neighbors, len(X_train))
    multilabel = y_train.ndim == 2
    classes, codes = (np.arange(2), y_train) if multilabel else np.unique(y_train, return_inverse=True)
    features = order[: n_features[-1]]
    # The median of some samples as origin: distances stay, no digit is lost far from zero or to a wild sample,
    # and whole numbers stay exact, so that their tied distances are tied here too.
    centre = np.median(X_train[:: max(1, len(X_train) // 9), features], axis=0)
    train, test = X_train[:, features] - centre, X_test[:, features] - centre
    # ||a - b||^2 but for ||a||^2, which all neighbours b of a share, is a product: (a, 1) . (-2b, ||b||^2).
    parts = []
    for start, stop in pairwise([0, *n_features]):
        a, b = test[:, start:stop], train[:, start:stop]
        parts.append(
            (np.insert(a, stop - start, 1.0, axis=1), np.insert(-2.0 * b, stop - start, (b * b).sum(1), axis=1))
        )
    predicted = np.empty((len(n_features), len(X_test), *codes.shape[1:]), dtype=codes.dtype)
    # Distances that differ by less than rounding are equal: which comes out smaller depends on the order of samples.
    precision = 16 * np.finfo(np.float64).eps
    block = max(16, _CACHED // len(X_train))
    for first in range(0, len(X_test), block):
        rows = slice(first, first + block)
        distances = np.zeros((len(test[rows]), len(X_train)))
        of_test, of_train = np.zeros(len(distances)), np.zeros(len(X_train))
        for chosen, (a, b) in zip(predicted, parts, strict=True):
            dgemm(1.0, b.T, a[rows].T, 1.0, distances.T, trans_a=True, overwrite_c=True)
            of_test += precision * (a[rows, :-1] ** 2).sum(axis=1)
            of_train += precision * b[:, -1]
            chosen[rows] = _vote(distances, (of_test, of_train), codes, len(classes), n_neighbors)
    return classes[predicted]


def _vote(
    distances: FloatArray, rounding: tuple[FloatArray, FloatArray], codes: IntArray, n_classes: int, n_neighbors: int
) -> IntArray:
    """Predicted codes of a block of samples.

    Parameters
    ----------
    distances : ndarray of shape (n_test, n_train)
        Squared, less what is the same for all training samples.
    rounding : (ndarray of shape (n_test,), ndarray of shape (n_train,))
        Bounds of the distances' rounding errors: those of the test samples plus those of the training samples.
    codes : ndarray of int, shape (n_train,) or (n_train, n_labels)
    n_classes, n_neighbors : int

    Returns
    -------
    ndarray of int, shape (n_test,) or (n_test, n_labels)
    """
    if n_neighbors > 1:
        return _shared_vote(distances, rounding, codes, n_classes, n_neighbors)
    nearest = distances.argmin(axis=1)
    predicted = codes[nearest]
    # Few samples have several nearest ones: those that may are found by a bound that is cheaper to compute.
    limit = distances[np.arange(len(distances)), nearest] + rounding[0] + 2.0 * rounding[1].max()
    tied = np.count_nonzero(distances <= limit[:, None], axis=1) > 1
    if tied.any():
        predicted[tied] = _shared_vote(distances[tied], (rounding[0][tied], rounding[1]), codes, n_classes, 1)
    return predicted


def _shared_vote(
    distances: FloatArray, rounding: tuple[FloatArray, FloatArray], codes: IntArray, n_classes: int, n_neighbors: int
) -> IntArray:
    """As `_vote`, with the votes of all samples that are tied with the last neighbour."""
    rows = np.arange(len(distances))
    nearest = np.argpartition(distances, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    last = distances[rows, nearest]
    error = (rounding[0] + rounding[1][nearest])[:, None]
    within = distances - rounding[1] <= last[:, None] + error
    nearer = within & (distances + rounding[1] < last[:, None] - error)
    n_nearer = nearer.sum(axis=1)
    # The samples at the last neighbour's distance share what the nearer ones leave.
    share = (n_neighbors - n_nearer) / (within.sum(axis=1) - n_nearer)
    row, column = np.nonzero(within)
    weights = np.where(nearer[row, column], 1.0, share[row])
    if codes.ndim == 2:
        shares = np.zeros((len(distances), codes.shape[1]))
        np.add.at(shares, row, weights[:, None] * codes[column])
        return (shares.round(9) > n_neighbors / 2).astype(codes.dtype)
    votes = np.bincount(row * n_classes + codes[column], weights, len(distances) * n_classes)
    return votes.reshape(-1, n_classes).round(9).argmax(axis=1)
