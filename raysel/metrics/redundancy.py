"""How much the selected features repeat each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import FloatArray
from raysel.errors import DataError

#: Features correlated with all others at a time: bounds the memory whatever the number selected.
_BLOCK = 512


def redundancy(X: ArrayLike, features: ArrayLike) -> float:
    """Mean absolute correlation between the selected features (RED): smaller is better.

        RED = 2 / (k (k - 1)) sum_{f < g} |r_fg|,    r_fg Pearson's correlation over all samples

    This is what Table II of Hou et al. (IEEE TIP 26(9), 2017) reports; the paper's equation 36 as
    printed is half of it. A constant feature has r = 0 with every other.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    features : array-like of int, shape (k,), or of bool, shape (n_features,)
        The selected columns.

    Returns
    -------
    float
        Between 0 and 1; 0 for fewer than two features, which have no pair.

    Raises
    ------
    DataError
        If ``features`` names a column that is not there, or one twice.

    Examples
    --------
    >>> X = [[0, 0, 7], [1, 2, 7], [2, 4, 7]]
    >>> round(redundancy(X, [0, 1]), 6), redundancy(X, [0, 2])
    (1.0, 0.0)
    """
    values = np.asarray(X, dtype=np.float64)
    columns = _columns(features, values.shape[1])
    k = len(columns)
    if k < 2:
        return 0.0
    Z = _standardised(values[:, columns])
    total = 0.0
    for start in range(0, k, _BLOCK):
        block = np.abs(Z[:, start : start + _BLOCK].T @ Z[:, start:])
        width = len(block)
        total += np.triu(block[:, :width], k=1).sum() + block[:, width:].sum()
    return min(1.0, 2 * float(total) / (k * (k - 1)))


def _columns(features: ArrayLike, d: int) -> np.ndarray:
    columns = np.asarray(features)
    if columns.dtype == bool:
        if columns.shape != (d,):
            raise DataError(f"features is a mask of shape {columns.shape}; X has {d} columns.")
        return np.flatnonzero(columns)
    columns = columns.astype(np.int64).ravel()
    if len(columns) and (columns.min() < 0 or columns.max() >= d):
        raise DataError(f"features names columns {columns.min()} to {columns.max()}; X has columns 0 to {d - 1}.")
    if len(np.unique(columns)) < len(columns):
        raise DataError("features names a column twice; give each one once.")
    return columns


def _standardised(values: FloatArray) -> FloatArray:
    """Columns of mean 0 and norm 1; constant ones, known by their range and not by rounding, of zeros."""
    constant = np.ptp(values, axis=0) == 0
    centred = values - values.mean(axis=0)
    centred[:, constant] = 0.0
    centred /= np.where(constant, 1.0, np.abs(centred).max(axis=0))  # the squares below neither vanish nor overflow
    centred /= np.where(constant, 1.0, np.linalg.norm(centred, axis=0))
    return centred
