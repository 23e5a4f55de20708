"""Figures of a ranking as bars: scores of the best features, and numbers of features selected of each modality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import IntArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.display import (
    BLUE,
    OUTLINE,
    Display,
    add_fold_bar,
    add_legend,
    clean_axes,
    fold_colours,
    name_rows,
)

_LEAST, _MOST = 8, 24


@dataclass(frozen=True, eq=False)
class ScoreBars(Display):
    """Scores of the best features, coloured by the number of outer folds that select each."""

    section = "features"
    on_white = True

    ranking: FeatureRanking
    task: str = ""
    key: str = "bars"
    table: str = "bars"

    @property
    def title(self) -> str:
        return f"{f'{short(self.task, 24)}: ' if self.task else ''}score of {self.ranking.source}"

    @property
    def _shown(self) -> IntArray:
        return self.ranking.top(min(max(self.ranking.n_selected, _LEAST), _MOST))

    @property
    def _names(self) -> Sequence[str]:
        return [self.ranking.feature_names[i] for i in self._shown]

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.2 * max(len(self._shown), 4) + 0.7

    @property
    def caption(self) -> str:
        ranking, of = self.ranking, f" of {short(self.task, 40)}" if self.task else ""
        return (
            f"Scores of the {len(self._shown)} best features{of} in {ranking.source}; the colour is the number of the "
            f"{ranking.n_folds} outer folds that select a feature among their best {ranking.n_selected}."
        )

    def frame(self) -> pd.DataFrame:
        shown, ranking = self._shown, self.ranking
        counts = ranking.selection_count[shown]
        return pd.DataFrame({"feature": self._names, "score": ranking.scores[shown], "outer_folds": counts})

    def draw(self, ax: Axes) -> None:
        ranking, shown = self.ranking, self._shown
        if not len(shown):
            ax.set_axis_off()
            text = f"{ranking.source} selects no feature"
            ax.text(0.5, 0.5, text, ha="center", va="center", color="0.35", transform=ax.transAxes)
            return
        colours, norm = fold_colours(ranking.n_folds)
        filled = colours(norm(ranking.selection_count[shown]))
        ax.barh(range(len(shown)), ranking.scores[shown], color=filled, edgecolor="0.45", linewidth=0.6)
        name_rows(ax, self._names, 30)
        ax.set_xlabel(f"score of {ranking.source}")
        clean_axes(ax, "x")
        add_fold_bar(ax, ScalarMappable(norm, colours), ranking.n_folds, self.size[1] - 0.7)


@dataclass(frozen=True, eq=False)
class PartCounts(Display):
    """Number of features of each modality among the best, and how many chance would give."""

    key = "modalities"
    section = "features"
    table = "modalities"

    ranking: FeatureRanking

    @property
    def title(self) -> str:
        return f"{self.ranking.part_axis}: features among the top {self.ranking.n_selected}"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.3 * len(self.ranking.parts) + 0.9

    @property
    def caption(self) -> str:
        return (
            f"Number of each {self.ranking.part_axis}'s features among the best {self.ranking.n_selected}: in "
            f"{self.ranking.source} and in each outer fold; the line is the number expected if features were drawn at "
            "random, in proportion to its width."
        )

    def frame(self) -> pd.DataFrame:
        ranking, parts = self.ranking, self.ranking.parts
        widths = np.array([len(features) for features in parts.values()])
        table = pd.DataFrame({self.ranking.part_axis or "part": list(parts), "features": widths})
        table["selected_final"] = [ranking.selected[features].sum() for features in parts.values()]
        table["expected_at_random"] = ranking.n_selected * widths / ranking.n_features
        table["summed_score"] = [ranking.usable_scores[features].sum() for features in parts.values()]
        counts = [ranking.fold_selected[:, features].sum(axis=1) for features in parts.values()]
        return table.join(pd.DataFrame(counts, columns=[f"selected_{name}" for name in ranking.fold_names]))

    def draw(self, ax: Axes) -> None:
        table, ranking = self.frame(), self.ranking
        places = np.arange(len(table))
        source = ranking.source.removeprefix("the ")
        ax.barh(places, table["selected_final"], height=0.62, color=BLUE, alpha=0.35, label=source)
        counts = table[[f"selected_{name}" for name in ranking.fold_names]].to_numpy()
        at = np.repeat(places, ranking.n_folds)
        circles: Any = {"facecolors": "none", "edgecolors": "0.3", "label": "each outer fold"}
        ax.scatter(counts.ravel(), at, s=22, zorder=3, **circles)
        line: Any = {"color": OUTLINE, "linewidth": 1.6, "label": "expected by chance"}
        ax.vlines(table["expected_at_random"], places - 0.42, places + 0.42, **line)
        name_rows(ax, [f"{short(name, 24)} ({n})" for name, n in zip(table.iloc[:, 0], table["features"], strict=True)])
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel(f"features among the best {ranking.n_selected}")
        clean_axes(ax, "x")
        add_legend(ax)
