"""Agreement of the outer folds' rankings, and of the final model's with their consensus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import by_number, listed, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.numerics.rankings import (
    Stability,
    consensus_places,
    nogueira_stability,
    persistence,
    rank_biased_overlap,
    top_selected,
)

#: Share of the weight of the rank-biased overlap on the top N.
TOP_SHARE = 0.9
_GRID = 24  # values of N between 1 and all features
_NAMED = 3  # features that a sentence names


@dataclass(frozen=True, eq=False)
class FoldRanks:
    """Ranks of the features in the winners of the outer folds."""

    #: Ranks by `selection_ranks`; shape (n_folds, d).
    ranks: FloatArray
    #: Number of features with a score in each winner; shape (n_folds,).
    n_scored: IntArray
    #: Names of the folds.
    names: tuple[str, ...]

    @property
    def n_folds(self) -> int:
        """Number of outer folds."""
        return len(self.ranks)

    @property
    def n_features(self) -> int:
        """Number of all features, d."""
        return self.ranks.shape[1]

    def stability(self, n: int) -> Stability:
        """Return Nogueira's stability of the folds' selections; see `nogueira_stability`."""
        return nogueira_stability(top_selected(self.ranks, self.n_scored, n))

    def orders(self) -> list[IntArray]:
        """Return the indices of each fold's features with a score, best first."""
        return [
            np.argsort(row, kind="stable")[:n]
            for row, n in zip(self.ranks, self.n_scored, strict=True)
        ]

    def overlap(self, n: int) -> RankOverlap:
        """Return the rank-biased overlap of all pairs of folds."""
        p, orders = persistence(n, TOP_SHARE), self.orders()
        values = np.diag(np.where(self.n_scored > 0, 1.0, np.nan))
        for i, j in combinations(range(self.n_folds), 2):
            values[i, j] = values[j, i] = rank_biased_overlap(orders[i], orders[j], p)
        return RankOverlap(n, p, values, self.names)


@dataclass(frozen=True, eq=False)
class RankOverlap:
    """Rank-biased overlap of the rankings of the outer folds, extrapolated.

    Webber, Moffat & Zobel, 2010.

    Features without a score are not ranked: a ranking ends with its last feature that has one, and
    the overlap is extrapolated from there. `raysel.numerics.rankings` holds the equations.
    """

    #: Number of best features that have 90 % of the weight, by the choice of ``p``.
    n_features: int
    #: Weight of a rank as a share of that of the rank before.
    p: float
    #: Overlap of each pair of folds: 1 for equal rankings, 0 for rankings without a common feature;
    #: NaN where a fold gives no feature a score; shape (n_folds, n_folds).
    values: FloatArray
    #: Names of the folds.
    fold_names: tuple[str, ...]

    @cached_property
    def pairs(self) -> dict[tuple[str, str], float]:
        """Overlap of each pair of folds that have one, by the folds' names."""
        pairs = combinations(range(len(self.fold_names)), 2)
        known = ((i, j) for i, j in pairs if np.isfinite(self.values[i, j]))
        return {
            (self.fold_names[i], self.fold_names[j]): float(self.values[i, j]) for i, j in known
        }

    @property
    def mean(self) -> float:
        """Mean over the pairs; NaN if there is none."""
        if not self.pairs:
            return math.nan
        return float(np.mean(list(self.pairs.values())))

    @property
    def lowest(self) -> float:
        """Overlap of the pair that agrees least; NaN if there is none."""
        return min(self.pairs.values(), default=math.nan)

    @property
    def lowest_pair(self) -> tuple[str, str] | None:
        """Names of the folds that agree least, the first of equal pairs; None without a pair."""
        return min(self.pairs, key=lambda pair: self.pairs[pair], default=None)

    @property
    def reason(self) -> str:
        """Why there is no value; empty if there is one."""
        if self.pairs:
            return ""
        if len(self.fold_names) == 1:
            return "one outer fold"
        return "fewer than two outer folds give a feature a score"

    def __str__(self) -> str:
        if self.reason:
            return f"undefined ({self.reason})"
        total = len(self.fold_names) * (len(self.fold_names) - 1) // 2
        notes = []
        if len(self.pairs) < total:
            notes.append(f"of {len(self.pairs)} of {total} pairs")
        if total > 1:
            notes.append(f"lowest {self.lowest:.2f}")
        if not notes:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ({', '.join(notes)})"


def curve_sizes(wanted: Sequence[int], n_features: int) -> list[int]:
    """Return the numbers of features for a curve of the stability."""
    grid = np.round(np.geomspace(1, n_features, _GRID)).astype(int).tolist()
    return sorted({*(n for n in wanted if n <= n_features), *grid})


def consensus_scores(folds: FoldRanks) -> FloatArray:
    """Return the score of each feature in the consensus of the outer folds. Returns (d,)."""
    scored = (folds.ranks <= folds.n_scored[:, None]).any(axis=0)
    places = consensus_places(folds.ranks, folds.n_scored)
    return np.where(scored, folds.n_features + 1.0 - places, 0.0)


def consensus_sentence(ranking: FeatureRanking) -> str:
    """Say how the final model's best features differ from those of the folds' consensus."""
    chosen = ranking.top()
    consensus = set(ranking.consensus_top().tolist())
    if not len(chosen):
        return (
            "The final model selects no feature, so there is none to compare with the outer folds."
        )
    if not consensus:
        return "No winner of an outer fold gives a feature a score, so they have no consensus."
    if len(chosen) == int((~ranking.constant).sum()):
        return (
            f"The final model selects all {len(chosen)} features that are not constant, so no order"
            " is compared."
        )
    what = f"{len(chosen)} scored features"
    if len(chosen) == ranking.n_selected:
        what = f"top {len(chosen)}"
    whose = by_number(ranking.n_folds, "one outer fold's", "the outer folds'")
    other = f"top {ranking.n_selected} of {whose} consensus"
    apart = [int(i) for i in chosen if i not in consensus]
    if not apart:
        return f"All of the final model's {what} are in the {other}."
    counts = [f"{short(ranking.feature_names[i], 40)} {ranking.selection_count[i]}" for i in apart]
    verb, them = by_number(len(apart), "is", "are"), by_number(len(apart), "it", "them")
    return (
        f"{len(apart)} of the final model's {what} {verb} not in the {other}. Folds (of"
        f" {ranking.n_folds}) that select {them}: {listed(counts, _NAMED, ' and {n_more} more')}."
    )
