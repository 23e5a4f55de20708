"""Filters that rate each feature: variance, t test, Fisher score, information, chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state

from raysel.base.estimator import COUNT, NOT_NEGATIVE, Capabilities
from raysel.baselines.filter import (
    MOST_BINS,
    BinRange,
    Filter,
    bin_range,
    class_codes,
    class_moments,
    first_largest,
    information,
    order_scores,
    power_units,
)
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, StrOptions, column_blocks
from raysel.core.errors import DataError
from raysel.data.targets import CLASSES, QUANTITIES
from raysel.numerics.linear_algebra import centre


class Variance(Filter):
    """Ranking by variance, a reference for the selectors in a comparison.

        score_j = 1/l sum_i (x_ij - m_j)^2,   m_j the mean of feature j over the l samples

    The labels are not used. The order depends on the scales of the features: standardised features
    are all equal.

    Parameters
    ----------
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Variance of each feature, in squared units of the feature; 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        Mean variance.

    Examples
    --------
    >>> import numpy as np
    >>> Variance().fit(np.array([[1.0, 5.0], [3.0, 5.0]]), [0, 1]).scores_
    array([1., 0.])
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities,
        targets=frozenset({CLASSES, QUANTITIES}),
        univariate=True,
        by_variance=True,
    )
    score_meaning = "variance of the feature"

    def __init__(self, n_features_to_select: int | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute the variances."""
        return np.concatenate([block.var(axis=0) for block in column_blocks(X)])

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        return prepared, prepared.mean()


class TTest(Filter):
    """Ranking by Welch's t statistic of each class against the rest.

        t_jr = |m_1 - m_2| / sqrt(s_1^2 / n_1 + s_2^2 / n_2),   1: the samples of class r, 2: all
        others

    (Welch, Biometrika 1947) with means m and variances s^2 (divided by n - 1) of feature j: the
    absolute statistic of ``scipy.stats.ttest_ind`` with ``equal_var=False``. For two classes this
    is Welch's test. For more there is no standard: the score is the largest or the mean t over the
    classes. A class of one sample has no variance: it is left out, and its sample counts among the
    others. An offset or another unit of a feature does not change its t.

    Parameters
    ----------
    aggregate : {"max", "mean"}, default="max"
        How the t of the classes are made one score.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Largest or mean t of each feature; 0 for constant features. Where a feature is constant
        within both groups but differs between them, t is infinite and is replaced by twice the
        largest finite t.
    objective_path_ : ndarray of shape (1,)
        Mean score.

    References
    ----------
    Welch, "The generalization of 'Student's' problem when several different population variances
    are involved", Biometrika 34, 1947, doi:10.1093/biomet/34.1-2.28.

    Examples
    --------
    >>> scores = TTest().fit([[1.0], [3.0], [6.0], [8.0]], [0, 0, 1, 1]).scores_
    >>> round(float(scores[0]) ** 2, 6)  # 5^2 / (2/2 + 2/2)
    12.5
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities, score_scale="effect", univariate=True
    )
    score_meaning = "t statistic between classes"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "aggregate": [StrOptions({"max", "mean"})],
    }

    def __init__(
        self, aggregate: Literal["max", "mean"] = "max", n_features_to_select: int | None = None
    ) -> None:
        self.aggregate = aggregate
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray:
        """Compute t of each feature and class."""
        codes, counts = class_codes(y)
        compared = np.flatnonzero((counts > 1) & (counts < len(y) - 1))
        if not len(compared):
            raise DataError(
                f"t is undefined for classes of {counts.tolist()} samples: there must be at least"
                " two samples of some class and two of others."
            )
        if len(counts) == 2:
            compared = compared[:1]  # the other is the same test
        return finite_t(welch_t(*class_moments(X, codes, counts), counts, compared))

    def _rate(self, X: FloatArray, prepared: FloatArray) -> tuple[FloatArray, float]:
        scores = prepared.mean(axis=0)
        if self.aggregate == "max":
            scores = prepared.max(axis=0)
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
        """Moments of two groups together, without a difference of squares."""
        n, apart = self.n + other.n, other.mean - self.mean
        scatter = self.scatter + other.scatter + apart**2 * (self.n * other.n / n)
        return Moments(n, self.mean + apart * (other.n / n), scatter)

    def error(self) -> FloatArray:
        """Squared standard error of the mean, s^2 / n. Returns (n_features,)."""
        return self.scatter / ((self.n - 1) * self.n)


def welch_t(
    means: FloatArray, scatters: FloatArray, counts: IntArray, compared: IntArray
) -> FloatArray:
    """Compute Welch's t of classes, each against all others.

    `means` and `scatters` are (n_classes, n_features), `counts` (n_classes,), `compared`
    (n_compared,); returns (n_compared, n_features).
    """
    classes = [
        Moments(int(n), mean, scatter)
        for n, mean, scatter in zip(counts, means, scatters, strict=True)
    ]
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


#: A feature that the selected ones explain up to this share of its variance has nothing to add.
_EXPLAINED = 1e-10


