"""Ranking of the features at random, the reference row that every selector should beat."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from raysel.baselines.filter import Filter
from raysel.core.arrays import FloatArray, LabelArray


class RandomRanking(Filter):
    """Random order of the features, a reference for the selectors in a comparison.

    The scores are a random permutation of 1/n_features, 2/n_features, ..., 1; they depend neither on X nor on y.

    Parameters
    ----------
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. None: NumPy's global generator.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Position of each feature in the random order, from 1/n_features (last) to 1 (first); 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        0: nothing is optimised.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> sorted(RandomRanking(random_state=0).fit(X, y).ranking_.tolist())
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    """

    def __init__(
        self, n_features_to_select: int | None = None, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def prepare(self, X: FloatArray, y: LabelArray) -> tuple[()]:
        """Prepare nothing: configurations have nothing to share."""
        return ()

    def _rate(self, X: FloatArray, prepared: tuple[()]) -> tuple[FloatArray, float]:
        d = X.shape[1]
        return (check_random_state(self.random_state).permutation(d) + 1.0) / d, 0.0
