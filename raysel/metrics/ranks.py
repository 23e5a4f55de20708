"""From scores to orders and ranks; ties go to the lower index, so equal scores never depend on chance."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray


def descending_order(scores: FloatArray) -> IntArray:
    """Feature indices from the largest score to the smallest.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of int64, shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> descending_order(np.array([0.5, 2.0, 2.0]))
    array([1, 2, 0])
    """
    return np.argsort(-scores, kind="stable").astype(np.int64)


def ranks(scores: FloatArray) -> IntArray:
    """Rank of each feature, 1 for the largest score.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)

    Returns
    -------
    ndarray of int64, shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> ranks(np.array([0.5, 2.0, 2.0]))
    array([3, 1, 2])
    """
    result = np.empty(len(scores), dtype=np.int64)
    result[descending_order(scores)] = np.arange(1, len(scores) + 1)
    return result