@dataclass(frozen=True)
class PreparedScatter:
    """Scatter of a training set, which the sets of every gamma share."""

    #: Power of two that each feature is multiplied by, so that squares neither overflow nor vanish;
    #: shape (n_features,).
    units: FloatArray
    #: The samples less their mean, in these units, H: the total scatter is H'H; shape (n_samples,
    #: n_features).
    centred: FloatArray
    #: Class means less the mean, times the square root of the class's size, M: the between-class
    #: scatter is M'M; shape (n_classes, n_features).
    between: FloatArray


class FisherScore(Filter):
    """Ranking by the Fisher score, the ratio of the scatter between classes to that within them.

    With the sums S_b, S_w and S_t = S_b + S_w of the scatter between classes, within them and in
    total,

        ratio:  score_j = (S_b)_jj / (S_w)_jj
        set:    J(S) = tr( S_b[S, S] (S_t[S, S] + gamma I)^-1 ),   S grown by the feature that
        raises J(S) most

    "ratio" (Duda and Hart, Pattern Classification) rates each feature by itself, whatever its
    offset and unit; it is scikit-learn's ``f_classif`` times (c - 1)/(l - c) for l samples of c
    classes. "set" is equation (2) of the SMR paper, which takes into account that features repeat
    one another; the paper maximises it over single features only, and the greedy search is
    raysel's. J(S) is at most c - 1. ``gamma`` is in squared units of the features times l: the
    default is for features in [0, 1].

    Parameters
    ----------
    criterion : {"ratio", "set"}, default="ratio"
        Whether features are rated one by one or added to a set.
    gamma : float, default=1.0
        Regularisation of S_t, at least 0; larger values favour features of large variance. Used by
        "set" only.
    n_ranked : int, default=500
        Number of features that "set" adds one by one; the others follow by J of each by itself.
        Time grows with n_ranked (n_samples + n_ranked) n_features, memory with n_ranked n_features.
        Not used by "ratio".
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        "ratio": the ratio; twice the largest other ratio for features that are constant within
        every class but differ between classes. "set": k, ..., 2, 1 along the order in which k
        features were added, below 1 for the others. 0 for constant features.
    objective_path_ : ndarray of shape (1,)
        "ratio": mean score. "set": J of the features that were added.

    Examples
    --------
    >>> X = [[0.0, 1.0], [2.0, 3.0], [10.0, 1.0], [12.0, 3.0]]
    >>> FisherScore().fit(X, [0, 0, 1, 1]).scores_  # 4 5^2 / 4 1^2
    array([25.,  0.])
    >>> FisherScore(criterion="set").fit(X, [0, 0, 1, 1]).ranking_
    array([1, 2])
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities, prepare_parameters=frozenset({"criterion"}), univariate=True
    )
    score_meaning = "Fisher's ratio of scatter between and within classes, or place in the set"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "criterion": [StrOptions({"ratio", "set"})],
        "gamma": [NOT_NEGATIVE],
        "n_ranked": [COUNT],
    }

    def __init__(
        self,
        criterion: Literal["ratio", "set"] = "ratio",
        gamma: float = 1.0,
        n_ranked: int = 500,
        n_features_to_select: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.gamma = gamma
        self.n_ranked = n_ranked
        self.n_features_to_select = n_features_to_select

    @property
    def score_scale(self) -> str:
        """The ratios are squares of an effect, the scores of a set places in an order."""
        if self.criterion == "ratio":
            return super().score_scale
        return "place"

    @property
    def univariate(self) -> bool:
        """Whether each feature is rated by its own ratio."""
        return super().univariate and self.criterion == "ratio"

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which "ratio" precedes "set", and a larger gamma a smaller one."""
        return (float(self.criterion == "set"), -float(self.gamma))

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray | PreparedScatter:
        """Compute the ratios, or for "set" the scatters that the sets of every gamma share."""
        codes, counts = class_codes(y)
        if self.criterion == "ratio":
            return scatter_ratios(*class_moments(X, codes, counts), counts)
        centred = centre(X - X[0])[
            1
        ]  # of values far larger than their differences the mean is too coarse
        units = power_units(centred)
        centred *= units
        between = np.stack([centred[codes == r].sum(axis=0) for r in range(len(counts))])
        between /= np.sqrt(counts)[:, None]
        return PreparedScatter(units, centred, between)

    def _rate(self, X: FloatArray, prepared: Any) -> tuple[FloatArray, float]:
        if self.criterion == "ratio":
            return prepared, prepared.mean()
        order, gains = greedy_set(prepared, self.gamma, self.n_ranked)
        return order_scores(order, _single(prepared, _ridge(prepared, self.gamma))), gains.sum()


def scatter_ratios(means: FloatArray, scatters: FloatArray, counts: IntArray) -> FloatArray:
    """Scatter between classes over that within them, for each feature.

    `means` and `scatters` are (n_classes, n_features), `counts` (n_classes,); returns
    (n_features,).
    """
    between = counts @ (means - counts @ means / counts.sum()) ** 2
    within = scatters.sum(axis=0)
    ratios = np.divide(between, within, out=np.where(between > 0, np.inf, 0.0), where=within > 0)
    largest = np.isinf(ratios)
    ratios[largest] = 2.0 * ratios[~largest].max(initial=0.5)
    return ratios


