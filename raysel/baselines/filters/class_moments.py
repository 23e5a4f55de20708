"""Means and scatters of the classes, feature by feature, exact enough for features of any offset and unit."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, IntArray

#: Number of values that are centred at once, so that they stay in a core's cache.
_CACHED = 2**16

#: Largest exponent of a power of two whose inverse is a normal number too.
_MOST = 1000


def power_units(X: FloatArray) -> FloatArray:
    """Power of two for each feature that makes its largest absolute value about 1; a product with it is not rounded.

    `X` is (n_samples, n_features); returns (n_features,).
    """
    exponents = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))[1]
    return np.ldexp(1.0, -np.clip(exponents, -_MOST, _MOST))


def class_moments(X: FloatArray, codes: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each class and sum of the squared deviations from it, for ratios that no offset or unit changes.

    Each feature is divided by a power of two, so that squares neither overflow nor vanish, and each class is reduced by
    one of its samples, so that deviations far smaller than the values keep their digits and the scatter of equal values
    is exactly 0. The means are those of the feature less its value in the first sample.

    `X` is (n_samples, n_features), `codes` (n_samples,), `counts` (n_classes,); returns `means`
    (n_classes, n_features), `scatters` (n_classes, n_features).
    """
    n, d = X.shape
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(counts) - counts
    sizes = counts[:, None].astype(np.float64)
    means, scatters = np.empty((len(counts), d)), np.empty((len(counts), d))
    step = max(1, _CACHED // n)
    for start in range(0, d, step):
        part = slice(start, start + step)
        block = X[:, part]
        unit = power_units(block)
        origin = block[0] * unit
        block = block[order] * unit
        first = block[starts]
        block -= np.repeat(first, counts, axis=0)
        shifts = np.add.reduceat(block, starts, axis=0) / sizes
        block -= np.repeat(shifts, counts, axis=0)
        means[:, part] = first - origin + shifts
        scatters[:, part] = np.add.reduceat(np.square(block, out=block), starts, axis=0)
    return means, scatters
