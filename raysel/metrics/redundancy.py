"""Redundancy of a feature selection: how strongly the selected features are correlated with each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.arrays import FloatArray, IntArray
from raysel.errors import ConfigError

#: Number of features whose correlations with the better ones are held at once.
_BLOCK = 1024


def redundancy(X: FloatArray, order: IntArray, n_features: Sequence[int]) -> FloatArray:
    """Mean absolute correlation of the pairs among the best ``n`` features, for each ``n``.

        RED = 2 / (n (n - 1)) sum_(i > j) |r_ij|

    with r_ij the Pearson correlation of the features i and j over all given samples; it is 0 with a constant feature.
    This is the redundancy rate of Zhao et al., which sums over pairs with absolute values; labels are not used.

    The correlations for the largest ``n`` contain those for the others, so all cost O(n_samples n^2) together.

    Z. Zhao, L. Wang, H. Liu, J. Ye, "On Similarity Preserving Feature Selection", IEEE TKDE 25(3), 2013.

    `X` is (n_samples, d), `order` (n,); returns (len(n_features),).
    """
    if min(n_features) < 1:
        raise ConfigError(f"n_features={list(n_features)} must be numbers of features, 1 or more.")
    sizes = np.minimum(n_features, len(order))
    # Less a sample and of size 1: neither a large offset nor squares of a small or large unit cost digits.
    chosen = np.take(X, order[: sizes.max()], axis=1).astype(np.float64)
    chosen -= chosen[0].copy()
    largest = np.abs(chosen).max(axis=0)
    chosen /= np.where(largest > 0, largest, 1.0)
    chosen -= chosen.mean(axis=0)
    norms = np.linalg.norm(chosen, axis=0)
    chosen /= np.where(norms > 0, norms, 1.0)
    with_better = np.zeros(chosen.shape[1])  # sum over the better features j of |r_ij|
    for start in range(0, chosen.shape[1], _BLOCK):
        stop = min(start + _BLOCK, chosen.shape[1])
        correlations = np.abs(chosen[:, start:stop].T @ chosen[:, :stop])
        with_better[start:stop] = np.tril(correlations, start - 1).sum(axis=1)
    sums = np.concatenate([[0.0], np.cumsum(with_better)])[sizes]
    n_pairs = sizes * (sizes - 1) / 2
    return np.divide(sums, n_pairs, out=np.full(len(sizes), np.nan), where=n_pairs > 0)