def greedy_set(
    prepared: PreparedScatter, gamma: float, n_ranked: int
) -> tuple[IntArray, FloatArray]:
    """Add the features to a set S, each time the one that raises J(S) most.

    A partial Cholesky decomposition of S_t + gamma I, pivoted by the gain of J, of which no more
    than the rows of the selected features are computed. Units of the features do not matter to J,
    if gamma I is in their squares.

    Returns `order` (n_added,), `gains` (n_added,).
    """
    centred, ridge = prepared.centred, _ridge(prepared, gamma)
    d = centred.shape[1]
    n_ranked, single = min(n_ranked, d), _single(prepared, ridge)
    left, remaining = prepared.between.copy(), _energies(centred) + ridge
    open_, least = centred.any(axis=0), _EXPLAINED * remaining
    rows, order, gains = (
        np.empty((n_ranked, d)),
        np.empty(n_ranked, dtype=np.int64),
        np.empty(n_ranked),
    )
    for k in range(n_ranked):
        open_ &= remaining > least
        rise = np.divide(_energies(left), remaining, out=np.full(d, -np.inf), where=open_)
        best = first_largest(rise, single)
        if not rise[best] > 0.0:
            return order[:k], gains[:k]
        row = centred[:, best] @ centred - rows[:k, best] @ rows[:k]
        row[best] += ridge[best]
        row /= np.sqrt(remaining[best])
        order[k], gains[k], rows[k] = best, rise[best], row
        left -= np.outer(left[:, best] / row[best], row)
        remaining -= row**2
        open_[best] = False
    return order, gains


def _ridge(prepared: PreparedScatter, gamma: float) -> FloatArray:
    """Gamma in the squared unit of each feature; inf where its scatter is nothing beside gamma."""
    with np.errstate(over="ignore"):
        ridge: FloatArray = gamma * prepared.units * prepared.units
    return ridge


def _single(prepared: PreparedScatter, ridge: FloatArray) -> FloatArray:
    """J of each feature by itself; 0 for constant features."""
    total = _energies(prepared.centred) + ridge
    return np.divide(_energies(prepared.between), total, out=np.zeros(len(total)), where=total > 0)


def _energies(A: FloatArray) -> FloatArray:
    """Squared length of each column."""
    return np.einsum("ij,ij->j", A, A)


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

    (Cover and Thomas, Elements of Information Theory). f_j is the feature in bins of equal width
    over its range in the training set, ``min(floor(bins (x - min) / (max - min)), bins - 1)``: the
    papers that compare with information gain do not say how they discretise.

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
    >>> X = [[0.0, 1.0], [0.0, 2.0], [9.0, 1.0], [9.0, 2.0]]
    >>> InformationGain().fit(X, [0, 0, 1, 1]).scores_
    array([1., 0.])
    """

    capabilities: ClassVar[Capabilities] = replace(Filter.capabilities, univariate=True)
    score_meaning = "information gain in bits"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "bins": [Interval(Integral, 2, MOST_BINS, closed="both")],
    }

    simpler_first = ("bins",)

    def __init__(self, bins: int = 5, n_features_to_select: int | None = None) -> None:
        self.bins = bins
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedGain:
        """Find the ranges of the features and number the classes."""
        return PreparedGain(bin_range(X), *class_codes(y))

    def _rate(self, X: FloatArray, prepared: PreparedGain) -> tuple[FloatArray, float]:
        binned = prepared.bin_range.assign_bins(X, self.bins)
        gains = information(binned, self.bins, prepared.codes, prepared.counts)
        return gains, gains.mean()


class RandomRanking(Filter):
    """Random order of the features, a reference for the selectors in a comparison.

    The scores are a random permutation of 1/n_features, 2/n_features, ..., 1; they depend neither
    on X nor on y.

    Parameters
    ----------
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. None: NumPy's global generator.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Position of each feature in the random order, from 1/n_features (last) to 1 (first); 0 for
        constant features.
    objective_path_ : ndarray of shape (1,)
        0: nothing is optimised.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> sorted(RandomRanking(random_state=0).fit(X, y).ranking_.tolist())
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    """

    capabilities: ClassVar[Capabilities] = replace(
        Filter.capabilities, targets=frozenset({CLASSES, QUANTITIES}), score_scale="place"
    )
    score_meaning = "place in a random order"

    def __init__(
        self,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def prepare(self, X: FloatArray, y: LabelArray) -> tuple[()]:
        """Prepare nothing: configurations have nothing to share."""
        return ()

    def _rate(self, X: FloatArray, prepared: tuple[()]) -> tuple[FloatArray, float]:
        d = X.shape[1]
        return (check_random_state(self.random_state).permutation(d) + 1.0) / d, 0.0
