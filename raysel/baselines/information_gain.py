"""Ranking of the features by information gain."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from raysel.baselines.filter import MOST_BINS, BinRange, Filter, bin_range, class_codes, information
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray


@dataclass(frozen=True)
class PreparedGain:
    """Ranges and classes of a training set, which configurations of any number of bins share."""

    bin_range: BinRange
    #: Class of each sample; shape (n_samples,).
    codes: IntArray
    #: Number of samples of each class; shape (n_classes,).
    counts: IntArray


class InformationGain(Filter):
    """Ranking by information gain, the mutual information of the class and the binned feature.

        IG_j = H(y) - H(y | f_j) = H(f_j) + H(y) - H(f_j, y),   H(p) = -sum p log2 p

    (Cover and Thomas, Elements of Information Theory). f_j is the feature in bins of equal width over its range in the
    training set, ``min(floor(bins (x - min) / (max - min)), bins - 1)``: the papers that compare with information gain
    do not say how they discretise.

    Parameters
    ----------
    bins : int, default=5
        Number of bins, from 2 to 256.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Information gain of each feature in bits; 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        Mean information gain.

    References
    ----------
    Cover, Thomas, "Elements of Information Theory", 2nd edition, 2006, section 2.4.

    Examples
    --------
    >>> InformationGain().fit([[0.0, 1.0], [0.0, 2.0], [9.0, 1.0], [9.0, 2.0]], [0, 0, 1, 1]).scores_
    array([1., 0.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "bins": [Interval(Integral, 2, MOST_BINS, closed="both")],
    }

    def __init__(self, bins: int = 5, n_features_to_select: int | None = None) -> None:
        self.bins = bins
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which fewer bins precede more."""
        return (float(self.bins),)

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedGain:
        """Find the ranges of the features and number the classes."""
        return PreparedGain(bin_range(X), *class_codes(y))

    def _rate(self, X: FloatArray, prepared: PreparedGain) -> tuple[FloatArray, float]:
        binned = prepared.bin_range.bins_of(X, self.bins)
        gains = information(binned, self.bins, prepared.codes, prepared.counts)
        return gains, gains.mean()
