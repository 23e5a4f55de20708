"""Ranking of the features by Welch's t of each class against the rest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.baselines.filter import Filter, class_codes, class_moments
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.core.errors import DataError


class TTest(Filter):
    """Ranking by Welch's t statistic of each class against the rest.

        t_jr = |m_1 - m_2| / sqrt(s_1^2 / n_1 + s_2^2 / n_2),   1: the samples of class r, 2: all others

    (Welch, Biometrika 1947) with means m and variances s^2 (divided by n - 1) of feature j: the absolute statistic of
    ``scipy.stats.ttest_ind`` with ``equal_var=False``. For two classes this is Welch's test. For more there is no
    standard: the score is the largest or the mean t over the classes. A class of one sample has no variance: it is left
    out, and its sample counts among the others. An offset or another unit of a feature does not change its t.

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
    Biometrika 34, 1947, doi:10.1093/biomet/34.1-2.28.

    Examples
    --------
    >>> round(float(TTest().fit([[1.0], [3.0], [6.0], [8.0]], [0, 0, 1, 1]).scores_[0]) ** 2, 6)  # 5^2 / (2/2 + 2/2)
    12.5
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "aggregate": [StrOptions({"max", "mean"})],
    }

    def __init__(self, aggregate: Literal["max", "mean"] = "max", n_features_to_select: int | None = None) -> None:
        self.aggregate = aggregate
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute t of each feature and class."""
        codes, counts = class_codes(y)
        compared = np.flatnonzero((counts > 1) & (counts < len(y) - 1))
        if not len(compared):
            raise DataError(
                f"t is undefined for classes of {counts.tolist()} samples: there must be at least two samples of some "
                "class and two of others."
            )
        if len(counts) == 2:
            compared = compared[:1]  # the other is the same test
        return finite_t(welch_t(*class_moments(X, codes, counts), counts, compared))

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        scores = prepared.max(axis=0) if self.aggregate == "max" else prepared.mean(axis=0)
        return scores, scores.mean()


@dataclass(frozen=True)
class Moments:
    """Moments of a group of samples."""

    n: int
    #: Mean of each feature; shape (n_features,).
    mean: FloatArray
    #: Sum of the squared deviations from the mean; shape (n_features,).
    scatter: FloatArray

    def joined(self, other: Moments) -> Moments:
        """Moments of two groups together, without a difference of squares (Chan, Golub and LeVeque, 1983)."""
        n, apart = self.n + other.n, other.mean - self.mean
        scatter = self.scatter + other.scatter + apart**2 * (self.n * other.n / n)
        return Moments(n, self.mean + apart * (other.n / n), scatter)

    def error(self) -> FloatArray:
        """Squared standard error of the mean, s^2 / n. Returns (n_features,)."""
        return self.scatter / ((self.n - 1) * self.n)


def welch_t(means: FloatArray, scatters: FloatArray, counts: IntArray, compared: IntArray) -> FloatArray:
    """Compute Welch's t of classes, each against all others.

    `means` and `scatters` are (n_classes, n_features), `counts` (n_classes,), `compared` (n_compared,);
    returns (n_compared, n_features).
    """
    classes = [Moments(int(n), mean, scatter) for n, mean, scatter in zip(counts, means, scatters, strict=True)]
    up_to = list(accumulate(classes, Moments.joined))
    from_ = list(accumulate(classes[::-1], Moments.joined))[::-1]
    rests = [from_[1], *map(Moments.joined, up_to[:-2], from_[2:]), up_to[-2]]
    t = np.empty((len(compared), means.shape[1]))
    for k, r in enumerate(compared):
        apart = np.abs(classes[r].mean - rests[r].mean)
        error = np.sqrt(classes[r].error() + rests[r].error())
        t[k] = np.divide(apart, error, out=np.where(apart > 0, np.inf, 0.0), where=error > 0)
    return t


def finite_t(t: FloatArray) -> FloatArray:
    """Replace infinite values by twice the largest finite one, but at least by 1."""
    return np.where(np.isinf(t), 2.0 * t[np.isfinite(t)].max(initial=0.5), t)
