"""Stability of feature selection: agreement of the feature sets selected on different training samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.errors import DataError


@dataclass(frozen=True)
class Stability:
    """A stability index."""

    #: 1 for identical selections, 0 in expectation for independent random ones; NaN where it is not defined.
    value: float
    #: Why ``value`` is NaN; empty where it is not.
    reason: str = ""

    def __str__(self) -> str:
        return f"undefined ({self.reason})" if self.reason else f"{self.value:.2f}"


def nogueira_stability(selections: ArrayLike) -> Stability:
    r"""Stability of a feature selection over M training sets, after Nogueira, Sechidis & Brown.

    With Z the selections, p_f the share of the M sets that hold feature f, and k the mean size of a set (Definition 4
    and Theorem 7 of the source below):

        stability = 1 - mean_f( M/(M-1) p_f (1 - p_f) ) / v,    v = (k/d) (1 - k/d)

    For sets of one size the index is Kuncheva's. The published confidence interval is left out: it holds for many
    sets from independent samples, and the training sets of a cross-validation overlap (see
    ``experiments/fold-overlap``).

    S. Nogueira, K. Sechidis, G. Brown, "On the Stability of Feature Selection Algorithms", JMLR 18(174), 2018.

    `selections` is (n_sets, n_features).
    """
    Z = _checked(selections)
    n_sets = len(Z)
    if n_sets == 1:
        return Stability(np.nan, "one selection says nothing about others")
    if Z.all() or not Z.any():
        return Stability(np.nan, "every set holds all features" if Z.all() else "no feature is selected")
    p = Z.mean(axis=0)
    size = p.mean()  # k / d
    return Stability(float(1 - n_sets / (n_sets - 1) * np.mean(p * (1 - p)) / (size * (1 - size))))


def stability_at_every_n(ranks: FloatArray, n_scored: IntArray) -> FloatArray:
    """`nogueira_stability` of the N best features with a score of each ranking, for N from 1 to d; NaN as there."""
    n_sets, d = ranks.shape
    if n_sets == 1:
        return np.full(d, np.nan)
    scored = ranks <= n_scored[:, None]
    in_order = np.sort(np.where(scored, ranks, d + 1), axis=0).astype(np.int64)  # behind the last N: never selected
    # The j-th ranking to select a feature adds 1 to its count and 2j - 1 to the square of its count.
    added = np.repeat(2.0 * np.arange(1, n_sets + 1) - 1, d)
    squares = np.cumsum(np.bincount(in_order.ravel(), added, minlength=d + 2)[1 : d + 1])
    counts = np.cumsum(np.bincount(in_order.ravel(), minlength=d + 2)[1 : d + 1])
    spread = counts / n_sets - squares / n_sets**2  # the sum over the features of p (1 - p)
    size = counts / (n_sets * d)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 1 - n_sets / (n_sets - 1) * spread / d / (size * (1 - size))
    return np.where((size > 0) & (size < 1), values, np.nan)


def _checked(selections: ArrayLike) -> BoolArray:
    Z = np.asarray(selections)
    if Z.ndim != 2 or Z.size == 0:
        raise DataError(f"selections has shape {Z.shape}; give one row a set and one column a feature.")
    if not np.isin(Z, (0, 1)).all():
        raise DataError("selections holds values other than 0 and 1; give True where a set holds the feature.")
    return Z.astype(bool)
