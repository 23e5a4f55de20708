"""Filters that compare features or near samples with one another: MRMR and ReliefF."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.spatial.distance
from numpy.typing import NDArray

from raysel.base.estimator import COUNT, Capabilities
from raysel.baselines.filter import (
    MOST_BINS,
    BinArray,
    BinRange,
    Filter,
    bin_range,
    class_codes,
    constant_columns,
    count_terms,
    first_largest,
    information,
    order_scores,
)
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, StrOptions

#: What Peng's program adds to the redundancy in the quotient.
MIQ_OFFSET = 0.01

#: Number of words whose bits are counted at once, so that they stay in a core's cache.
_CACHED = 2**16


@dataclass(frozen=True)
class PreparedBins:
    """The binned training set, which both criteria share."""

    #: Bin of each value; shape (n_samples, n_features).
    binned: BinArray
    #: Mutual information of each feature and the classes in bits; 0 for constant features; shape
    #: (n_features,).
    relevance: FloatArray


class MRMR(Filter):
    """Ranking by minimum redundancy and maximum relevance, one feature after another.

        MID:  argmax_j I(f_j; y) - R_j                 R_j = mean_{s in S} I(f_j; f_s)
        MIQ:  argmax_j I(f_j; y) / (R_j + 0.01)

    (Peng, Long and Ding, TPAMI 2005; 0.01 is that of their program), where S are the features
    selected so far and the first is the most relevant one. I is the mutual information in bits of
    features in bins of equal width as in `InformationGain`: the paper bins at one standard
    deviation about the mean, its program takes binned data. Every feature is a candidate, not only
    the most relevant ones as in that program. Of equal values the first is selected.

    Memory is bins n_samples n_features / 8 bytes, time grows with n_ranked bins^2 n_samples
    n_features / 64.

    Parameters
    ----------
    criterion : {"MID", "MIQ"}, default="MID"
        Difference or quotient of relevance and redundancy.
    bins : int, default=5
        Number of bins, from 2 to 256.
    n_ranked : int, default=500
        Number of features that are selected one after another; the others follow by their
        relevance.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        k, ..., 2, 1 along the order in which k features were selected; for the others their
        relevance, scaled to at most 0.5. 0 for constant features.
    relevance_ : ndarray of shape (n_features,)
        Mutual information of each feature and the classes in bits.
    objective_path_ : ndarray of shape (1,)
        Mean of the criterion over the selected features, each when it was selected.

    References
    ----------
    Peng, Long, Ding, "Feature selection based on mutual information: criteria of max-dependency,
    max-relevance, and min-redundancy", IEEE TPAMI 27(8), 2005, doi:10.1109/TPAMI.2005.159.

    Examples
    --------
    >>> # The second column repeats the first.
    >>> X = [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    >>> MRMR().fit(X, [0, 1, 2, 3]).ranking_
    array([1, 3, 2])
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities, prepare_parameters=frozenset({"bins"}), score_scale="place"
    )
    score_meaning = "order of selection, the first selected the highest"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "criterion": [StrOptions({"MID", "MIQ"})],
        "bins": [Interval(Integral, 2, MOST_BINS, closed="both")],
        "n_ranked": [COUNT],
    }

    relevance_: FloatArray

    simpler_first = ("bins",)

    def __init__(
        self,
        criterion: Literal["MID", "MIQ"] = "MID",
        bins: int = 5,
        n_ranked: int = 500,
        n_features_to_select: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.bins = bins
        self.n_ranked = n_ranked
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedBins:
        """Bin the features and find their relevance."""
        binned = bin_range(X).assign_bins(X, self.bins)
        relevance = information(binned, self.bins, *class_codes(y))
        return PreparedBins(binned, np.where(constant_columns(X), 0.0, relevance))

    def _rate(self, X: FloatArray, prepared: PreparedBins) -> tuple[FloatArray, float]:
        self.relevance_ = prepared.relevance
        order, values = select_features(prepared, self.bins, self.criterion, self.n_ranked)
        return order_scores(order, prepared.relevance), values.mean() if len(values) else 0.0


def select_features(
    prepared: PreparedBins, bins: int, criterion: str, n_ranked: int
) -> tuple[IntArray, FloatArray]:
    """Select features one after another. Returns `order` (n_selected,), `values` (n_selected,)."""
    relevance, open_ = prepared.relevance, ~constant_columns(prepared.binned)
    n_ranked = min(n_ranked, int(np.count_nonzero(open_)))
    pairs = PairInformation(prepared.binned, bins)
    order, values, redundancy = (
        np.empty(n_ranked, dtype=np.int64),
        np.empty(n_ranked),
        np.zeros(len(relevance)),
    )
    for k in range(n_ranked):
        if k == 0:
            value = relevance
        else:
            redundancy += pairs.with_feature(order[k - 1])
            mean = redundancy / k
            value = relevance - mean if criterion == "MID" else relevance / (mean + MIQ_OFFSET)
        value = np.where(open_, value, -np.inf)
        order[k] = first_largest(value)
        values[k] = value[order[k]]
        open_[order[k]] = False
    return order, values


class PairInformation:
    """Mutual information of one binned feature with all others, by counts of common bits.

    The samples of each bin are a row of bits, 64 samples to a word: the number of samples in a bin
    of one feature and a bin of another is that of the bits that are set in both.

    `binned` is (n_samples, n_features).
    """

    def __init__(self, binned: BinArray, bins: int) -> None:
        n, d = binned.shape
        self._n, self._terms, n_words = n, count_terms(n), -(-n // 64)
        octets = np.zeros((bins, 8 * n_words, d), dtype=np.uint8)
        for b in range(bins):
            octets[b, : -(-n // 8)] = np.packbits(binned == b, axis=0)
        by_word = octets.reshape(bins, n_words, 8, d).swapaxes(2, 3)
        self._words: NDArray[np.uint64] = np.ascontiguousarray(by_word).view(np.uint64)[..., 0]
        self._single_terms = self._terms[
            np.bitwise_count(self._words).sum(axis=1, dtype=np.int64)
        ].sum(axis=0)

    def with_feature(self, feature: int) -> FloatArray:
        """Mutual information of a feature and each feature. Returns (n_features,)."""
        bins, n_words, d = self._words.shape
        shared, step = np.empty(d), max(1, _CACHED // (bins * n_words))
        for start in range(0, d, step):
            words = self._words[:, :, start : start + step]
            joint = np.empty((bins, bins, words.shape[2]), dtype=np.int64)
            for b in range(bins):
                both = words & self._words[b, :, feature, None]
                np.bitwise_count(both).sum(axis=1, dtype=np.int64, out=joint[b])
            shared[start : start + step] = self._terms[joint].reshape(bins * bins, -1).sum(axis=0)
        return np.maximum(
            np.log2(self._n)
            + (shared - self._single_terms - self._single_terms[feature]) / self._n,
            0.0,
        )


@dataclass(frozen=True)
class NeighboursByClass:
    """The neighbours of every sample, which configurations of any ``n_neighbors`` share."""

    #: The other samples by class and within a class by increasing distance; the sample itself is
    #: the last of its class; shape (n_samples, n_samples).
    order: NDArray[np.int32]
    #: Class of each sample; shape (n_samples,).
    codes: IntArray
    #: Number of samples of each class: class r has the ``counts[r]`` columns of ``order`` after
    #: those of the classes before it; shape (n_classes,).
    counts: IntArray
    #: Range of each feature; 1 for constant features; shape (n_features,).
    width: FloatArray


class ReliefF(Filter):
    """Ranking by ReliefF: features that differ between near samples of other classes.

        W_j = 1/l sum_i [ sum_{r != y_i} p_r / (1 - p_{y_i}) mean_{h in M_r(i)} diff_j(i, h) -
        mean_{h in H(i)} diff_j(i, h) ] diff_j(a, b) = |x_aj - x_bj| / (max_j - min_j)

    (Kononenko, ECML 1994; Robnik-Sikonja and Kononenko, Machine Learning 2003) over all l samples
    i, without sampling. H(i) are the k nearest other samples of the class of i, M_r(i) the k
    nearest of class r, by the sum of diff over the features; p_r is the share of class r. Of a
    class with fewer than k samples all are used and the mean is over those; a sample alone in its
    class has no term H(i). Of samples at the same distance, up to the rounding of the sum, those
    that come first are used. The papers take 10 neighbours; the default of 5 is for the few samples
    a class on which selectors of images are compared, and papers that compare them do not say
    theirs.

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
    Kononenko, "Estimating attributes: analysis and extensions of RELIEF", ECML 1994,
    doi:10.1007/3-540-57868-4_57.

    Examples
    --------
    >>> ReliefF().fit([[0.0, 1.0], [0.0, 2.0], [9.0, 1.0], [9.0, 2.0]], [0, 0, 1, 1]).weights_
    array([ 1. , -0.5])
    """

    capabilities: ClassVar[Capabilities] = replace(Filter.capabilities, score_scale="weight")
    score_meaning = "(1 + W) / 2 with ReliefF's weight W"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [COUNT],
    }

    weights_: FloatArray

    simpler_first = ("-n_neighbors",)

    def __init__(self, n_neighbors: int = 5, n_features_to_select: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> NeighboursByClass:
        """Sort the samples of each class by their distance from every sample."""
        codes, counts = class_codes(y)
        ranges = bin_range(X)
        distances = city_block_distances(X, ranges)
        order = np.empty(distances.shape, dtype=np.int32)
        start = 0
        for r, count in enumerate(counts):
            members = np.flatnonzero(codes == r)
            order[:, start : start + count] = members[
                np.argsort(distances[:, members], axis=1, kind="stable")
            ]
            start += count
        return NeighboursByClass(order, codes, counts, ranges.width)

    def _rate(self, X: FloatArray, prepared: NeighboursByClass) -> tuple[FloatArray, float]:
        sums = weighted_differences(X, neighbour_weights(prepared, self.n_neighbors))
        self.weights_ = sums / (len(X) * prepared.width)
        return (1.0 + self.weights_) / 2.0, self.weights_.mean()


def city_block_distances(X: FloatArray, ranges: BinRange) -> FloatArray:
    """City block distances between samples in units of the features' ranges; none to itself.

    `X` is (n_samples, n_features); returns (n_samples, n_samples), infinite on the diagonal.
    """
    # Less the minimum: of values that are far larger than their differences a quotient keeps no
    # difference.
    pairs = scipy.spatial.distance.pdist((X - ranges.low) / ranges.width, "cityblock")
    distances: FloatArray = scipy.spatial.distance.squareform(_without_last_digits(pairs))
    np.fill_diagonal(distances, np.inf)
    return distances


def _without_last_digits(values: FloatArray) -> FloatArray:
    """Round to 36 binary digits (Veltkamp), so that sums equal up to rounding are equal."""
    larger = values * (2.0**17 + 1.0)
    return larger - (larger - values)


def neighbour_weights(prepared: NeighboursByClass, n_neighbors: int) -> FloatArray:
    """Weight of the difference between each sample and its neighbour, in the sum over all.

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
