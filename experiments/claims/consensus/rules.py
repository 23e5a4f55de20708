"""Rules that make one order of the features of the rankings of several outer folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from raysel.core.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Rankings:
    """What the winners of the outer folds give: scores and ranks, shape (n_folds, d), and the
    top that is selected.
    """

    scores: FloatArray
    ranks: FloatArray
    n_selected: int

    @property
    def selected(self) -> IntArray:
        """Number of folds that have each feature among their best with a score."""
        return ((self.ranks <= self.n_selected) & (self.scores > 0)).sum(axis=0)


#: Keys by which features are sorted, the smallest first; the last key counts first.
Rule = Callable[[Rankings], tuple[FloatArray, ...]]


def mean_rank(folds: Rankings) -> tuple[FloatArray, ...]:
    """Borda's count; features without a score share the mean of the last ranks."""
    return (folds.ranks.mean(axis=0),)


def median_rank(folds: Rankings) -> tuple[FloatArray, ...]:
    """Median, ties by the mean (Fagin, Kumar & Sivakumar 2003)."""
    return folds.ranks.mean(axis=0), np.median(folds.ranks, axis=0)


def median_or_last(folds: Rankings) -> tuple[FloatArray, ...]:
    """Median of the ranks, where a feature without a score counts as the last; ties by their
    mean.
    """
    ranks = np.where(folds.scores > 0, folds.ranks, folds.ranks.shape[1])
    return ranks.mean(axis=0), np.median(ranks, axis=0)


def geometric_mean(folds: Rankings) -> tuple[FloatArray, ...]:
    """Geometric mean of the ranks (Lin 2010)."""
    return (np.log(folds.ranks).mean(axis=0),)


def cut_at_n(folds: Rankings) -> tuple[FloatArray, ...]:
    """Mean of the ranks, where all behind the N best count N + 1; ties by the mean."""
    last = folds.n_selected + 1
    cut = np.where(folds.scores > 0, np.minimum(folds.ranks, last), last)
    return folds.ranks.mean(axis=0), cut.mean(axis=0)


def count_then_median(folds: Rankings) -> tuple[FloatArray, ...]:
    """Number of folds that select a feature, then the median rank, then the mean."""
    return folds.ranks.mean(axis=0), np.median(folds.ranks, axis=0), -folds.selected


def count_then_mean(folds: Rankings) -> tuple[FloatArray, ...]:
    """Number of folds that select a feature, then the mean rank."""
    return folds.ranks.mean(axis=0), -folds.selected


def count_then_geometric(folds: Rankings) -> tuple[FloatArray, ...]:
    """Number of folds that select a feature, then the geometric mean of the ranks."""
    return np.log(folds.ranks).mean(axis=0), -folds.selected


def reciprocal_ranks(folds: Rankings) -> tuple[FloatArray, ...]:
    """Sum of 1 / (60 + rank), 0 without a score (reciprocal rank fusion; Cormack, Clarke &
    Buettcher 2009).
    """
    return (-np.where(folds.scores > 0, 1 / (60 + folds.ranks), 0.0).sum(axis=0),)


def robust_aggregation(folds: Rankings) -> tuple[FloatArray, ...]:
    """Smallest beta P value of the ordered ranks (Kolde, Laur, Adler & Vilo 2012); ties by the
    mean rank.
    """
    n, d = folds.ranks.shape
    shares = np.sort(np.where(folds.scores > 0, folds.ranks / d, 1.0), axis=0)
    places = np.arange(1, n + 1)[:, None]
    return folds.ranks.mean(axis=0), beta.cdf(shares, places, n - places + 1).min(axis=0)


def markov_chain(folds: Rankings) -> tuple[FloatArray, ...]:
    """Stationary distribution of the chain that moves to what most folds prefer (MC4; Dwork et
    al. 2001).
    """
    n, d = folds.ranks.shape
    better = sum((row[None, :] < row[:, None]).astype(float) for row in folds.ranks)
    moves = (better > n / 2) / d  # from the row to the column
    np.fill_diagonal(moves, 1 - moves.sum(axis=1))
    chain, share = 0.95 * moves + 0.05 / d, np.full(d, 1 / d)
    for _ in range(200):
        share = share @ chain
    return folds.ranks.mean(axis=0), -share.round(12)


def mean_score(folds: Rankings) -> tuple[FloatArray, ...]:
    """Mean of the scores, each fold's divided by its length."""
    lengths = np.linalg.norm(folds.scores, axis=1, keepdims=True)
    return (-(folds.scores / np.where(lengths > 0, lengths, 1.0)).mean(axis=0),)


RULES: dict[str, Rule] = {
    "mean rank (until 0.8)": mean_rank,
    "median rank": median_rank,
    "median rank, last without a score": median_or_last,
    "geometric mean of ranks": geometric_mean,
    "mean of ranks cut off at N": cut_at_n,
    "folds that select, median rank": count_then_median,
    "folds that select, mean rank": count_then_mean,
    "folds that select, geometric mean": count_then_geometric,
    "reciprocal rank fusion": reciprocal_ranks,
    "robust rank aggregation": robust_aggregation,
    "Markov chain MC4": markov_chain,
    "mean of scores of length 1": mean_score,
}


def order(rule: Rule, folds: Rankings) -> IntArray:
    """Return the features, the best first; of equal ones the lower index first."""
    return np.lexsort(rule(folds)).astype(np.int64)
