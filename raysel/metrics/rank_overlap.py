"""Rank-biased overlap: agreement of two rankings in which the first ranks weigh most."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from raysel.arrays import FloatArray, IntArray
from raysel.errors import ConfigError, DataError

_LEAST, _MOST = 1e-6, 1 - 1e-9  # range in which p is sought


def rank_biased_overlap(first: ArrayLike, second: ArrayLike, p: float) -> float:
    r"""Rank-biased overlap of two rankings, extrapolated beyond their ends, after Webber, Moffat & Zobel.

    With X_d the number of features among the first d of both, s the length of the shorter ranking and l that of the
    longer one (equation 32 of the source below):

        (1-p)/p ( sum_{d=1..l} X_d/d p^d + sum_{d=s+1..l} X_s (d-s)/(s d) p^d ) + ( (X_l - X_s)/l + X_s/s ) p^l

    It is the sum over all depths d of the share of features in common, weighted by (1-p) p^(d-1), where the agreement
    at the end of a ranking is taken to go on behind it.

    W. Webber, A. Moffat, J. Zobel, "A similarity measure for indefinite rankings", ACM Transactions on Information
    Systems 28(4), 2010.
    """
    short, long = sorted((_checked(first), _checked(second)), key=len)
    _check_share("p", p)
    if not len(short):
        return float("nan")
    depth = np.zeros(max(short.max(), long.max()) + 1, dtype=np.int64)  # from which a feature is in both; 0: never
    depth[short] = np.arange(1, len(short) + 1)
    both = np.where(depth[long] > 0, np.maximum(depth[long], np.arange(1, len(long) + 1)), 0)
    common = np.cumsum(np.bincount(both[both > 0], minlength=len(long) + 1))[1:]
    return _extrapolated(common.astype(np.float64), len(short), p)


def top_weight(p: float, n: int) -> float:
    """Return the share of the weight of the rank-biased overlap that the first ranks have.

    A rank counts in the agreement at every depth from it on (equation 21 of Webber, Moffat & Zobel 2010):

        1 - p^(n-1) + (1-p)/p n ( log(1/(1-p)) - sum_{i=1..n-1} p^i/i )
    """
    i = np.arange(1, n)
    rest = -np.log1p(-p) - np.sum(p**i / i)
    return float(1 - p ** (n - 1) + (1 - p) / p * n * rest)


def persistence(n: int, share: float = 0.9) -> float:
    """Return the p for which the first n ranks have a given share of the weight."""
    _check_share("share", share)
    if n < 1:
        raise ConfigError(f"n={n!r} must be a whole number of at least 1.")
    if not top_weight(_MOST, n) < share < top_weight(_LEAST, n):
        raise ConfigError(f"share={share!r} of the weight on the first {n} ranks needs a p too near 0 or 1; try 0.9.")
    return float(brentq(lambda p: top_weight(p, n) - share, _LEAST, _MOST, xtol=1e-12))


def _extrapolated(common: FloatArray, s: int, p: float) -> float:
    """Equation 32, for the number of common features at each depth 1 .. l."""
    n = len(common)
    depths = np.arange(1, n + 1)
    weights = p**depths / depths
    # Behind the end of the shorter ranking its agreement X_s / s is taken to go on.
    assumed = common[s - 1] / s * np.maximum(depths - s, 0)
    inside = (1 - p) / p * np.sum((common + assumed) * weights)
    return float(inside + ((common[-1] - common[s - 1]) / n + common[s - 1] / s) * p**n)


def _checked(ranking: ArrayLike) -> IntArray:
    indices = np.asarray(ranking)
    if not indices.size:
        return np.zeros(0, dtype=np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or indices.min() < 0:
        raise DataError("a ranking must be a sequence of feature indices, 0 or more, best first.")
    if len(np.unique(indices)) < len(indices):
        raise DataError("a ranking names a feature twice; name each once.")
    return indices.astype(np.int64)


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ConfigError(f"{name}={value!r} must lie between 0 and 1, e.g. 0.9.")
