"""P values of permutation tests: of one statistic, and of many by their maximum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.errors import ConfigError, DataError

#: Statistics that differ by less, relative to the observed one, count as equal: their last bits depend on the order of
#: the sums.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class PermutationPValue:
    """P value of a permutation test and its Monte-Carlo error.

    Parameters
    ----------
    p_value : float
        P value.
    n_permutations : int
        Number of permutations.
    n_reached : int
        Number of permutations whose statistic is at least the observed one, those that failed among them.
    n_failed : int
        Number of permutations without a statistic.
    smallest : float
        Smallest p value that this number of permutations can give.
    lower, upper : float
        Confidence interval of the p value that all permutations would give.
    """

    p_value: float
    n_permutations: int
    n_reached: int
    n_failed: int
    smallest: float
    lower: float
    upper: float


def permutation_p_value(observed: float, permuted: ArrayLike, confidence: float = 0.95) -> PermutationPValue:
    r"""Return the p value of a statistic whose large values speak against the null hypothesis.

    With B random permutations it is

        p = (1 + #{b : T_b >= T}) / (1 + B),

    which is at most alpha with a probability of at most alpha under the null hypothesis, whatever B [1]_. A permutation
    without a statistic counts as one that reaches the observed value, which can only enlarge p.

    Parameters
    ----------
    observed : float
        Statistic of the true labels, T.
    permuted : array-like of shape (n_permutations,)
        Statistic of each permutation, T_b; NaN for one that failed.
    confidence : float, default=0.95
        Coverage of the interval of the Monte-Carlo error, between 0 and 1: the interval of Clopper and Pearson for the
        probability that a random permutation reaches the observed statistic.

    Returns
    -------
    PermutationPValue
        P value and its Monte-Carlo error.

    Raises
    ------
    DataError
        If there is no permutation, or ``observed`` is not finite.
    ConfigError
        If ``confidence`` is not between 0 and 1.

    References
    ----------
    .. [1] B. Phipson, G. K. Smyth, "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics
       and Molecular Biology 9, 2010.

    Examples
    --------
    >>> found = permutation_p_value(0.9, [0.5, 0.6, 0.95, 0.4])
    >>> found.p_value, found.n_reached, found.smallest
    (0.4, 1, 0.2)
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence={confidence!r} must lie between 0 and 1, e.g. 0.95.")
    values = np.asarray(permuted, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"permuted has shape {values.shape}; give the statistic of at least one permutation.")
    if not math.isfinite(observed):
        raise DataError(f"observed={observed!r} must be a finite number.")
    failed = int(np.isnan(values).sum())
    n, reached = len(values), int(reaches(np.array([observed]), values[:, None]).sum()) + failed
    lower, upper = binomial_interval(reached, n, confidence)
    return PermutationPValue((1 + reached) / (1 + n), n, reached, failed, 1 / (1 + n), lower, upper)


def binomial_interval(n_successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for the probability of a success.

    Parameters
    ----------
    n_successes : int
        Number of successes.
    n : int
        Number of independent trials.
    confidence : float, default=0.95
        Coverage, between 0 and 1.

    Returns
    -------
    lower, upper : float
        Ends of the interval.

    Examples
    --------
    >>> [round(end, 4) for end in binomial_interval(0, 10)]
    [0.0, 0.3085]
    """
    tail = (1 - confidence) / 2
    lower = float(betaincinv(n_successes, n - n_successes + 1, tail)) if n_successes else 0.0
    upper = float(betaincinv(n_successes + 1, n - n_successes, 1 - tail)) if n_successes < n else 1.0
    return lower, upper


def reaches(observed: FloatArray, permuted: FloatArray) -> BoolArray:
    """Return where permuted statistics are at least the observed ones, up to rounding errors.

    Parameters
    ----------
    observed : ndarray of shape (d,)
        Observed statistics.
    permuted : ndarray of shape (d,) or (n_permutations, d)
        Permuted statistics.

    Returns
    -------
    ndarray of bool, in the shape of ``permuted``
        Whether each reaches the observed statistic; False for NaN.
    """
    found: BoolArray = permuted >= observed - _ROUNDING * np.abs(observed)
    return found


@dataclass(frozen=True)
class FeaturePValues:
    """P values of many features by permutations, unadjusted and adjusted by the maximum statistic.

    Parameters
    ----------
    p_value : ndarray of shape (d,)
        Unadjusted p values.
    single_step : ndarray of shape (d,)
        Adjusted by the maximum over all features.
    step_down : ndarray of shape (d,)
        Adjusted by the maximum over the features with no larger observed statistic; never above ``single_step``.
    smallest : float
        Smallest p value that this number of permutations can give.
    """

    p_value: FloatArray
    single_step: FloatArray
    step_down: FloatArray
    smallest: float


class MaxStatistic:
    r"""Counts of the permutations that reach the observed statistic of each feature, and their p values.

    With T_j the observed statistic of feature j, T_jb that of permutation b, and the features in descending order of
    T_j, the p values from B permutations are [1]_

        unadjusted    p_j = (1 + #{b : T_jb >= T_j}) / (1 + B)
        single-step   p_j = (1 + #{b : max_k T_kb >= T_j}) / (1 + B)
        step-down     p_j = max_{i <= j} (1 + #{b : max_{k >= i} T_kb >= T_i}) / (1 + B)

    The single-step values at or below alpha contain a false one with a probability of at most alpha if no feature has
    to do with the labels, and also if some have, as long as the joint distribution of the other features' statistics
    does not depend on them (subset pivotality); so do the step-down ones, which are smaller or equal. A permutation
    without statistics counts as one that reaches all of them.

    Parameters
    ----------
    observed : array-like of shape (d,)
        Observed statistics; features with equal ones are treated alike.

    Raises
    ------
    DataError
        If ``observed`` is not a list of finite numbers.

    References
    ----------
    .. [1] P. H. Westfall, S. S. Young, "Resampling-Based Multiple Testing", 1993, chapter 2.

    Examples
    --------
    >>> counts = MaxStatistic([3.0, 1.0, 0.5])
    >>> for permuted in ([0.1, 1.2, 0.2], [0.6, 0.3, 0.9], [0.2, 0.1, 0.3]):
    ...     counts.add(permuted)
    >>> counts.p_values().single_step.tolist()
    [0.25, 0.5, 0.75]
    """

    def __init__(self, observed: ArrayLike) -> None:
        self._observed = np.asarray(observed, dtype=np.float64)
        if self._observed.ndim != 1 or not np.isfinite(self._observed).all():
            raise DataError("observed must be a list of finite numbers, one for each feature.")
        self._descending = np.argsort(-self._observed, kind="stable")
        self._n = 0
        self._own: IntArray = np.zeros(len(self._observed), dtype=np.int64)
        self._single, self._step = self._own.copy(), self._own.copy()

    def add(self, permuted: ArrayLike) -> None:
        """Count one permutation.

        Parameters
        ----------
        permuted : array-like of shape (d,)
            Its statistics, finite.

        Raises
        ------
        DataError
            If ``permuted`` does not hold one finite number for each feature.
        """
        values = np.asarray(permuted, dtype=np.float64)
        if values.shape != self._observed.shape or not np.isfinite(values).all():
            raise DataError(f"permuted must hold {len(self._observed)} finite numbers, one for each feature.")
        ordered = values[self._descending]
        successive = np.maximum.accumulate(ordered[::-1])[::-1]
        # Features with equal observed statistics share the maximum of all of them.
        descending = self._observed[self._descending]
        largest = np.empty_like(values)
        largest[self._descending] = successive[np.searchsorted(-descending, -descending, side="left")]
        self._n += 1
        self._own += reaches(self._observed, values)
        self._single += reaches(self._observed, np.full_like(values, values.max(initial=-np.inf)))
        self._step += reaches(self._observed, largest)

    def add_failed(self) -> None:
        """Count one permutation without statistics."""
        self._n += 1
        self._own += 1
        self._single += 1
        self._step += 1

    def p_values(self) -> FeaturePValues:
        """Return the p values from the permutations that have been counted.

        Raises
        ------
        DataError
            If none has been counted.
        """
        if not self._n:
            raise DataError("no permutation has been counted; add at least one.")
        own, single, step = ((1 + count) / (1 + self._n) for count in (self._own, self._single, self._step))
        adjusted = np.empty_like(step)
        adjusted[self._descending] = np.maximum.accumulate(step[self._descending])
        return FeaturePValues(own, single, adjusted, 1 / (1 + self._n))


def feature_p_values(observed: FloatArray, permuted: Sequence[FloatArray | None], *, by_share: bool) -> FeaturePValues:
    r"""Return the p values of a model's feature scores from the scores of models fitted to permuted labels.

    The scores of a model that is fitted to all features together have a scale of their own in each fit: without
    information it may need larger coefficients than with it, and the share of a feature in the sum of the scores
    depends on how many others are informative. With s_jb the score of feature j in permutation b, b = 0 for the true
    labels, the statistic is therefore

        T_jb = max(s_jb / c, t_jb / e),    t_jb = s_jb / sum_k s_kb,

    c and e the means of max_j s_jb and max_j t_jb over all b from 0 to B. As c and e do not depend on which of the
    arrangements of labels is the true one, `MaxStatistic` is valid for T as it is for s.

    Parameters
    ----------
    observed : ndarray of shape (d,)
        Scores with the true labels, not negative.
    permuted : sequence of (ndarray of shape (d,) or None)
        Scores of each permutation; None for one that failed.
    by_share : bool
        Whether to use T; else the scores themselves, for methods whose scores have the same scale for all labels.

    Returns
    -------
    FeaturePValues
        P values.

    Examples
    --------
    >>> found = feature_p_values(np.array([3.0, 1.0]), [np.array([1.0, 2.0]), np.array([2.0, 2.0])], by_share=True)
    >>> found.single_step.round(3).tolist()
    [0.333, 1.0]
    """
    if by_share:
        known = [scores for scores in (observed, *permuted) if scores is not None]
        largest = np.mean([scores.max(initial=0.0) for scores in known])
        largest_share = np.mean([_shares(scores).max(initial=0.0) for scores in known])

        def statistic(scores: FloatArray) -> FloatArray:
            return np.maximum(scores / (largest or 1.0), _shares(scores) / (largest_share or 1.0))

    else:

        def statistic(scores: FloatArray) -> FloatArray:
            return scores

    counts = MaxStatistic(statistic(observed))
    for scores in permuted:
        if scores is None:
            counts.add_failed()
        else:
            counts.add(statistic(scores))
    return counts.p_values()


def _shares(scores: FloatArray) -> FloatArray:
    """Scores divided by their sum; zeros if it is zero."""
    return scores / (scores.sum() or 1.0)
