"""Jackknife of a score: what each unit of its samples contributes to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

import numpy as np

from raysel.core.arrays import FloatArray, IntArray, LabelArray

#: Units that are left out one by one; of more, each is one of so many parts at random.
MOST_UNITS: Final = 100
#: The same at least where a score is computed of many columns, one after the other.
_LEAST_UNITS: Final = 20
#: Columns of which scores are computed for one fold.
_MOST_COLUMNS: Final = 500


def pseudo_values(
    score: Callable[[IntArray], float], members: LabelArray, n_columns: int = 1
) -> FloatArray:
    r"""Compute the jackknife pseudo-values of a score over the units of its samples.

    With g units, the score s of all samples and s_(-u) of those that are not of unit u,

        p_u = g s - (g - 1) s_(-u).

    Of the mean of a loss over equally large units p_u is the mean of unit u. The variance of the
    p_u, divided by g, estimates that of s, also for scores that are no means.

    There is one value, s, where there is one unit, and none where the score is undefined without
    one of several.

    J. W. Tukey, "Bias and Confidence in Not Quite Large Samples", Ann. Math. Statistics 29, 1958;
    B. Efron, C. Stein, "The Jackknife Estimate of Variance", Annals of Statistics 9, 1981.

    `score` takes the positions of the samples that it is of, `members` (n_samples,) names the unit
    of each sample. `n_columns` is the number of columns that a score is computed of, e.g. one for
    each class; many take fewer units.
    """
    rows = np.arange(len(members), dtype=np.int64)
    units = _parts(members, most_units(n_columns))
    n_units, whole = int(units.max()) + 1, score(rows)
    if n_units == 1:
        return np.array([whole])
    without = np.array([_defined(score, rows[units != unit]) for unit in range(n_units)])
    if not np.isfinite(without).all():
        return np.empty(0)
    return n_units * whole - (n_units - 1) * without


def most_units(n_columns: int) -> int:
    """Return how many units are left out one by one, of a score of some columns."""
    return min(max(_MOST_COLUMNS // n_columns, _LEAST_UNITS), MOST_UNITS)


def _parts(members: LabelArray, most: int) -> IntArray:
    """Number the units of samples; more than `most` are divided at random into so many parts."""
    names, units = np.unique(members, return_inverse=True)
    if len(names) > most:
        units = (np.random.default_rng(0).permutation(len(names)) % most)[units]
    return units.astype(np.int64)


def _defined(score: Callable[[IntArray], float], rows: IntArray) -> float:
    """The score of some samples; NaN where it is undefined."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return score(rows)
        except Exception:  # noqa: BLE001 - a metric of another package may raise anything
            return float("nan")
