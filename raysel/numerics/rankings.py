"""Ranks, agreement of rankings, stability of selections, and bounds on false selections.

Bounds on the expected number of falsely selected features of complementary-pairs stability
selection.

Half of the samples, drawn at random, select at most q of p features by some procedure. Feature k is
selected with an unknown probability p_k, and by a share Pi_k of the 2B halves of B complementary
pairs. For a threshold tau above 1/2 and theta = q / p, let V be the number of features with Pi_k >=
tau although p_k <= theta. Both bounds are those of Shah & Samworth (2013, JRSS-B 75(1), 55-80), for
any procedure and any distribution of the samples::

    E V <= q^2 / ((2 tau - 1) p)        Theorem 1
    E V <= C(tau, B) q^2 / p            Theorem 2

Theorem 2 needs the distribution of the share of pairs whose two halves both select k to be unimodal
for every such k. The first is also the bound of Meinshausen & Buehlmann (2010, JRSS-B 72(4),
417-473) on the number of features without an effect; that reading assumes that their selections are
exchangeable and the procedure no worse than guessing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import ConfigError, DataError
from raysel.numerics.inference import check_share


def descending_order(scores: FloatArray) -> IntArray:
    """Feature indices from the largest score to the smallest; ties go to the lower index.

    `scores` is (n_features,); returns (n_features,).
    """
    return np.argsort(-scores, kind="stable").astype(np.int64)


def ranks(scores: FloatArray) -> IntArray:
    """Rank of each feature, 1 for the largest score; ties go to the lower index.

    `scores` is (n_features,); returns (n_features,).
    """
    result = np.empty(len(scores), dtype=np.int64)
    result[descending_order(scores)] = np.arange(1, len(scores) + 1)
    return result


def selection_ranks(scores: FloatArray) -> FloatArray:
    """Rank of each feature, where features without a score share the mean of the last ranks.

    A score of 0 or less counts as none: among such features there is no order, and none of them is
    selected. Equal scores above 0 are ranked by their index.

    `scores` is (n_features,); returns (n_features,).
    """
    result = ranks(scores).astype(np.float64)
    unscored = scores <= 0
    if unscored.any():
        result[unscored] = len(scores) - (unscored.sum() - 1) / 2
    return result


def top_selected(ranks: FloatArray, n_scored: IntArray, n_selected: int) -> BoolArray:
    """Mask of the features with a score and one of the ``n_selected`` best ranks, by ranking.

    `ranks` is (n_rankings, d), `n_scored` (n_rankings,); returns (n_rankings, d).
    """
    return ranks <= np.minimum(n_selected, n_scored)[:, None]


def consensus_ranks(ranks: FloatArray, n_scored: IntArray) -> FloatArray:
    """Median rank of each feature; one without a score counts as the last of all.

    `ranks` is (n_rankings, d), `n_scored` (n_rankings,); returns (d,).
    """
    return np.median(_or_last(ranks, n_scored), axis=0)


def consensus_places(ranks: FloatArray, n_scored: IntArray) -> IntArray:
    """Place of each feature in the consensus, from 1; equal features share a place.

    The order is that of `consensus_ranks`, then that of the mean of the same ranks. Simulation
    chose the rule: ``experiments/claims/consensus``.

    `ranks` is (n_rankings, d), `n_scored` (n_rankings,); returns (d,).
    """
    keys = np.array([_or_last(ranks, n_scored).mean(axis=0), consensus_ranks(ranks, n_scored)])
    order = np.lexsort(keys)
    differs = np.append(True, (np.diff(keys[:, order]) != 0).any(axis=0))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.maximum.accumulate(np.where(differs, np.arange(1, len(order) + 1), 0))
    return places


def _or_last(ranks: FloatArray, n_scored: IntArray) -> FloatArray:
    return np.where(ranks <= n_scored[:, None], ranks, ranks.shape[1])


_LEAST, _MOST = 1e-6, 1 - 1e-9  # range in which p is sought


def rank_biased_overlap(first: ArrayLike, second: ArrayLike, p: float) -> float:
    r"""Rank-biased overlap of two rankings, extrapolated beyond their ends.

    With X_d the number of features among the first d of both, s the length of the shorter ranking
    and l that of the longer one (equation 32 of the source below):

        (1-p)/p ( sum_{d=1..l} X_d/d p^d + sum_{d=s+1..l} X_s (d-s)/(s d) p^d ) + ( (X_l - X_s)/l +
        X_s/s ) p^l

    It is the sum over all depths d of the share of features in common, weighted by (1-p) p^(d-1),
    where the agreement at the end of a ranking is taken to go on behind it.

    W. Webber, A. Moffat, J. Zobel, "A similarity measure for indefinite rankings", ACM Transactions
    on Information Systems 28(4), 2010.
    """
    short, long = sorted((_checked(first), _checked(second)), key=len)
    check_share("p", p, 0.9)
    if not len(short):
        return float("nan")
    # Depth from which a feature is in both; 0: never.
    depth = np.zeros(max(short.max(), long.max()) + 1, dtype=np.int64)
    depth[short] = np.arange(1, len(short) + 1)
    both = np.where(depth[long] > 0, np.maximum(depth[long], np.arange(1, len(long) + 1)), 0)
    common = np.cumsum(np.bincount(both[both > 0], minlength=len(long) + 1))[1:]
    return _extrapolated(common.astype(np.float64), len(short), p)


def top_weight(p: float, n: int) -> float:
    """Return the share of the weight of the rank-biased overlap that the first ranks have.

    A rank counts in the agreement at every depth from it on (equation 21 of Webber, Moffat & Zobel
    2010):

        1 - p^(n-1) + (1-p)/p n ( log(1/(1-p)) - sum_{i=1..n-1} p^i/i )
    """
    i = np.arange(1, n)
    rest = -np.log1p(-p) - np.sum(p**i / i)
    return float(1 - p ** (n - 1) + (1 - p) / p * n * rest)


def persistence(n: int, share: float = 0.9) -> float:
    """Return the p for which the first n ranks have a given share of the weight."""
    check_share("share", share, 0.9)
    if n < 1:
        raise ConfigError(f"n={n!r} must be a whole number of at least 1.")
    if not top_weight(_MOST, n) < share < top_weight(_LEAST, n):
        raise ConfigError(
            f"share={share!r} of the weight on the first {n} ranks needs a p too near 0 or 1; try"
            " 0.9."
        )
    return float(brentq(lambda p: top_weight(p, n) - share, _LEAST, _MOST, xtol=1e-12))


def _extrapolated(common: FloatArray, s: int, p: float) -> float:
    """Equation 32, for the number of common features at each depth 1 .. l."""
    n = len(common)
    depths = np.arange(1, n + 1)
    weights = p**depths / depths
    # Behind the end of the shorter ranking its agreement X_s / s is taken to go on.
    assumed = common[s - 1] / s * np.maximum(depths - s, 0)
    inside = (1 - p) / p * np.sum((common + assumed) * weights)
    return float(inside + ((common[-1] - common[s - 1]) / n + common[s - 1] / s) * p**n)


def _checked(ranking: ArrayLike) -> IntArray:
    indices = np.asarray(ranking)
    if not indices.size:
        return np.zeros(0, dtype=np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or indices.min() < 0:
        raise DataError("a ranking must be a sequence of feature indices, 0 or more, best first.")
    if len(np.unique(indices)) < len(indices):
        raise DataError("a ranking names a feature twice; name each once.")
    return indices.astype(np.int64)


@dataclass(frozen=True)
class Stability:
    """A stability index."""

    #: 1 for identical selections, 0 in expectation for independent random ones; NaN where it is not
    #: defined.
    value: float
    #: Why ``value`` is NaN; empty where it is not.
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"undefined ({self.reason})"
        return f"{self.value:.2f}"


def nogueira_stability(selections: ArrayLike) -> Stability:
    r"""Stability of a feature selection over M training sets, after Nogueira, Sechidis & Brown.

    With Z the selections, p_f the share of the M sets that hold feature f, and k the mean size of a
    set (Definition 4 and Theorem 7 of the source below):

        stability = 1 - mean_f( M/(M-1) p_f (1 - p_f) ) / v,    v = (k/d) (1 - k/d)

    For sets of one size the index is Kuncheva's. The published confidence interval is left out: it
    holds for many sets from independent samples, and the training sets of a cross-validation
    overlap (see ``experiments/claims/fold-overlap``).

    S. Nogueira, K. Sechidis, G. Brown, "On the Stability of Feature Selection Algorithms", JMLR
    18(174), 2018.

    `selections` is (n_sets, n_features).
    """
    Z = _checked_stability(selections)
    n_sets = len(Z)
    if n_sets == 1:
        return Stability(np.nan, "one selection says nothing about others")
    if Z.all():
        return Stability(np.nan, "every set holds all features")
    if not Z.any():
        return Stability(np.nan, "no feature is selected")
    p = Z.mean(axis=0)
    size = p.mean()  # k / d
    return Stability(float(1 - n_sets / (n_sets - 1) * np.mean(p * (1 - p)) / (size * (1 - size))))


def stability_at_every_n(ranks: FloatArray, n_scored: IntArray) -> FloatArray:
    """`nogueira_stability` of the N best features with a score, for N from 1 to d."""
    n_sets, d = ranks.shape
    if n_sets == 1:
        return np.full(d, np.nan)
    scored = ranks <= n_scored[:, None]
    # Without a score: behind the last N, never selected.
    in_order = np.sort(np.where(scored, ranks, d + 1), axis=0).astype(np.int64)
    # The j-th ranking to select a feature adds 1 to its count and 2j - 1 to the square of its
    # count.
    added = np.repeat(2.0 * np.arange(1, n_sets + 1) - 1, d)
    squares = np.cumsum(np.bincount(in_order.ravel(), added, minlength=d + 2)[1 : d + 1])
    counts = np.cumsum(np.bincount(in_order.ravel(), minlength=d + 2)[1 : d + 1])
    spread = counts / n_sets - squares / n_sets**2  # the sum over the features of p (1 - p)
    size = counts / (n_sets * d)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 1 - n_sets / (n_sets - 1) * spread / d / (size * (1 - size))
    return np.where((size > 0) & (size < 1), values, np.nan)


def _checked_stability(selections: ArrayLike) -> BoolArray:
    Z = np.asarray(selections)
    if Z.ndim != 2 or Z.size == 0:
        raise DataError(
            f"selections has shape {Z.shape}; give one row a set and one column a feature."
        )
    if not np.isin(Z, (0, 1)).all():
        raise DataError(
            "selections holds values other than 0 and 1; give True where a set holds the feature."
        )
    return Z.astype(bool)


#: Number of features whose correlations with the better ones are held at once.
_BLOCK = 1024


def redundancy(X: FloatArray, order: IntArray, n_features: Sequence[int]) -> FloatArray:
    """Mean absolute correlation of the pairs among the best ``n`` features, for each ``n``.

        RED = 2 / (n (n - 1)) sum_(i > j) |r_ij|

    with r_ij the Pearson correlation of the features i and j over all given samples; it is 0 with a
    constant feature. This is the redundancy rate of Zhao et al., which sums over pairs with
    absolute values; labels are not used.

    The correlations for the largest ``n`` contain those for the others, so all cost O(n_samples
    n^2) together.

    Z. Zhao, L. Wang, H. Liu, J. Ye, "On Similarity Preserving Feature Selection", IEEE TKDE 25(3),
    2013.

    `X` is (n_samples, d), `order` (n,); returns (len(n_features),).
    """
    if min(n_features) < 1:
        raise ConfigError(f"n_features={list(n_features)} must be numbers of features, 1 or more.")
    sizes = np.minimum(n_features, len(order))
    # Less a sample and of size 1: neither a large offset nor squares of a small or large unit cost
    # digits.
    chosen = np.take(X, order[: sizes.max()], axis=1).astype(np.float64)
    chosen -= chosen[0].copy()
    largest = np.abs(chosen).max(axis=0)
    chosen /= np.where(largest > 0, largest, 1.0)
    chosen -= chosen.mean(axis=0)
    norms = np.linalg.norm(chosen, axis=0)
    chosen /= np.where(norms > 0, norms, 1.0)
    with_better = np.zeros(chosen.shape[1])  # sum over the better features j of |r_ij|
    for start in range(0, chosen.shape[1], _BLOCK):
        stop = min(start + _BLOCK, chosen.shape[1])
        correlations = np.abs(chosen[:, start:stop].T @ chosen[:, :stop])
        with_better[start:stop] = np.tril(correlations, start - 1).sum(axis=1)
    sums = np.concatenate([[0.0], np.cumsum(with_better)])[sizes]
    n_pairs = sizes * (sizes - 1) / 2
    return np.divide(sums, n_pairs, out=np.full(len(sizes), np.nan), where=n_pairs > 0)


#: What has to hold to read the bounds as ones on features without an effect.
ASSUMPTIONS = (
    "The bound holds for features without an effect if these are exchangeable and selected no more"
    " often than by a random choice. A feature that depends on one with an effect counts as true."
)
#: Share of a step of the grid within which a threshold counts as on the grid, because 0.57 * 100 is
#: above 57.
_ROUNDING = 1e-6


def threshold_on_grid(threshold: float, n_pairs: int) -> float:
    """Round a threshold up to the next share of 2B halves, which selects the same features."""
    if not 0.5 < threshold <= 1:
        raise ConfigError(
            f"threshold={threshold} must be above 0.5 and at most 1, because there is no bound for"
            " smaller ones."
        )
    return math.ceil(2 * n_pairs * threshold - _ROUNDING) / (2 * n_pairs)


def simple_bound(q: float, p: int, threshold: float) -> float:
    """Bound on the expected number of false selections by Theorem 1."""
    return q**2 / ((2 * threshold - 1) * p)


def unimodal_bound(q: float, p: int, threshold: float, n_pairs: int) -> float | None:
    r"""Bound the expected number of false selections by Theorem 2, of unimodal distributions.

    .. math:: C(\tau, B) = \frac{1}{2 (2 \tau - 1 - 1 / (2 B))} \text{ if } \tau \le 3/4, \quad
              \frac{4 (1 - \tau + 1 / (2 B))}{1 + 1 / B} \text{ if } \tau > 3/4
    """
    theta, step = q / p, 1 / (2 * n_pairs)
    lowest = min(0.5 + theta**2, 0.5 + step + 0.75 * theta**2)
    rounding = _ROUNDING * step
    if theta > 3**-0.5 or threshold <= lowest + rounding or threshold < 0.5 + 2 * step - rounding:
        return None
    if threshold <= 0.75 + rounding:
        factor = 1 / (2 * (2 * threshold - 1 - step))
    else:
        factor = 4 * (1 - threshold + step) / (1 + 2 * step)
    return factor * q**2 / p


def _best_bound(q: float, p: int, threshold: float, n_pairs: int) -> float:
    """Return the unimodal bound, or the simple one where that is not known."""
    bound = unimodal_bound(q, p, threshold, n_pairs)
    if bound is None:
        return simple_bound(q, p, threshold)
    return bound


def smallest_threshold(q: float, p: int, n_pairs: int, n_false: float = 1.0) -> float:
    """Return the smallest threshold whose bound is at most ``n_false``; 1 if there is none."""
    for count in range(n_pairs + 1, 2 * n_pairs):
        threshold = count / (2 * n_pairs)
        if _best_bound(q, p, threshold, n_pairs) <= n_false:
            return threshold
    return 1.0


#: Threshold that bounds the false ones of a default or suggested number of features.
_USUAL = 0.9


def bounded_top(most: int, p: int, n_pairs: int, n_false: float = 1.0) -> int:
    """Return a number of features of which some threshold bounds the false ones by ``n_false``.

    ``most`` if there is such a threshold, else the largest number that has one of at most 0.9; at
    least 1.
    """
    threshold = smallest_threshold(most, p, n_pairs, n_false)
    if _best_bound(most, p, threshold, n_pairs) <= n_false:
        return most
    sizes = range(most, 0, -1)
    fitting = (q for q in sizes if smallest_threshold(q, p, n_pairs, n_false) <= _USUAL)
    return next(fitting, 1)
