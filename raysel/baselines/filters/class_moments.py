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

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.

    Returns
    -------
    ndarray of shape (n_features,)
        The powers.

    Examples
    --------
    >>> power_units(np.array([[3.0, 0.2, 0.0], [-4.0, 0.1, 0.0]]))
    array([0.125, 4.   , 1.   ])
    """
    exponents = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))[1]
    return np.ldexp(1.0, -np.clip(exponents, -_MOST, _MOST))


def class_moments(X: FloatArray, codes: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each class and sum of the squared deviations from it, for ratios that no offset or unit changes.

    Each feature is divided by a power of two, so that squares neither overflow nor vanish, and each class is reduced by
    one of its samples, so that deviations far smaller than the values keep their digits and the scatter of equal values
    is exactly 0. The means are those of the feature less its value in the first sample.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    codes : ndarray of int64, shape (n_samples,)
        Class of each sample.
    counts : ndarray of int64, shape (n_classes,)
        Number of samples of each class, at least 1.

    Returns
    -------
    means : ndarray of shape (n_classes, n_features)
        Means, in units of a power of two for each feature.
    scatters : ndarray of shape (n_classes, n_features)
        Sums of squared deviations, in squares of these units.

    Examples
    --------
    >>> X = np.array([[1e9 + 1, 5.0], [1e9 + 3, 5.0], [1e9 + 7, 5.0]])
    >>> means, scatters = class_moments(X, np.array([0, 0, 1]), np.array([2, 1]))
    >>> means[:, 0] * 2**30, scatters[:, 0] * 2**60
    (array([1., 6.]), array([2., 0.]))
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
