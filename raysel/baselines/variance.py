"""Ranking of the features by their variance, a reference that does not use the labels."""

from __future__ import annotations

import numpy as np

from raysel.baselines.filter import Filter
from raysel.core.arrays import FloatArray, LabelArray, column_blocks


class Variance(Filter):
    """Ranking by variance, a reference for the selectors in a comparison.

        score_j = 1/l sum_i (x_ij - m_j)^2,   m_j the mean of feature j over the l samples

    The labels are not used. The order depends on the scales of the features: standardised features are all equal.

    Parameters
    ----------
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Variance of each feature, in squared units of the feature; 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        Mean variance.

    Examples
    --------
    >>> import numpy as np
    >>> Variance().fit(np.array([[1.0, 5.0], [3.0, 5.0]]), [0, 1]).scores_
    array([1., 0.])
    """

    def __init__(self, n_features_to_select: int | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute the variances."""
        return np.concatenate([block.var(axis=0) for block in column_blocks(X)])

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        return prepared, prepared.mean()
