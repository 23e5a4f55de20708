"""Figures of a ranking as bars: scores and fold ranks of features, and shares of modalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import IntArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import RankingPanel

_LEAST, _MOST, _MOST_IN_REPORT = 8, 40, 24


@dataclass(frozen=True, eq=False)
class ScoreBars(RankingPanel):
    """Scores of the best features, coloured by the number of outer folds that select each."""

    ranking: FeatureRanking
    task: str = ""
    key: str = "bars"
    table: str = "bars"
    most: int = _MOST

    def for_report(self) -> Self:
        return replace(self, most=_MOST_IN_REPORT)

    @property
    def what(self) -> str:  # type: ignore[override]
        n, ranking = len(self._shown), self.ranking
        what = f"score of {ranking.source}"
        if n < min(ranking.n_selected, ranking.n_scored):
            what += f"; the best {n} are shown"
        return what

    @property
    def _shown(self) -> IntArray:
        return self.ranking.top(min(max(self.ranking.n_selected, _LEAST), self.most))

    @property
    def _names(self) -> Sequence[str]:
        return [self.ranking.feature_names[i] for i in self._shown]

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return drawing.WIDTH, 0.2 * max(len(self._shown), 4) + 0.7

    @property
    def caption(self) -> str:
        ranking = self.ranking
        return (
            f"Scores of the {len(self._shown)} best features{self._whose} in {ranking.source}. The"
            f" colour is the number of the {ranking.n_folds} outer folds that select a feature"
            f" among their best {ranking.n_selected}."
        )

    def frame(self) -> pd.DataFrame:
        shown, ranking = self._shown, self.ranking
        counts = ranking.selection_count[shown]
        return pd.DataFrame(
            {"feature": self._names, "score": ranking.scores[shown], "outer_folds": counts}
        )

    def draw(self, ax: Axes) -> None:
        ranking, shown = self.ranking, self._shown
        if not len(shown):
            ax.set_axis_off()
            text = f"{ranking.source} selects no feature"
            ax.text(0.5, 0.5, text, ha="center", va="center", color="0.35", transform=ax.transAxes)
            return
        colours, norm = drawing.fold_colours(ranking.n_folds)
        filled = colours(norm(ranking.selection_count[shown]))
        edge: Any = {"edgecolor": "0.45", "linewidth": 0.6}
        ax.barh(range(len(shown)), ranking.scores[shown], color=filled, **edge)
        drawing.name_rows(ax, self._names, 30)
        ax.set_xlabel(f"score of {ranking.source}")
        drawing.clean_axes(ax, "x")
        drawing.add_fold_bar(ax, ScalarMappable(norm, colours), ranking.n_folds, self.size[1] - 0.7)


@dataclass(frozen=True, eq=False)
class FoldRankBars(ScoreBars):
    """Ranks of the best features over the outer folds: of each fold, their median and range."""

    section = ""
    what = "rank over the outer folds"

    key: str = "fold-ranks"
    table: str = ""

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        width, height = super().size
        return width, height + 0.35  # of the legend

    @property
    def caption(self) -> str:
        n, ranking = len(self._shown), self.ranking
        return (
            f"Ranks of the {n} best features{self._whose} in the winners of the {ranking.n_folds}"
            f" outer folds, with median and range. The line is behind rank {ranking.n_selected},"
            " the last that counts."
        )

    def frame(self) -> pd.DataFrame:
        shown, ranking = self._shown, self.ranking
        ranks = ranking.fold_ranks[:, shown]
        table = pd.DataFrame({"feature": self._names, "median_rank": np.median(ranks, axis=0)})
        each = pd.DataFrame(ranks.T, columns=list(ranking.fold_names))
        return pd.concat([table, each], axis=1)

    def draw(self, ax: Axes) -> None:
        ranking, shown = self.ranking, self._shown
        rows, ranks = np.arange(len(shown)), ranking.fold_ranks[:, shown]
        ax.hlines(rows, ranks.min(axis=0), ranks.max(axis=0), color=drawing.BLUE, linewidth=2.2)
        look: Any = {"color": drawing.BLUE, "markersize": 5, "label": "median and range"}
        ax.plot(np.median(ranks, axis=0), rows, "D", **look)
        drawing.mark_folds(ax, ranks.ravel(), np.tile(rows, ranking.n_folds))
        line: Any = {"color": drawing.OUTLINE, "linewidth": 1, "linestyle": "--"}
        ax.axvline(ranking.n_selected + 0.5, label=f"top {ranking.n_selected}", **line)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if max(ranks.max(), ranking.n_selected) > 100:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        drawing.name_rows(ax, self._names, 30)
        ax.set_xlabel(self.what)
        drawing.clean_axes(ax, "x")
        drawing.add_legend(ax)


@dataclass(frozen=True, eq=False)
class PartCounts(RankingPanel):
    """Number of features of each modality among the best, and how many chance would give."""

    key = "modalities"
    table = "modalities"
    on_white = False

    ranking: FeatureRanking

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"{self.ranking.part_axis}: features among the top {self.ranking.n_selected}"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.3 * len(self.ranking.parts) + 0.9

    @property
    def caption(self) -> str:
        return (
            f"Number of each {self.ranking.part_axis}'s features among the best"
            f" {self.ranking.n_selected}: in {self.ranking.source} and in each outer fold. The line"
            " is the number that random features would give, in proportion to its width."
        )

    def frame(self) -> pd.DataFrame:
        ranking, parts = self.ranking, self.ranking.parts
        widths = np.array([len(features) for features in parts.values()])
        table = pd.DataFrame({self.ranking.part_axis or "part": list(parts), "features": widths})
        table["selected_final"] = [ranking.selected[features].sum() for features in parts.values()]
        table["expected_at_random"] = ranking.n_selected * widths / ranking.n_candidates
        table["mean_score"] = [
            ranking.usable_scores[features].mean() for features in parts.values()
        ]
        counts = [ranking.fold_selected[:, features].sum(axis=1) for features in parts.values()]
        return table.join(
            pd.DataFrame(counts, columns=[f"selected_{name}" for name in ranking.fold_names])
        )

    def draw(self, ax: Axes) -> None:
        table, ranking = self.frame(), self.ranking
        rows, counts = np.arange(len(table)), table.iloc[:, -ranking.n_folds :].to_numpy()
        label = ranking.source.removeprefix("the ")
        ax.barh(
            rows, table["selected_final"], height=0.62, color=drawing.BLUE, alpha=0.35, label=label
        )
        drawing.mark_folds(ax, counts.ravel(), np.repeat(rows, ranking.n_folds))
        line: Any = {"color": drawing.OUTLINE, "linewidth": 1.6, "label": "expected by chance"}
        ax.vlines(table["expected_at_random"], rows - 0.42, rows + 0.42, **line)
        self._name_parts(ax, table)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"features among the best {ranking.n_selected}")
        drawing.add_legend(ax, right=True)  # names of modalities may be long

    @staticmethod
    def _name_parts(ax: Axes, table: pd.DataFrame) -> None:
        names = zip(table.iloc[:, 0], table["features"], strict=True)
        drawing.name_rows(ax, [f"{short(name, 24)} ({n})" for name, n in names])
        ax.set_xlim(left=0)
        drawing.clean_axes(ax, "x")


@dataclass(frozen=True, eq=False)
class PartScores(PartCounts):
    """Mean score of each modality's features, which does not grow with its width."""

    key = "modality-scores"
    section = ""

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"{self.ranking.part_axis}: mean score of a feature"

    @property
    def caption(self) -> str:
        return f"Mean score of each {self.ranking.part_axis}'s features in {self.ranking.source}."

    def draw(self, ax: Axes) -> None:
        table = self.frame()
        ax.barh(np.arange(len(table)), table["mean_score"], height=0.62, color=drawing.BLUE)
        self._name_parts(ax, table)
        ax.set_xlabel(f"mean score of the {self.ranking.part_axis}'s features")
