"""Functions of the filters that select one feature after another: the next feature, and scores of the order."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray

#: Values that differ by less than this share of their size are equal: rounding must not decide between copies.
_TIED = 1e-10


def first_largest(values: FloatArray, sizes: FloatArray | float = 1.0) -> int:
    """Index of the largest value; of values that are equal up to rounding the first.

    `values` and `sizes` are (n_features,).
    """
    best = int(values.argmax())
    size = max(float(sizes[best]) if isinstance(sizes, np.ndarray) else sizes, abs(float(values[best])))
    return int(np.argmax(values >= values[best] - _TIED * size))


def order_scores(order: IntArray, others: FloatArray) -> FloatArray:
    """Scores that decrease along an order of features and are lower for all other features.

    `order` is (n_ordered,), `others` (n_features,); returns (n_features,).
    """
    scores = others.copy()
    scores[order] = 0.0
    largest = scores.max()
    if largest > 0:
        scores /= 2.0 * largest
    scores[order] = np.arange(len(order), 0, -1)
    return scores
