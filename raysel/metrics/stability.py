"""Stability of feature selection: agreement of the feature sets selected on different training samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from raysel.arrays import BoolArray
from raysel.errors import ConfigError, DataError


@dataclass(frozen=True)
class Stability:
    """A stability index and its published confidence interval.

    Parameters
    ----------
    value : float
        1 for identical selections, 0 in expectation for random ones if all features can be selected (see
        `stability_at_chance`); NaN where it is not defined.
    lower, upper : float
        The interval, symmetric about ``value`` as published; ``upper`` may exceed 1. It holds for selections
        from independent samples, which the folds of a cross-validation are not. NaN for two selections.
    reason : str, default=""
        Why ``value`` is NaN; empty where it is not.
    """

    value: float
    lower: float
    upper: float
    reason: str = ""

    def __str__(self) -> str:
        return f"undefined ({self.reason})" if self.reason else f"{self.value:.2f}"


def nogueira_stability(selections: ArrayLike, confidence: float = 0.95) -> Stability:
    r"""Stability of a feature selection over M training sets, after Nogueira, Sechidis & Brown.

    With Z the selections, p_f the share of the M sets that hold feature f, k_i the size of set i
    and k their mean size (Definition 4, Theorem 7 and Corollary 8 of [1]_):

        stability = 1 - mean_f( M/(M-1) p_f (1 - p_f) ) / v,    v = (k/d) (1 - k/d)
        variance  = 4/M^2 sum_i (phi_i - mean(phi))^2,
        phi_i     = ( mean_f(Z_if p_f) - k_i k/d^2 + stability/2 (2 k_i k/d^2 - k_i/d - k/d + 1) ) / v

    The interval is ``stability -+ ndtri((1 + confidence) / 2) sqrt(variance)``: asymptotic in M, and
    for sets drawn independently. It does not hold for the folds of a cross-validation, whose training
    sets overlap (see ``experiments/fold-overlap``). For sets of one size the index is Kuncheva's. Two sets
    of one size always have the variance 0, so there is no interval for two.

    Parameters
    ----------
    selections : array-like of bool (or 0/1), shape (n_sets, n_features)
        Whether each set holds each feature.
    confidence : float, default=0.95
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Stability
        NaN, with the reason, for a single set, and where no set holds a feature or every set holds
        all: then any two sets agree whatever the data. The interval alone is NaN for two sets.

    Raises
    ------
    DataError
        If ``selections`` is no such array.
    ConfigError
        If ``confidence`` does not lie between 0 and 1.

    References
    ----------
    .. [1] S. Nogueira, K. Sechidis, G. Brown, "On the Stability of Feature Selection Algorithms",
       JMLR 18(174), 2018.

    Examples
    --------
    >>> print(nogueira_stability([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]))
    0.33
    >>> print(nogueira_stability([[1, 0]]))
    undefined (one selection says nothing about others)
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence={confidence!r} must lie between 0 and 1, e.g. 0.95.")
    Z = _checked(selections)
    n_sets, d = Z.shape
    if n_sets == 1:
        return _undefined("one selection says nothing about others")
    if Z.all() or not Z.any():
        return _undefined("every set holds all features" if Z.all() else "no feature is selected")
    p = Z.mean(axis=0)
    sizes = Z.sum(axis=1) / d  # k_i / d
    size = p.mean()  # k / d
    v = size * (1 - size)
    value = 1 - n_sets / (n_sets - 1) * np.mean(p * (1 - p)) / v
    phi = (Z @ p / d - sizes * size + value / 2 * (2 * sizes * size - sizes - size + 1)) / v
    deviation = 2 / n_sets * np.linalg.norm(phi - phi.mean())
    if n_sets == 2:
        return Stability(float(value), np.nan, np.nan)
    margin = float(ndtri((1 + confidence) / 2) * deviation)
    return Stability(float(value), float(value) - margin, float(value) + margin)


def _undefined(reason: str) -> Stability:
    return Stability(np.nan, np.nan, np.nan, reason)


def _checked(selections: ArrayLike) -> BoolArray:
    Z = np.asarray(selections)
    if Z.ndim != 2 or Z.size == 0:
        raise DataError(f"selections has shape {Z.shape}; give one row a set and one column a feature.")
    if not np.isin(Z, (0, 1)).all():
        raise DataError("selections holds values other than 0 and 1; give True where a set holds the feature.")
    return Z.astype(bool)
