"""Score of a feature that was prepared as several columns, comparable with that of one.

The length of the scores of m columns grows with m, and with more than m where a method gives
columns of rare values larger scores than numbers, even of noise. So a feature is also tested by
itself, whatever the method. With orthonormal bases Q of its n centred values and U of the centred
labels (a column for each class, label or quantity) the statistic

    V = n ||Q'U||^2

is Pillai's trace times n, for a text and classes Pearson's chi-squared statistic. Without
information V is about chi-squared with r a degrees of freedom, r and a the numbers of columns of Q
and U. The statistic V_1 of a single column that noise exceeds as often is, by the cube roots of
Wilson and Hilferty (PNAS 17, 1931), which are nearly normal,

    V_1^(1/3) = a^(1/3) (1 - 2/(9 a) + sqrt(r) ((V / (a r))^(1/3) - 1 + 2/(9 a r))).

The squared score of a feature whose columns have the scores s_k is, with sums over the features j
of one column,

    min( V_1 / V sum_k s_k^2,  V_1 sum_j s_j^2 / sum_j V_j )

and the first of both where its V_1 is larger than all V_j. Of weights and places, which have no
squares, it is the largest of its columns, but it has no better place than by V_1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from raysel.core.arrays import FloatArray, IntArray
from raysel.numerics.linear_algebra import centre, thin_svd


class OwnStatistics(NamedTuple):
    """How well each feature tells the labels by itself."""

    #: V of all columns of each feature; shape (n_features,).
    joint: FloatArray
    #: V of a single column that noise exceeds as often, V_1; shape (n_features,).
    single: FloatArray


def own_statistics(
    X: FloatArray, contrasts: FloatArray, origin: IntArray, n_features: int
) -> OwnStatistics:
    """Compute the statistics of features by their columns.

    `X` is (n_samples, n_columns), `contrasts`, those of the target, (n_samples, n_contrasts),
    `origin`, the feature of each column, (n_columns,); both statistics are 0 of a feature without
    columns or of constant ones.
    """
    labels = _basis(contrasts)
    degrees = labels.shape[1]
    counts = np.bincount(origin, minlength=n_features)
    joint, single = np.zeros((2, n_features))
    if not degrees:
        return OwnStatistics(joint, single)
    alone = np.flatnonzero(counts[origin] == 1)
    values = _unit_columns(X[:, alone])
    joint[origin[alone]] = len(X) * ((labels.T @ values) ** 2).sum(axis=0)
    single[:] = joint
    for feature in np.flatnonzero(counts > 1):
        basis = _basis(X[:, origin == feature])
        joint[feature] = len(X) * ((basis.T @ labels) ** 2).sum()
        single[feature] = _reduce_to_one_column(joint[feature], basis.shape[1], degrees)
    return OwnStatistics(joint, single)


def _basis(columns: FloatArray) -> FloatArray:
    """Orthonormal basis of the centred columns; shape (n_samples, rank)."""
    return thin_svd(_unit_columns(columns))[0]


def _unit_columns(columns: FloatArray) -> FloatArray:
    """Centred columns of length 1, or 0 of constant ones."""
    centred = centre(columns)[1]
    largest = np.abs(centred).max(axis=0, initial=0.0)
    centred /= np.where(largest > 0, largest, 1.0)  # squares neither overflow nor vanish
    lengths = np.linalg.norm(centred, axis=0)
    return centred / np.where(lengths > 0, lengths, 1.0)


def _reduce_to_one_column(value: float, rank: int, degrees: int) -> float:
    """V_1 of the V of several columns."""
    if not rank:
        return 0.0
    root = np.cbrt(value / (degrees * rank)) - 1.0 + 2.0 / (9.0 * degrees * rank)
    one = max(1.0 - 2.0 / (9.0 * degrees) + np.sqrt(rank) * root, 0.0)
    return float(min(degrees * one**3, value))


def joint_scores(
    scores: FloatArray,
    origin: IntArray,
    n_features: int,
    *,
    statistics: OwnStatistics | None,
    scale: str,
) -> FloatArray:
    """Return a score for each feature that does not grow with its number of columns.

    `scores` and `origin`, the feature of each column, are (n_columns,); returns (n_features,), 0 of
    a feature without columns. ``scale`` is what the scores are: "effect", "squared", or "weight"
    and "place". Without ``statistics``, as where there are no labels, the mean is taken.
    """
    counts = np.bincount(origin, minlength=n_features)
    known = statistics is not None and bool(statistics.joint.any())
    own = statistics if statistics is not None and known else _expect_statistics(counts)
    if (counts <= 1).all():
        joint = np.zeros(n_features)
    elif scale in ("weight", "place"):
        joint = _placed(scores, origin, own) if known else _means(scores, origin, counts)
    elif scale == "squared":
        joint = _joint(np.sqrt(np.maximum(scores, 0.0)), origin, counts, own) ** 2
    else:
        joint = _joint(scores, origin, counts, own)
    alone = counts[origin] == 1
    joint[origin[alone]] = scores[alone]  # not rounded
    return joint


def _expect_statistics(counts: IntArray) -> OwnStatistics:
    """Statistics of which nothing is known: those that are expected without information."""
    return OwnStatistics(counts.astype(np.float64), np.minimum(counts, 1.0))


def _means(scores: FloatArray, origin: IntArray, counts: IntArray) -> FloatArray:
    return np.bincount(origin, scores, len(counts)) / np.maximum(counts, 1)


def _joint(
    scores: FloatArray, origin: IntArray, counts: IntArray, own: OwnStatistics
) -> FloatArray:
    """Join scores that are sizes of an effect, as coefficients; infinite ones stay."""
    infinite = np.isposinf(scores)
    finite = np.where(infinite, 0.0, np.maximum(scores, 0.0))
    unit = float(finite.max(initial=0.0)) or 1.0
    sums = np.bincount(origin, (finite / unit) ** 2, len(counts))
    shares = np.divide(own.single, own.joint, out=np.zeros(len(counts)), where=own.joint > 0)
    squares, single = sums * shares, counts == 1
    if own.single[single].any():
        expected = own.single * (sums[single].sum() / own.single[single].sum())
        best = own.single > own.single[single].max()
        squares = np.where(best, squares, np.minimum(squares, expected))
    joint = unit * np.sqrt(squares)
    joint[origin[infinite]] = np.inf
    return joint


def _placed(scores: FloatArray, origin: IntArray, own: OwnStatistics) -> FloatArray:
    """Largest score of each feature's columns in a place that the feature has by itself."""
    largest = np.full(len(own.single), -np.inf)
    np.maximum.at(largest, origin, scores)
    largest[np.isneginf(largest)] = 0.0  # a feature without columns
    places = rankdata(-own.single, method="min").astype(np.int64)
    ordered = np.append(np.sort(largest)[::-1], 0.0)
    between = (ordered[places - 1] + ordered[places]) / 2.0  # of the others, if it is larger
    return np.where(places == 1, largest, np.minimum(largest, between))
