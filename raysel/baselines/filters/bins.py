"""Equal-width bins of features, and the mutual information of binned features with the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raysel.arrays import FloatArray, IntArray

#: Bin of each value; as many bins as the type holds.
BinArray: TypeAlias = NDArray[np.uint8]

#: Largest number of bins.
MOST_BINS = 256

#: Number of values whose codes are counted at once, so that the codes stay in a core's cache.
_CACHED = 2**16


@dataclass(frozen=True)
class BinRange:
    """Range of each feature over a training set, which is divided into bins of equal width."""

    #: Minimum of each feature; shape (n_features,).
    low: FloatArray
    #: Maximum less minimum of each feature; 1 for constant features; shape (n_features,).
    width: FloatArray

    def bins_of(self, X: FloatArray, bins: int) -> BinArray:
        """Bin of each value, ``min(floor(bins (x - low) / width), bins - 1)``.

        `X` is (n_samples, n_features); returns (n_samples, n_features).
        """
        scaled = X - self.low
        scaled *= bins
        scaled /= self.width
        return np.minimum(scaled, bins - 1, out=scaled).astype(np.uint8)


def bin_range(X: FloatArray) -> BinRange:
    """Find the range of each feature. `X` is (n_samples, n_features)."""
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    return BinRange(low, np.where(width > 0, width, 1.0))


def count_terms(n: int) -> FloatArray:
    """Table of ``k log2 k`` for k = 0 .. n, of which entropies of counts are sums. Returns (n + 1,)."""
    k = np.arange(n + 1.0)
    k[1:] *= np.log2(k[1:])
    return k


def information(binned: BinArray, bins: int, codes: IntArray, counts: IntArray) -> FloatArray:
    """Mutual information of each binned feature f and the classes y, ``H(f) + H(y) - H(f, y)``.

    With n_b, n_r and n_br samples in bin b, class r and both, and t(k) = k log2 k, it is
    ``log2 l + (sum_br t(n_br) - sum_b t(n_b) - sum_r t(n_r)) / l``.

    `binned` is (n_samples, n_features), `codes` (n_samples,), `counts` (n_classes,); returns
    (n_features,).
    """
    n, d = binned.shape
    terms, cells = count_terms(n), bins * len(counts)
    gained = np.empty(d)
    step = max(1, _CACHED // n)
    for start in range(0, d, step):
        block = binned[:, start : start + step]
        width = block.shape[1]
        places = block + codes[:, None] * bins
        places += cells * np.arange(width)
        joint = np.bincount(places.ravel(), minlength=width * cells).reshape(width, len(counts), bins)
        gained[start : start + width] = terms[joint].sum(axis=(1, 2)) - terms[joint.sum(axis=1)].sum(axis=1)
    return np.maximum(np.log2(n) + (gained - terms[counts].sum()) / n, 0.0)
