"""Orders and ranks of features by their scores."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray


def descending_order(scores: FloatArray) -> IntArray:
    """Feature indices from the largest score to the smallest; ties go to the lower index.

    `scores` is (n_features,); returns (n_features,).
    """
    return np.argsort(-scores, kind="stable").astype(np.int64)


def ranks(scores: FloatArray) -> IntArray:
    """Rank of each feature, 1 for the largest score; ties go to the lower index.

    `scores` is (n_features,); returns (n_features,).
    """
    result = np.empty(len(scores), dtype=np.int64)
    result[descending_order(scores)] = np.arange(1, len(scores) + 1)
    return result


def selection_ranks(scores: FloatArray) -> FloatArray:
    """Rank of each feature, where features without a score share the mean of the last ranks.

    A score of 0 or less counts as none: among such features there is no order, and none of them is selected. Equal
    scores above 0 are ranked by their index.

    `scores` is (n_features,); returns (n_features,).
    """
    result = ranks(scores).astype(np.float64)
    unscored = scores <= 0
    if unscored.any():
        result[unscored] = len(scores) - (unscored.sum() - 1) / 2
    return result
