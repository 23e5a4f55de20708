"""Class of the nearest training sample, in single precision wherever that is certain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import sgemm

from raysel.core.arrays import BoolArray, FloatArray, IntArray

#: Distances that differ by less than the rounding error count as equal: their order depends on that
#: of the samples.
PRECISION = 16 * np.finfo(np.float64).eps
#: Number of features whose copies are held at once.
WIDEST = 2**12
#: Number of distances in a block of test samples, so that the block stays in a core's cache.
_CACHED = 2**18
#: Number of differences of features that are held at once.
_DIFFERENCES = 2**18
#: Number of samples whose values are tested first for being exact in single precision.
_FEW = 16


def nearest_class(
    X_train: FloatArray,
    codes: IntArray,
    X_test: FloatArray,
    order: IntArray,
    n_features: Sequence[int],
) -> IntArray:
    """Find the most frequent class among the nearest samples in the best ``n`` features.

    Squared distances are computed in single precision with a bound of their error. Where it leaves
    several classes possible, they are computed again in double precision, from the set of the
    features. So predictions depend on that set alone, neither on the order of the features nor on
    the other ``n``.

    `X_train` is (n_train, d), `codes` (n_train,) from 0, `X_test` (n_test, d), `order` (d,),
    `n_features` at most `WIDEST`; returns (len(n_features), n_test).
    """
    features, n_classes = order[: n_features[-1]], int(codes.max()) + 1
    centre = middle(X_train, features)
    test, train = (np.take(X, features, axis=1) - centre for X in (X_test, X_train))
    # A power of two rounds nothing, and keeps squares within the range of single precision.
    largest = max(float(x.max(initial=0.0)) for x in (test, -test, train, -train))
    scale = 2.0 ** -max(math.frexp(largest)[1], -1000)
    a, b = test * scale, train * scale
    of_a, of_b = (np.add.reduceat(x * x, [0, *n_features[:-1]], axis=1).T for x in (a, b))
    # The error of a sum of n + 2p rounded terms, relative to ||a||^2 + 2 ||b||^2; 8 more for the
    # rounding of a, of b and of the limit, and for distances that count as equal.
    terms = 0 if _exact(a, b) else n_features[-1] + 2 * len(n_features) + 8
    share, smallest = terms / (2**24 - terms), terms * float(np.finfo(np.float32).tiny)
    # ||a - b||^2 - ||a||^2 = (a, 1) . (-2b, ||b||^2), less the part of its error that b bounds.
    left, right = (
        _rows(a, n_features, np.ones_like(of_a)),
        _rows(-2 * b, n_features, (1 - 2 * share) * of_b),
    )
    error_a, error_b = (
        (2 * share * x.cumsum(axis=0) + smallest).astype(np.float32) for x in (of_a, 2 * of_b)
    )

    def counted(row: IntArray, column: IntArray, n_rows: int) -> IntArray:
        return np.bincount(row * n_classes + codes[column], minlength=n_rows * n_classes).reshape(
            n_rows, n_classes
        )

    predicted = np.empty((len(n_features), len(test)), dtype=np.int64)
    block = max(16, _CACHED // len(train))
    for first in range(0, len(test), block):
        rows = slice(first, first + block)
        nearest = _nearest(left[:, rows].copy(), right, error_a[:, rows], error_b, n_features)
        for position, (column, several, (row, other)) in enumerate(nearest):
            predicted[position, rows] = codes[column]
            if not len(several):
                continue
            counts = counted(row, other, len(several))
            unsure = np.flatnonzero(np.count_nonzero(counts, axis=1) > 1)
            if terms and len(unsure):
                # In the order of the data, so that the set alone decides; once for test samples of
                # the same values, such as empty corners of pictures, at whose distance hundreds of
                # training samples may be.
                columns = np.argsort(features[: n_features[position]])
                best_test, best_train = (
                    np.take(X, columns, axis=1) for X in (test[rows][several], train)
                )
                first_alike: dict[bytes, int] = {}
                alike = [first_alike.setdefault(best_test[i].tobytes(), i) for i in unsure.tolist()]
                pairs = np.flatnonzero(np.isin(np.arange(len(counts)), alike)[row])
                farther = pairs[~_tied(best_test, best_train, row[pairs], other[pairs])]
                counts -= counted(row[farther], other[farther], len(counts))
                counts[unsure] = counts[alike]
            predicted[position, first + several] = counts.argmax(axis=1)
    return predicted


def middle(X: FloatArray, features: IntArray) -> FloatArray:
    """Median of some samples. `X` is (n, d), `features` (n_features,); returns (n_features,)."""
    # Centred at it no precision is lost far from zero or to an outlier, and integers stay exact, so
    # that tied distances between them stay tied.
    centre: FloatArray = np.median(X[:: max(1, len(X) // 9), features], axis=0)
    return centre


def _exact(a: FloatArray, b: FloatArray) -> bool:
    """Whether single precision rounds no distance: values are multiples of a power of two."""
    # Below 1 in size: the sum of n terms of at most 4 has 2 * bits digits after the point, of 24 in
    # all.
    factor = 2.0 ** (int(21 - math.log2(a.shape[1])) // 2)
    parts = (a[:_FEW], b[:_FEW], a, b)  # most data fail at once
    return all(_are_integers(part * factor) for part in parts)


def _are_integers(x: FloatArray) -> bool:
    return np.array_equal(x, x.astype(np.int32))


def _rows(X: FloatArray, n_features: Sequence[int], last: FloatArray) -> NDArray[np.float32]:
    """Features as rows, and after those of each number of features one of ``last``.

    Returns (n_rows, n_samples).
    """
    rows = np.empty((X.shape[1] + len(n_features), len(X)), dtype=np.float32)
    for position, (start, stop) in enumerate(pairwise([0, *n_features])):
        rows[start + position : stop + position] = X[:, start:stop].T
        rows[stop + position] = last[position]
    return rows


def _nearest(
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    error_left: NDArray[np.float32],
    error_right: NDArray[np.float32],
    n_features: Sequence[int],
) -> Iterator[tuple[IntArray, IntArray, tuple[IntArray, IntArray]]]:
    """Yield the nearest training sample of each test sample, for each number of features.

    Then the test samples that others may be as near to, and all pairs of a place among these and a
    training sample.
    """
    lower = np.empty((left.shape[1], right.shape[1]), dtype=np.float32)
    rows = np.arange(len(lower))
    for position, (start, stop) in enumerate(pairwise([0, *n_features])):
        piece = slice(start + position, stop + position + 1)
        sgemm(
            1.0,
            right[piece].T,
            left[piece].T,
            min(position, 1),
            lower.T,
            trans_b=True,
            overwrite_c=True,
        )
        nearest = lower.argmin(axis=1)
        least = lower[rows, nearest]
        limit = least + (error_right[position, nearest] + error_left[position])
        # A second search is half of the time of comparing all with the limit.
        lower[rows, nearest] = np.inf
        several = np.flatnonzero(lower[rows, lower.argmin(axis=1)] <= limit)
        lower[rows, nearest] = least
        yield (
            nearest,
            several,
            np.divmod(np.flatnonzero(lower[several] <= limit[several, None]), lower.shape[1]),
        )


def _tied(test: FloatArray, train: FloatArray, row: IntArray, column: IntArray) -> BoolArray:
    """Whether each training sample is one of the nearest to its test sample; `row` is sorted."""
    squared = np.empty(len(row))
    step = max(1, _DIFFERENCES // test.shape[1])
    for first in range(0, len(row), step):
        pairs = slice(first, first + step)
        squared[pairs] = ((test[row[pairs]] - train[column[pairs]]) ** 2).sum(axis=1)
    error = PRECISION * (train**2).sum(axis=1)[column]
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    limit = (
        np.minimum.reduceat(squared + error, starts)
        + PRECISION * (test**2).sum(axis=1)[row[starts]]
    )
    tied: BoolArray = squared - error <= np.repeat(limit, np.diff(starts, append=len(row)))
    return tied
