"""Filters for quantities: F-test, mutual information, MRMR and RReliefF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.feature_selection import f_regression, mutual_info_regression
from sklearn.utils import Tags

from raysel.base.estimator import COUNT, POSITIVE, Capabilities
from raysel.baselines.filter import (
    Filter,
    bin_range,
    class_codes,
    constant_columns,
    information,
    power_units,
)
from raysel.baselines.multivariate_filters import (
    MRMR,
    PreparedBins,
    city_block_distances,
    weighted_differences,
)
from raysel.baselines.univariate_filters import finite_t
from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.targets import QUANTITIES
from raysel.numerics.linear_algebra import centre


class QuantityFilter(Filter):
    """Base class of filters that rank the features for one quantity or several."""

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities, targets=frozenset({QUANTITIES})
    )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def mean_over_quantities(y: FloatArray, score: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Mean of a score of the features over the quantities.

    `y` is (n_samples,) or (n_samples, n_quantities).
    """
    columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    return np.mean([score(column) for column in columns.T], axis=0)


def f_statistics(X: FloatArray, y: FloatArray) -> FloatArray:
    """F statistic of the regression of y on each feature alone, by scikit-learn's ``f_regression``.

    0 for features that are constant; twice the largest other one, and at least 1, where it is
    infinite. `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_quantities), over
    which the mean is taken; returns (n_features,).
    """
    centred = centre(X - X[0])[
        1
    ]  # of values far larger than their differences the mean is too coarse
    centred *= power_units(centred)

    def score_one(column: FloatArray) -> FloatArray:
        if np.ptp(column) == 0:
            return np.zeros(X.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            values = f_regression(
                centred, (column - column.mean()) / column.std(), force_finite=False
            )[0]
        return finite_t(np.nan_to_num(values, nan=0.0, posinf=np.inf))

    scores = mean_over_quantities(y, score_one)
    return np.where(constant_columns(X), 0.0, scores)


class FTest(QuantityFilter):
    """Ranking by the F statistic of the linear regression of the quantity on each feature alone.

        F_j = r_j^2 / (1 - r_j^2) (l - 2),   r_j the correlation of feature j and y over the l
        samples

    by scikit-learn's ``f_regression``. Of several quantities the score is the mean of their F. The
    order is that of ``|r_j|`` for one quantity.

    Parameters
    ----------
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        F of each feature; 0 for constant features. Where a feature is a linear function of the
        quantity, F is infinite and is replaced by twice the largest finite F.
    objective_path_ : ndarray of shape (1,)
        Mean score.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> FTest().fit(X, y).ranking_[[2, 8]]  # body mass index and a blood value
    array([1, 2])
    """

    capabilities: ClassVar[Capabilities] = replace(QuantityFilter.capabilities, univariate=True)
    score_meaning = "F statistic of the regression on the feature alone"

    def __init__(self, n_features_to_select: int | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute the statistics."""
        return f_statistics(X, y)

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        return prepared, prepared.mean()


class MutualInformation(QuantityFilter):
    """Ranking by the mutual information of each feature and the quantity.

    scikit-learn's ``mutual_info_regression``, the estimator of [1]_ for two continuous variables.
    Of several quantities the score is the mean.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number of neighbours; more lower the variance of the estimate and raise its bias.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the noise of 1e-10 standard deviations that the estimator adds to equal values.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Mutual information of each feature in nats; 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        Mean score.

    References
    ----------
    .. [1] Kraskov, Stögbauer, Grassberger, "Estimating mutual information", Physical Review E 69,
       2004, doi:10.1103/PhysRevE.69.066138.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> MutualInformation(random_state=0).fit(X, y).ranking_[[2, 8]].max()
    np.int64(2)
    """

    capabilities: ClassVar[Capabilities] = replace(QuantityFilter.capabilities, univariate=True)
    score_meaning = "mutual information with the quantity in nats"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [COUNT],
    }

    simpler_first = ("-n_neighbors",)

    def __init__(
        self,
        n_neighbors: int = 3,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Return the quantities; each feature's estimate finds its own neighbours."""
        return np.array(y, dtype=np.float64)

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        n_neighbors = min(self.n_neighbors, len(X) - 1)

        def score_one(column: FloatArray) -> FloatArray:
            values: FloatArray = mutual_info_regression(
                X, column, n_neighbors=n_neighbors, random_state=self.random_state
            )
            return values

        scores = mean_over_quantities(prepared, score_one)
        return scores, scores.mean()


class MRMRQuantities(MRMR):
    """Ranking for quantities by minimum redundancy and maximum relevance.

    As `MRMR`, with the quantity in bins of equal frequency in place of the classes; of several
    quantities the relevance is the mean. The features are in bins of equal width, which the
    quantity, often skewed, would not fill.

    Parameters
    ----------
    criterion, bins, n_ranked, n_features_to_select : default as in `MRMR`
        See `MRMR`; the quantity has as many bins as each feature.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        See `MRMR`.
    relevance_ : ndarray of shape (n_features,)
        Mutual information of each feature and the quantity, both in bins, in bits.
    objective_path_ : ndarray of shape (1,)
        Mean of the criterion over the selected features, each when it was selected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> MRMRQuantities().fit(X, y).ranking_[2]  # body mass index
    np.int64(1)
    """

    capabilities: ClassVar[Capabilities] = replace(
        MRMR.capabilities, targets=frozenset({QUANTITIES})
    )

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedBins:
        """Bin the features and the quantities, and find the relevance of the features."""
        binned = bin_range(X).assign_bins(X, self.bins)

        def score_one(column: FloatArray) -> FloatArray:
            codes = (self.bins * (rankdata(column) - 0.5) / len(column)).astype(
                np.int64
            )  # equal values share a bin
            if len(np.unique(codes)) < 2:
                return np.zeros(X.shape[1])
            return information(binned, self.bins, *class_codes(codes))

        relevance = mean_over_quantities(y, score_one)
        return PreparedBins(binned, np.where(constant_columns(X), 0.0, relevance))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(frozen=True)
class PreparedOrder:
    """The neighbours of every sample and the quantities, for any ``n_neighbors``."""

    #: The other samples by increasing distance; the sample itself is the last; shape (n_samples,
    #: n_samples).
    order: NDArray[np.int32]
    #: Quantities, each divided by its range; shape (n_samples, n_quantities).
    y: FloatArray
    #: Range of each feature; 1 for constant features; shape (n_features,).
    width: FloatArray


class RReliefF(QuantityFilter):
    """Ranking by RReliefF: features that differ between near samples of other quantities.

        W_j = N_(C and j) / N_C  -  (N_j - N_(C and j)) / (l - N_C)
        N_C = sum_ih d(i, h) diff_y(i, h),  N_j = sum_ih d(i, h) diff_j(i, h),  N_(C and j) the sum
        of both products

    [1]_ over all l samples i, without sampling, and their k nearest other samples h, by the sum of
    ``diff_j(a, b) = |x_aj - x_bj| / (max_j - min_j)`` over the features. diff_y is the same for the
    quantity, the mean for several. The weights ``d(i, h) = exp(-(rank_h / sigma)^2)`` are divided
    by their sum over the neighbours of i. Of samples at the same distance, up to the rounding of
    the sum, those that come first are used.

    Time grows with l^2 n_features, memory with l^2.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours; of too few samples all others.
    sigma : float, default=20.0
        Rank, in neighbours, over which the weight falls to 1 / e, above 0.
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
    .. [1] Robnik-Sikonja, Kononenko, "Theoretical and empirical analysis of ReliefF and RReliefF",
       Machine Learning 53, 2003, doi:10.1023/A:1025667309714.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    >>> RReliefF(n_neighbors=3).fit(X, [0.0, 1.0, 2.0, 3.0]).ranking_
    array([1, 2])
    """

    capabilities: ClassVar[Capabilities] = replace(
        QuantityFilter.capabilities, score_scale="weight"
    )
    score_meaning = "(1 + W) / 2 with RReliefF's weight W"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [COUNT],
        "sigma": [POSITIVE],
    }

    weights_: FloatArray

    simpler_first = ("-n_neighbors",)

    def __init__(
        self, n_neighbors: int = 10, sigma: float = 20.0, n_features_to_select: int | None = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedOrder:
        """Sort the samples by their distance from every sample."""
        ranges = bin_range(X)
        order = np.argsort(city_block_distances(X, ranges), axis=1, kind="stable").astype(np.int32)
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return PreparedOrder(
            order, (columns - columns.min(axis=0)) / bin_range(columns).width, ranges.width
        )

    def _rate(self, X: FloatArray, prepared: PreparedOrder) -> tuple[FloatArray, float]:
        n = len(X)
        k = min(self.n_neighbors, n - 1)
        shares = np.exp(-((np.arange(1, k + 1) / self.sigma) ** 2))
        rows, near = np.repeat(np.arange(n), k), prepared.order[:, :k].ravel()
        apart = np.abs(prepared.y[rows] - prepared.y[near]).mean(axis=1)
        near_weights = np.zeros((n, n))
        near_weights[rows, near] = np.tile(shares / shares.sum(), n)
        different = near_weights.copy()
        different[rows, near] *= apart
        total = different.sum()
        both = weighted_differences(X, different) / prepared.width
        features = weighted_differences(X, near_weights) / prepared.width
        self.weights_ = np.zeros(X.shape[1])
        if 0.0 < total < n:
            self.weights_ = both / total - (features - both) / (n - total)
        return (1.0 + self.weights_) / 2.0, self.weights_.mean()
