"""Bar plots of a ranking: scores of the best features and their ranks over the outer folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.data.layouts import SEPARATOR, Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.maps import Maps
from raysel.results.displays.planes import make_plane
from raysel.results.displays.style import BLUE, OUTLINE, fold_colours, label_folds

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


_TITLE = 0.48  # inches, as all sizes here: two lines
_MAP, _SMALL_MAP, _FEW_TASKS = (3.3, 3.0), (2.7, 2.4), 2
_LEAST_BARS, _MOST_BARS = 8, 16


def shares(n_selected: int, widths: Mapping[str, int]) -> dict[str, int]:
    """Divide a number of features among tasks in proportion to their numbers of features, by largest remainders."""
    exact = {name: n_selected * width / sum(widths.values()) for name, width in widths.items()}
    found = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in by_remainder[: n_selected - sum(found.values())]:
        found[name] += 1
    return {name: max(1, share) for name, share in found.items()}


class TaskRow:
    """Plot of one task's features, ranked among themselves: maps for matrix-shaped samples, else bars."""

    def __init__(
        self,
        ranking: FeatureRanking,
        layout: Layout,
        name: str,
        fact: str = "",
        background: FloatArray | None = None,
        meaning: str = "",
    ) -> None:
        blocks = layout.blocks()
        widths = {task: block.n_features for task, (_, block) in blocks.items()}
        own_columns, block = blocks[name]
        columns = np.arange(layout.n_features)[own_columns]
        own = ranking.restrict_to(columns, shares(ranking.n_selected, widths)[name])
        names = tuple(feature.removeprefix(f"{name}{SEPARATOR}") for feature in own.feature_names)
        self._name, self._fact, self._ranking = name, fact, replace(own, feature_names=names)
        below = background[columns] if background is not None else None
        few = len(blocks) <= _FEW_TASKS
        size = _MAP if few else _SMALL_MAP
        plane = make_plane(block, own.usable_scores, size)
        self._maps = Maps(plane, size, below, meaning=meaning) if plane else None
        self._bars = Bars(self._ranking, _LEAST_BARS, _MOST_BARS if few else _LEAST_BARS, meaning)

    @property
    def height(self) -> float:
        """Height of the row in inches."""
        return _TITLE + (self._maps.size[1] if self._maps else self._bars.height)

    def draw(self, area: Figure | SubFigure, width: float) -> None:
        """Draw the row."""
        ranking, height = self._ranking, self.height
        halves: Any = area.subfigures(2, 1, height_ratios=[_TITLE, height - _TITLE])
        heading, body = halves
        title = f"{short(self._name, 30)}: top {ranking.n_selected} of its {ranking.n_features} features"
        lines = ((title, 0.1, 11, "bold", "0"), (self._fact, 0.33, 9.5, "normal", "0.25"))
        for text, drop, size, weight, colour in lines:
            x, y = 0.15 / width, 1 - drop / _TITLE
            heading.text(x, y, text, fontsize=size, fontweight=weight, color=colour, va="top", parse_math=False)
        if self._maps:
            self._maps.draw(body, (width, height - _TITLE), ranking)
        else:
            self._bars.draw(body)


class ModalityBars:
    """Bar plots of each modality's summed score and number of selected features."""

    def __init__(self, ranking: FeatureRanking) -> None:
        self._ranking = ranking

    @property
    def height(self) -> float:
        """Height of the plot in inches."""
        return 0.32 * len(self._ranking.parts) + 1.1

    def draw(self, area: Figure | SubFigure) -> None:
        """Draw the plot."""
        parts = self._ranking.parts
        sums_axes, counts_axes = area.subplots(1, 2, sharey=True)
        sums_axes.set_ylim(len(parts) - 0.4, -0.6)
        sums = [self._ranking.scores[features].sum() for features in parts.values()]
        sums_axes.barh(np.arange(len(parts)), sums, height=0.62, color=BLUE)
        labels = [f"{short(name, 24)} ({len(features)})" for name, features in parts.items()]
        sums_axes.set_yticks(np.arange(len(parts)), labels, parse_math=False)
        sums_axes.set_xlim(left=0)
        sums_axes.set_xlabel("summed score of the modality's features")
        self._counts(counts_axes)
        for axes in (sums_axes, counts_axes):
            axes.grid(axis="x", color="0.92")
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)

    def _counts(self, axes: Axes) -> None:
        """Draw the number of selected features by modality: final model, outer folds, and share by width."""
        ranking, parts = self._ranking, self._ranking.parts
        places = np.arange(len(parts))
        chosen = ranking.selected
        axes.barh(
            places,
            [chosen[f].sum() for f in parts.values()],
            height=0.62,
            color=BLUE,
            alpha=0.35,
            label=ranking.source.removeprefix("the "),
        )
        of_folds = [ranking.fold_selected[:, f].sum(axis=1) for f in parts.values()]
        at = np.repeat(places, ranking.n_folds)
        axes.scatter(
            np.concatenate(of_folds), at, s=22, facecolors="none", edgecolors="0.3", zorder=3, label="each outer fold"
        )
        by_width = [ranking.n_selected * len(f) / ranking.n_features for f in parts.values()]
        axes.vlines(by_width, places - 0.42, places + 0.42, color=OUTLINE, linewidth=1.6, label="expected by chance")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"features among the top {ranking.n_selected}")
        axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, columnspacing=1.2)
