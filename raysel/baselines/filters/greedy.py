"""Functions of the filters that select one feature after another: the next feature, and scores of the order."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray

#: Values that differ by less than this share of their size are equal: rounding must not decide between copies.
_TIED = 1e-10


def first_largest(values: FloatArray, sizes: FloatArray | float = 1.0) -> int:
    """Index of the largest value; of values that are equal up to rounding the first.

    Parameters
    ----------
    values : ndarray of shape (n_features,)
        Value of each candidate; -inf for features that are none.
    sizes : ndarray of shape (n_features,) or float, default=1.0
        Size of the terms whose difference each value is, in the same units; it bounds the rounding error.

    Returns
    -------
    int
        The index.

    Examples
    --------
    >>> import numpy as np
    >>> first_largest(np.array([0.1, 0.3, 0.1 + 0.2]))
    1
    """
    best = int(values.argmax())
    size = max(float(sizes[best]) if isinstance(sizes, np.ndarray) else sizes, abs(float(values[best])))
    return int(np.argmax(values >= values[best] - _TIED * size))


def order_scores(order: IntArray, others: FloatArray) -> FloatArray:
    """Scores that decrease along an order of features and are lower for all other features.

    Parameters
    ----------
    order : ndarray of int, shape (n_ordered,)
        Features in the order of their selection.
    others : ndarray of shape (n_features,)
        Values, not negative, by which the features that are not in ``order`` are ranked after it.

    Returns
    -------
    ndarray of shape (n_features,)
        ``n_ordered, ..., 2, 1`` along the order; for the others their value divided by twice the largest, so that they
        lie in [0, 0.5].

    Examples
    --------
    >>> import numpy as np
    >>> order_scores(np.array([3, 0]), np.array([0.0, 4.0, 1.0, 9.0]))
    array([1.   , 0.5  , 0.125, 2.   ])
    """
    scores = others.copy()
    scores[order] = 0.0
    largest = scores.max()
    if largest > 0:
        scores /= 2.0 * largest
    scores[order] = np.arange(len(order), 0, -1)
    return scores
