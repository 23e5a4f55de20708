"""Ranking of the features by Welch's t of each class against the rest."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.stats

from raysel.arrays import FloatArray, LabelArray
from raysel.baselines.filters.filter import Filter, class_codes, constant_columns
from raysel.errors import DataError
from raysel.validation import Interval, StrOptions


class TTest(Filter):
    """Ranking by Welch's t statistic of each class against the rest, by ``scipy.stats.ttest_ind``.

        t_jr = |m_1 - m_2| / sqrt(s_1^2 / n_1 + s_2^2 / n_2),   1: the samples of class r, 2: all others

    with means m and variances s^2 (divided by n - 1) of feature j. For two classes this is Welch's test. For more there
    is no standard: the score is the largest or the mean t over the classes. A class of one sample has no variance: it
    is left out, and its sample counts among the others.

    Parameters
    ----------
    aggregate : {"max", "mean"}, default="max"
        How the t of the classes are made one score.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Largest or mean t of each feature; 0 for constant features. Where a feature is constant within both groups but
        differs between them, t is infinite and is replaced by twice the largest finite t.
    objective_path_ : ndarray of shape (1,)
        Mean score.

    References
    ----------
    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34, 1947.

    Examples
    --------
    >>> round(float(TTest().fit([[1.0], [3.0], [6.0], [8.0]], [0, 0, 1, 1]).scores_[0]) ** 2, 6)  # 5^2 / (2/2 + 2/2)
    12.5
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "aggregate": [StrOptions({"max", "mean"})],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, aggregate: Literal["max", "mean"] = "max", n_features_to_select: int | None = None) -> None:
        self.aggregate = aggregate
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute t of each feature and class.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,)
            Training labels.

        Returns
        -------
        ndarray of shape (n_compared, n_features)
            t of each class that has a variance and whose rest has one; of two classes once.

        Raises
        ------
        DataError
            If there is no such class.
        """
        codes, counts = class_codes(y)
        compared = np.flatnonzero((counts > 1) & (counts < len(y) - 1))
        if not len(compared):
            raise DataError(
                f"t is undefined for classes of {counts.tolist()} samples: there must be at least two samples of some "
                "class and two of others."
            )
        if len(counts) == 2:
            compared = compared[:1]  # the other is the same test
        return finite_t(np.stack([_welch(X[codes == r], X[codes != r]) for r in compared]))

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        scores = prepared.max(axis=0) if self.aggregate == "max" else prepared.mean(axis=0)
        return scores, scores.mean()


def _welch(own: FloatArray, rest: FloatArray) -> FloatArray:
    """Absolute t of each feature; inf where both groups are constant and differ, 0 where they are equal."""
    t = np.full(own.shape[1], np.inf)
    # Exactly: the variance of a constant column may be a rounding error instead of 0.
    constant = constant_columns(own) & constant_columns(rest)
    t[constant & (own[0] == rest[0])] = 0.0
    with warnings.catch_warnings():
        # That columns of little variance lose digits does not matter to their order.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        t[~constant] = np.abs(scipy.stats.ttest_ind(own[:, ~constant], rest[:, ~constant], equal_var=False).statistic)
    return t


def finite_t(t: FloatArray) -> FloatArray:
    """Replace infinite values by twice the largest finite one, but at least by 1.

    Parameters
    ----------
    t : ndarray
        Values, not negative.

    Returns
    -------
    ndarray
        Finite values.

    Examples
    --------
    >>> import numpy as np
    >>> finite_t(np.array([0.0, np.inf, 3.0]))
    array([0., 6., 3.])
    """
    return np.where(np.isinf(t), 2.0 * t[np.isfinite(t)].max(initial=0.5), t)
