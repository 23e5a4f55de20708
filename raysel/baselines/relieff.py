"""Ranking of the features by ReliefF."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.spatial.distance
from numpy.typing import NDArray

from raysel.baselines.filter import Filter, bin_range, class_codes
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray

#: Number of values whose differences are taken at once, so that they stay in a core's cache.
_CACHED = 2**16


@dataclass(frozen=True)
class PreparedNeighbours:
    """The neighbours of every sample, which configurations of any ``n_neighbors`` share."""

    #: The other samples by class and within a class by increasing distance; the sample itself is the last of its class;
    #: shape (n_samples, n_samples).
    order: NDArray[np.int32]
    #: Class of each sample; shape (n_samples,).
    codes: IntArray
    #: Number of samples of each class: class r has the ``counts[r]`` columns of ``order`` after those of the classes
    #: before it; shape (n_classes,).
    counts: IntArray
    #: Range of each feature; 1 for constant features; shape (n_features,).
    width: FloatArray


class ReliefF(Filter):
    """Ranking by ReliefF: features that differ between near samples of different classes but not of the same.

        W_j = 1/l sum_i [ sum_{r != y_i} p_r / (1 - p_{y_i}) mean_{h in M_r(i)} diff_j(i, h) - mean_{h in H(i)} diff_j(i, h) ]
        diff_j(a, b) = |x_aj - x_bj| / (max_j - min_j)

    (Kononenko, ECML 1994; Robnik-Sikonja and Kononenko, Machine Learning 2003) over all l samples i, without sampling.
    H(i) are the k nearest other samples of the class of i, M_r(i) the k nearest of class r, by the sum of diff over the
    features; p_r is the share of class r. Of a class with fewer than k samples all are used and the mean is over those;
    a sample alone in its class has no term H(i). Of samples at the same distance, up to the rounding of the sum, those
    that come first are used. The papers take 10 neighbours; the default of 5 is for the few samples a class on which
    selectors of images are compared, and papers that compare them do not say theirs.

    Time grows with l^2 n_features, memory with l^2.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number k of neighbours of each class.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,)
        W of each feature, from -1 to 1; 0 for constant features.
    scores_ : ndarray of shape (n_features,)
        ``(1 + W) / 2``, so that features with negative W are ranked too; 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        Mean of W.

    References
    ----------
    Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994, doi:10.1007/3-540-57868-4_57.

    Examples
    --------
    >>> ReliefF().fit([[0.0, 1.0], [0.0, 2.0], [9.0, 1.0], [9.0, 2.0]], [0, 0, 1, 1]).weights_
    array([ 1. , -0.5])
    """  # noqa: E501

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    weights_: FloatArray

    def __init__(self, n_neighbors: int = 5, n_features_to_select: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which more neighbours, which average more, precede fewer."""
        return (-float(self.n_neighbors),)

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedNeighbours:
        """Sort the samples of each class by their distance from every sample."""
        codes, counts = class_codes(y)
        ranges = bin_range(X)
        # Less the minimum: of values that are far larger than their differences a quotient keeps no difference.
        pairs = scipy.spatial.distance.pdist((X - ranges.low) / ranges.width, "cityblock")
        distances = scipy.spatial.distance.squareform(without_last_digits(pairs))
        np.fill_diagonal(distances, np.inf)
        order = np.empty(distances.shape, dtype=np.int32)
        start = 0
        for r, count in enumerate(counts):
            members = np.flatnonzero(codes == r)
            order[:, start : start + count] = members[np.argsort(distances[:, members], axis=1, kind="stable")]
            start += count
        return PreparedNeighbours(order, codes, counts, ranges.width)

    def _rate(self, X: FloatArray, prepared: PreparedNeighbours) -> tuple[FloatArray, float]:
        sums = weighted_differences(X, neighbour_weights(prepared, self.n_neighbors))
        self.weights_ = sums / (len(X) * prepared.width)
        return (1.0 + self.weights_) / 2.0, self.weights_.mean()


def without_last_digits(values: FloatArray) -> FloatArray:
    """Round to 36 binary digits, by Veltkamp's splitting, so that sums that are equal up to rounding become equal."""
    larger = values * (2.0**17 + 1.0)
    return larger - (larger - values)


def neighbour_weights(prepared: PreparedNeighbours, n_neighbors: int) -> FloatArray:
    """Weight of the difference between each sample i and its neighbour h in the sum over all samples.

    Returns (n_samples, n_samples).
    """
    codes, counts = prepared.codes, prepared.counts
    shares = counts / len(codes)
    weights = np.zeros(prepared.order.shape)
    starts = np.cumsum(counts) - counts
    for r, (start, count) in enumerate(zip(starts, counts, strict=True)):
        hits, misses = min(n_neighbors, count - 1), min(n_neighbors, count)
        others, members = np.flatnonzero(codes != r)[:, None], np.flatnonzero(codes == r)[:, None]
        weights[others, prepared.order[others[:, 0], start : start + misses]] = (
            shares[r] / (1.0 - shares[codes[others]]) / misses
        )
        if hits:
            weights[members, prepared.order[members[:, 0], start : start + hits]] = -1.0 / hits
    return weights


def weighted_differences(X: FloatArray, weights: FloatArray) -> FloatArray:
    """Compute ``sum_ih weights_ih |x_i - x_h|`` for every feature.

    `X` is (n_samples, n_features), `weights` (n_samples, n_samples); returns (n_features,).
    """
    n, d = X.shape
    both = weights + weights.T  # |x_i - x_h| is taken once for the pair
    later = [np.flatnonzero(both[i, i + 1 :]) + i + 1 for i in range(n)]
    sums = np.zeros(d)
    step = max(1, _CACHED // n)
    for start in range(0, d, step):
        block = np.ascontiguousarray(X[:, start : start + step])
        for i, others in enumerate(later):
            differences = block[others]
            differences -= block[i]
            sums[start : start + step] += both[i, others] @ np.abs(differences, out=differences)
    return sums
