"""Orders and ranks of features by their scores."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray


def descending_order(scores: FloatArray) -> IntArray:
    """Feature indices from the largest score to the smallest; ties go to the lower index.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        Score of each feature; larger is better.

    Returns
    -------
    ndarray of int64, shape (n_features,)
        Index of the best feature first.

    Examples
    --------
    >>> import numpy as np
    >>> descending_order(np.array([0.5, 2.0, 2.0]))
    array([1, 2, 0])
    """
    return np.argsort(-scores, kind="stable").astype(np.int64)


def ranks(scores: FloatArray) -> IntArray:
    """Rank of each feature, 1 for the largest score; ties go to the lower index.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        Score of each feature; larger is better.

    Returns
    -------
    ndarray of int64, shape (n_features,)
        Rank of each feature, 1 .. n_features.

    Examples
    --------
    >>> import numpy as np
    >>> ranks(np.array([0.5, 2.0, 2.0]))
    array([3, 1, 2])
    """
    result = np.empty(len(scores), dtype=np.int64)
    result[descending_order(scores)] = np.arange(1, len(scores) + 1)
    return result


def selection_ranks(scores: FloatArray) -> FloatArray:
    """Rank of each feature, where features without a score share the mean of the last ranks.

    A score of 0 or less counts as none: among such features there is no order, and none of them is selected. Equal
    scores above 0 are ranked by their index.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        Score of each feature; larger is better.

    Returns
    -------
    ndarray of shape (n_features,)
        Rank of each feature; not a whole number for features without a score if their mean is not.

    Examples
    --------
    >>> import numpy as np
    >>> selection_ranks(np.array([0.0, 2.0, 0.0, 0.5]))
    array([3.5, 1. , 3.5, 2. ])
    """
    result = ranks(scores).astype(np.float64)
    unscored = scores <= 0
    if unscored.any():
        result[unscored] = len(scores) - (unscored.sum() - 1) / 2
    return result
