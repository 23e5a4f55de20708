"""Comparison of several methods over several data sets: mean ranks, Friedman's test, Nemenyi's critical difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DataError

#: Fewest data sets for which the tests are made.
FEWEST_DATA_SETS = 5
#: Scores are rounded to this many decimals before they are ranked, so that rounding errors do not break ties.
_DECIMALS = 12


@dataclass(frozen=True)
class RankComparison:
    """Mean ranks of methods over data sets, with Friedman's and Nemenyi's tests."""

    #: Rank of each method on each data set, 1 for the highest score; ties share their mean rank;
    #: shape (n_data_sets, n_methods).
    ranks: FloatArray
    #: Mean of the ranks over the data sets; shape (n_methods,).
    mean_ranks: FloatArray
    #: Friedman's statistic, corrected for ties; NaN if there is no test.
    chi2: float
    #: p value of Friedman's test; NaN if there is no test.
    p_value: float
    #: Quantile of the studentized range divided by sqrt(2); NaN if there is no test.
    q: float
    #: Nemenyi's critical difference of two mean ranks; NaN if there is no test.
    critical_difference: float
    #: Level of Nemenyi's test.
    alpha: float
    #: Why there is no test; empty if there is one.
    reason: str = ""

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Largest sets of methods of which no two differ by more than the critical difference, best first."""
        if self.reason:
            return []
        order = np.argsort(self.mean_ranks, kind="stable")
        ordered = self.mean_ranks[order]
        sets, last = [], 0
        for start in range(len(order)):
            end = int(np.searchsorted(ordered, ordered[start] + self.critical_difference + 1e-9, side="right"))
            if end > max(last, start + 1):
                sets.append(tuple(order[start:end].tolist()))
                last = end
        return sets


def compare_over_data_sets(scores: ArrayLike, alpha: float = 0.05) -> RankComparison:
    """Rank methods on each data set, and test whether their mean ranks differ.

    The tests take data sets as independent observations. The folds of one data set are not independent and must not
    stand in for data sets.

    J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006.

    `scores` is (n_data_sets, n_methods).
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - takes half a second to import

    _check_alpha(alpha)
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not np.isfinite(table).all():
        raise DataError(
            f"scores has shape {table.shape}; give one row a data set and one finite number for each of two or more "
            "methods."
        )
    n, k = table.shape
    ranks = rankdata(-table.round(_DECIMALS), axis=1)
    mean_ranks = ranks.mean(axis=0)
    reason = ""
    if n < FEWEST_DATA_SETS:
        sets = f"{n} data sets" if n > 1 else "1 data set"
        reason = f"there {'are' if n > 1 else 'is'} {sets}, and the tests need at least {FEWEST_DATA_SETS}"
    elif (ranks == ranks[:, :1]).all():
        reason = "all methods tie on all data sets"
    if reason:
        nan = float("nan")
        return RankComparison(ranks, mean_ranks, nan, nan, nan, nan, alpha, reason)
    chi2, p_value = friedman(mean_ranks, n, ranks)
    q, distance = critical_difference(k, n, alpha)
    return RankComparison(ranks, mean_ranks, chi2, p_value, q, distance, alpha)


def friedman(mean_ranks: ArrayLike, n_data_sets: int, ranks: FloatArray | None = None) -> tuple[float, float]:
    """Return the statistic of Friedman's test and its p value from the chi-squared distribution.

    With k mean ranks R_j over N data sets,

        chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),    k - 1 degrees of freedom,

    divided by 1 - sum(t^3 - t) / (N (k^3 - k)) over the sizes t of the groups of ties, if the ranks are given; this
    is the statistic of `scipy.stats.friedmanchisquare`, which needs three or more methods.

    `mean_ranks` is (n_methods,), `ranks` (n_data_sets, n_methods).
    """
    means = np.asarray(mean_ranks, dtype=np.float64)
    k, n = len(means), n_data_sets
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(means**2) - k * (k + 1) ** 2 / 4)
    if ranks is not None:
        sizes = np.concatenate([np.unique(row, return_counts=True)[1] for row in ranks])
        chi2 /= 1 - np.sum(sizes**3 - sizes) / (n * (k**3 - k))
    return float(chi2), float(chdtrc(k - 1, chi2))


def critical_difference(n_methods: int, n_data_sets: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the quantile q and the critical difference of Nemenyi's test.

    The mean ranks of two of k methods over N data sets differ at level alpha if they lie further apart than
    CD = q sqrt(k (k + 1) / (6 N)), where q is the quantile 1 - alpha of the studentized range of k groups with infinite
    degrees of freedom, divided by sqrt(2).
    """
    from scipy.stats import studentized_range  # noqa: PLC0415

    _check_alpha(alpha)
    q = float(studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(q), float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha={alpha!r} must lie between 0 and 1, e.g. 0.05.")
