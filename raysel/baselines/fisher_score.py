"""Ranking of the features by the Fisher score, one by one or as a set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.base.estimator import Capabilities
from raysel.baselines.filter import Filter, class_codes, class_moments, first_largest, order_scores, power_units
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray, StrOptions
from raysel.numerics.scatter import centre

#: A feature that the selected ones explain up to this share of its variance has nothing to add.
_EXPLAINED = 1e-10


@dataclass(frozen=True)
class PreparedScatter:
    """Scatter of a training set, which the sets of every gamma share."""

    #: Power of two that each feature is multiplied by, so that squares neither overflow nor vanish;
    #: shape (n_features,).
    units: FloatArray
    #: The samples less their mean, in these units, H: the total scatter is H'H; shape (n_samples, n_features).
    centred: FloatArray
    #: Class means less the mean, times the square root of the class's size, M: the between-class scatter is M'M;
    #: shape (n_classes, n_features).
    between: FloatArray


class FisherScore(Filter):
    """Ranking by the Fisher score, the ratio of the scatter between classes to that within them.

    With the sums S_b, S_w and S_t = S_b + S_w of the scatter between classes, within them and in total,

        ratio:  score_j = (S_b)_jj / (S_w)_jj
        set:    J(S) = tr( S_b[S, S] (S_t[S, S] + gamma I)^-1 ),   S grown by the feature that raises J(S) most

    "ratio" (Duda and Hart, Pattern Classification) rates each feature by itself, whatever its offset and unit; it is
    scikit-learn's ``f_classif`` times (c - 1)/(l - c) for l samples of c classes. "set" is equation (2) of the SMR
    paper, which takes into account that features repeat one another; the paper maximises it over single features only,
    and the greedy search is raysel's. J(S) is at most c - 1. ``gamma`` is in squared units of the features times l: the
    default is for features in [0, 1].

    Parameters
    ----------
    criterion : {"ratio", "set"}, default="ratio"
        Whether features are rated one by one or added to a set.
    gamma : float, default=1.0
        Regularisation of S_t, at least 0; larger values favour features of large variance. Used by "set" only.
    n_ranked : int, default=500
        Number of features that "set" adds one by one; the others follow by J of each by itself. Time grows with
        n_ranked (n_samples + n_ranked) n_features, memory with n_ranked n_features. Not used by "ratio".
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        "ratio": the ratio; twice the largest other ratio for features that are constant within every class but differ
        between classes. "set": k, ..., 2, 1 along the order in which k features were added, below 1 for the others.
        0 for constant features.
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

    capabilities: ClassVar[Capabilities] = replace(Filter.capabilities, prepare_parameters=frozenset({"criterion"}))

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "criterion": [StrOptions({"ratio", "set"})],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "n_ranked": [Interval(Integral, 1, None, closed="left")],
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

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which "ratio" precedes "set", and a larger gamma a smaller one."""
        return (float(self.criterion == "set"), -float(self.gamma))

    def prepare(self, X: FloatArray, y: LabelArray) -> FloatArray | PreparedScatter:
        """Compute the ratios, or for "set" the scatters that the sets of every gamma share."""
        codes, counts = class_codes(y)
        if self.criterion == "ratio":
            return scatter_ratios(*class_moments(X, codes, counts), counts)
        centred = centre(X - X[0])[1]  # of values far larger than their differences the mean is too coarse
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

    `means` and `scatters` are (n_classes, n_features), `counts` (n_classes,); returns (n_features,).
    """
    between = counts @ (means - counts @ means / counts.sum()) ** 2
    within = scatters.sum(axis=0)
    ratios = np.divide(between, within, out=np.where(between > 0, np.inf, 0.0), where=within > 0)
    largest = np.isinf(ratios)
    ratios[largest] = 2.0 * ratios[~largest].max(initial=0.5)
    return ratios


def greedy_set(prepared: PreparedScatter, gamma: float, n_ranked: int) -> tuple[IntArray, FloatArray]:
    """Add features to a set S, each time the one that raises ``J(S) = tr(S_b[S,S] (S_t[S,S] + gamma I)^-1)`` most.

    A partial Cholesky decomposition of S_t + gamma I, pivoted by the gain of J, of which no more than the rows of the
    selected features are computed. Units of the features do not matter to J, if gamma I is in their squares.

    Returns `order` (n_added,), `gains` (n_added,).
    """
    centred, ridge = prepared.centred, _ridge(prepared, gamma)
    d = centred.shape[1]
    n_ranked, single = min(n_ranked, d), _single(prepared, ridge)
    left, remaining = prepared.between.copy(), _energies(centred) + ridge
    open_, least = centred.any(axis=0), _EXPLAINED * remaining
    rows, order, gains = np.empty((n_ranked, d)), np.empty(n_ranked, dtype=np.int64), np.empty(n_ranked)
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
    """Gamma in the squared unit of each feature; inf where a feature's scatter is nothing beside gamma."""
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
