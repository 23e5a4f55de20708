"""Bar plots of a ranking: scores of the best features and their ranks over the outer folds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from raysel.arrays import IntArray
from raysel.display.style import BLUE, OUTLINE, fold_colours, label_folds
from raysel.printing.shortening import short
from raysel.ranking.feature_ranking import FeatureRanking

_AROUND = 1.25  # inches: an axis with its labels, and a line above


class Bars:
    """Score bars of the best features beside their ranks over the outer folds."""

    def __init__(self, ranking: FeatureRanking, least: int = 1, most: int = 40, meaning: str = "") -> None:
        self._meaning = meaning
        self._ranking, self._shown = ranking, ranking.top(min(max(ranking.n_selected, least), most))

    @property
    def height(self) -> float:
        """Height of the plot in inches."""
        return max(0.26 * len(self._shown), 1.5) + _AROUND

    def draw(self, area: Figure | SubFigure) -> None:
        """Draw the plot."""
        ranking, shown = self._ranking, self._shown
        if not len(shown):
            axes = area.subplots()
            axes.set_axis_off()
            axes.text(0.5, 0.5, f"{ranking.source} selects no feature", ha="center", va="center", color="0.35")
            return
        scores_axes, ranks_axes = area.subplots(1, 2, sharey=True)
        scores_axes.set_ylim(len(shown) - 0.4, -0.6)
        _score_bars(ranking, shown, scores_axes)
        below = f"\n{short(self._meaning, 66)}" if self._meaning else ""
        scores_axes.set_xlabel(f"score of {ranking.source}{below}", parse_math=False)
        _fold_ranks(ranking, shown, ranks_axes)
        for axes in (scores_axes, ranks_axes):
            axes.grid(axis="x", color="0.92")
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        colours, norm = fold_colours(ranking.n_folds)
        shrink = min(1.0, 3.5 / self.height)
        bar = area.colorbar(ScalarMappable(norm, colours), ax=ranks_axes, shrink=shrink, aspect=20, anchor=(0, 1))
        label_folds(bar, ranking.n_folds, (self.height - _AROUND) * shrink)


def _score_bars(ranking: FeatureRanking, shown: IntArray, axes: Axes) -> None:
    colours, norm = fold_colours(ranking.n_folds)
    shades = colours(norm(ranking.selection_count[shown]))
    places = np.arange(len(shown))
    axes.barh(places, ranking.scores[shown], color=shades, edgecolor="0.45", linewidth=0.6)
    names = [short(ranking.feature_names[i], 32) for i in shown]
    axes.set_yticks(places, names, parse_math=False)
    if len(shown) < min(ranking.n_selected, ranking.n_scored):
        axes.set_title(f"the best {len(shown)} are shown", fontsize=10)


def _fold_ranks(ranking: FeatureRanking, shown: IntArray, axes: Axes) -> None:
    places = np.arange(len(shown))
    mean, spread = ranking.consensus_rank[shown], ranking.rank_sd[shown]
    axes.hlines(places, np.maximum(mean - spread, 1.0), mean + spread, color=BLUE, linewidth=2.2)
    axes.plot(mean, places, "D", color=BLUE, markersize=5, label="mean ± SD over folds")
    of_folds, at = ranking.fold_ranks[:, shown].ravel(), np.tile(places, ranking.n_folds)
    axes.scatter(of_folds, at, s=22, facecolors="none", edgecolors="0.4", zorder=3, label="each outer fold")
    axes.axvline(
        ranking.n_selected + 0.5, color=OUTLINE, linewidth=1, linestyle="--", label=f"top {ranking.n_selected}"
    )
    if max(of_folds.max(), ranking.n_selected) > 100:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rank over the outer folds")
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, columnspacing=1.2)
