"""Figure of the inner score over the hyperparameters that were searched over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.printing import listed, mean_and_sd, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL, ChooseN, TrialRecord
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay
from raysel.results.facts import Facts
from raysel.results.scores import FoldValues
from raysel.results.texts import spaced

_GROUPS = 5  # groups of the values of a parameter of many values
_MOST_LABELS = 16
_FEW_VALUES = 6  # of a number, all of which are labelled
_GRID_WIDTH = 5.6  # inches, of a grid below its legend
_FULL = 0.6  # least share of the cells of a grid that configurations fill


@dataclass(frozen=True)
class TriedConfiguration:
    """A configuration with its mean inner score; None if it failed."""

    params: Mapping[str, Any]
    score: float | None
    n_winners: int = 0
    is_model: bool = False
    stopped: bool = False
    fold: str = ""


@dataclass(frozen=True, eq=False)
class SearchSurface(StudyDisplay):
    """Inner score over one or two hyperparameters, the best over all others.

    Two parameters of a grid are drawn as a heat map, two of other searches as points, and one as a
    line.
    """

    key = "search"
    section = "tried"
    table = "tried"
    lacks = "has no search to show: no parameter was searched over, or every configuration failed."

    metric: str
    tried: Sequence[TriedConfiguration]

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the search of a study, if configurations differ and one has a score.

        The scores are means over the outer folds; where one parameter was searched over in each
        outer fold by itself, each configuration has a point in each fold.
        """
        tried = _tried(facts, by_fold=False)
        if len(varying_parameters(tried)) == 1 and any(
            record.fold for record in facts.records.trials
        ):
            tried = _tried(facts, by_fold=True)
        surface = cls(facts.name, spaced(facts.metric), tried)
        if not surface.shown or all(one.score is None for one in tried):
            return None
        return surface

    @property
    def what(self) -> str:  # type: ignore[override]
        shown = " and ".join(short(name.rpartition("__")[2], 20) for name in self.shown)
        return f"inner {self.metric} over {shown}"

    @cached_property
    def shown(self) -> list[str]:
        """Names of the one or two parameters on the axes."""
        return shown_parameters(self.tried)

    @property
    def _by_fold(self) -> bool:
        return any(one.fold for one in self.tried)

    @property
    def caption(self) -> str:
        others = [name for name in varying_parameters(self.tried) if name not in self.shown]
        best = ""
        if others:
            named = listed([short(name, 30) for name in others], 6, " and others")
            best = f", the best over {named}, which explain less of the score's variance"
        over = "mean over the inner and outer folds"
        if self._by_fold:
            over = "mean over the inner folds, one line a fold"
        n_scored = sum(one.score is not None for one in self.tried)
        return (
            f"Inner {self.metric} of {n_scored} of {len(self.tried)} configurations by"
            f" {' and '.join(short(name, 40) for name in self.shown)}{best}: {over}, for display"
            " only. Each outer fold chooses its winner by its own inner folds. The best inner"
            " score is no estimate for new samples: it is the best of many, and of smaller training"
            " sets."
        )

    @property
    def _is_grid(self) -> bool:
        """Whether configurations fill most cells of the grid of two parameters' values."""
        values = [distinct_values(self.tried, name) for name in self.shown]
        n_cells = np.prod([len(distinct) for distinct, _ in values])
        n_filled = len(set(zip(*(at.tolist() for _, at in values), strict=True)))
        return len(self.shown) == 2 and bool(n_filled >= _FULL * n_cells)

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        if not self._is_grid:
            return drawing.WIDTH, 3.4
        rows, _ = distinct_values(self.tried, self.shown[-1])
        return _GRID_WIDTH, float(np.clip(0.36 * len(rows) + 1.2, 2.4, 6.0))

    @property
    def on_white(self) -> bool:  # type: ignore[override]
        return len(self.shown) == 2

    def frame(self) -> pd.DataFrame:
        names = varying_parameters(self.tried)
        table: dict[str, Any] = {}
        if self._by_fold:
            table["fold"] = [one.fold for one in self.tried]
        table |= {name: [one.params.get(name) for one in self.tried] for name in names}
        table[f"val_{self.metric.replace(' ', '_')}"] = [one.score for one in self.tried]
        table["outer_folds_won"] = [one.n_winners for one in self.tried]
        table["final_model"] = [one.is_model for one in self.tried]
        return pd.DataFrame(table)

    def draw(self, ax: Axes) -> None:
        if self._is_grid:
            self._draw_grid(ax)
        elif len(self.shown) == 1:
            self._draw_line(ax)
        else:
            self._draw_points(ax)

    @property
    def scores(self) -> FloatArray:
        """Inner scores, NaN where a configuration failed; shape (n_configurations,)."""
        return np.array([one.score for one in self.tried], dtype=float)

    def _draw_points(self, ax: Axes) -> None:
        x, y = self._places(ax, self.shown[0], "x"), self._places(ax, self.shown[1], "y")
        scores, stopped = self.scores, np.array([one.stopped for one in self.tried])
        norm, failed = Normalize(np.nanmin(scores), np.nanmax(scores)), np.isnan(scores)
        order = np.argsort(np.where(failed, -np.inf, scores), kind="stable")  # the best on top
        look: Any = {
            "cmap": "viridis",
            "norm": norm,
            "s": 46,
            "edgecolors": "0.25",
            "linewidths": 0.6,
            "zorder": 2,
        }
        for mask, marker, label in ((~stopped, "o", None), (stopped, "v", "stopped early")):
            drawn = order[(mask & ~failed)[order]]
            if len(drawn):
                ax.scatter(x[drawn], y[drawn], c=scores[drawn], marker=marker, label=label, **look)
        if failed.any():
            ax.scatter(x[failed], y[failed], marker="x", color="0.45", s=30, label="failed")
        self._mark_winners(ax, x, y)
        colours = ScalarMappable(norm, colormaps["viridis"])
        drawing.add_colour_bar(ax, colours, f"inner {self.metric}")
        drawing.clean_axes(ax)
        drawing.add_legend(ax, scatterpoints=1)

    def _draw_line(self, ax: Axes) -> None:
        name, scores = self.shown[0], self.scores
        x = self._places(ax, name, "x")
        order = np.argsort(x, kind="stable")
        look: Any = {"color": drawing.BLUE, "marker": "o", "linestyle": "", "markersize": 5.5}
        if all(is_number(one.params.get(name)) for one in self.tried):
            look["linestyle"] = "-"
        failed = np.isnan(scores)
        folds = np.array([one.fold for one in self.tried])
        for fold in dict.fromkeys(folds.tolist()):  # scores of different folds are not comparable
            drawn = order[(~failed & (folds == fold))[order]]
            ax.plot(x[drawn], scores[drawn], **look)
        label = "failed"
        for place in x[failed]:
            ax.axvline(place, color="0.6", linestyle=":", linewidth=1, label=label)
            label = ""  # the legend has it once
        self._mark_winners(ax, x, scores)
        drawing.clean_axes(ax, "y")
        ax.set_ylabel(f"inner {self.metric}", parse_math=False)
        drawing.add_legend(ax)

    def _mark_winners(self, ax: Axes, x: FloatArray, y: FloatArray) -> None:
        scored = [i for i, one in enumerate(self.tried) if one.score is not None]
        winners = [i for i in scored if self.tried[i].n_winners]
        model = [i for i in scored if self.tried[i].is_model]
        for chosen, marker, colour, size, label in (
            (winners, "o", "0", 11, "wins an outer fold"),
            (model, "s", drawing.OUTLINE, 15, "final model"),
        ):
            if chosen:
                look: Any = {"markersize": size, "markeredgecolor": colour, "label": label}
                look |= {"markerfacecolor": "none", "markeredgewidth": 1.6, "linestyle": ""}
                ax.plot(x[chosen], y[chosen], marker, zorder=3, **look)

    def _places(self, ax: Axes, name: str, side: Literal["x", "y"]) -> FloatArray:
        """Set up the axis of a parameter, and return the place of each configuration on it."""
        distinct, at = distinct_values(self.tried, name)
        axis, longest = (ax.xaxis, 50) if side == "x" else (ax.yaxis, 34)
        axis.set_label_text(short(name, longest), parse_math=False)
        if not all(map(is_number, distinct)):
            axis.set_ticks(range(len(distinct)), list(map(_label, distinct)), parse_math=False)
            return at.astype(float)
        numbers = np.array(distinct, dtype=float)[at]
        if numbers.min() > 0 and numbers.max() >= 20 * numbers.min():
            drawing.scale_by_logarithm(ax, side, numbers)
        if len(few := np.unique(numbers)) <= _FEW_VALUES:
            axis.set_ticks([], minor=True)
            axis.set_ticks(few.tolist(), list(map(_label, few)))
        return numbers

    def _draw_grid(self, ax: Axes) -> None:
        """Draw the best score in each cell of the grid of two parameters as a heat map."""
        (columns, x), (rows, y) = (distinct_values(self.tried, name) for name in self.shown)
        cells: dict[tuple[int, int], list[TriedConfiguration]] = {}
        for row, column, one in zip(y.tolist(), x.tolist(), self.tried, strict=True):
            cells.setdefault((row, column), []).append(one)
        best = np.full((len(rows), len(columns)), np.nan)
        for place, group in cells.items():
            best[place] = _best(group).score  # None is NaN
        shown = np.ma.masked_invalid(best)
        look: Any = {"cmap": "viridis", "aspect": "auto", "interpolation": "nearest"}
        image = ax.imshow(shown, origin="lower", **look)
        drawing.add_colour_bar(ax, image, f"inner {self.metric}")
        dark = best < shown.min() + 0.6 * np.ptp(shown)
        won = {place: sum(one.n_winners for one in group) for place, group in cells.items()}
        if len(columns) <= 12 and len(rows) <= 14:
            _write_scores(ax, best, won, dark)
            notes = ["outlined: final model", "won: outer folds that it wins"]
        else:
            _dot_winners(ax, won, dark)
            notes = ["outlined: final model", "dot: wins an outer fold"]
        _frame_cells(ax, cells, best)
        self._label_grid(ax, columns, rows)
        if any(np.isnan(best[place]) for place in cells):
            notes.append("crossed: failed")
        ax.set_title("   \u00b7   ".join(notes), fontsize=8.5, loc="left", color="0.25")

    def _label_grid(self, ax: Axes, columns: Sequence[Any], rows: Sequence[Any]) -> None:
        """Label the axes of a grid with the names and values of its two parameters."""
        across, up = self.shown
        ax.xaxis.set_label_text(short(across, 50), parse_math=False)
        ax.yaxis.set_label_text(short(up, 26), parse_math=False)
        for axis, values in ((ax.xaxis, columns), (ax.yaxis, rows)):
            step = -(-len(values) // _MOST_LABELS)
            labels = list(map(_label, values[::step]))
            axis.set_ticks(range(0, len(values), step), labels, parse_math=False)
        if len(columns) > 6 and max(len(_label(value)) for value in columns) > 5:
            ax.tick_params(axis="x", rotation=45)


def _write_scores(
    ax: Axes, best: FloatArray, won: Mapping[tuple[int, int], int], dark: BoolArray
) -> None:
    """Write the best score into each cell, and how many outer folds it wins."""
    texts = {place: mean_and_sd(best[place]) for place in won if not np.isnan(best[place])}
    for place in texts:
        if won[place]:
            texts[place] += f"\n{won[place]} won"
    drawing.write_cells(ax, texts, dark, 8)


def _dot_winners(ax: Axes, won: Mapping[tuple[int, int], int], dark: BoolArray) -> None:
    """Draw a dot in each cell that wins an outer fold."""
    for (row, column), n in won.items():
        if n:
            ax.plot(column, row, "o", color="1" if dark[row, column] else "0", markersize=4)


def _frame_cells(
    ax: Axes, cells: Mapping[tuple[int, int], Sequence[TriedConfiguration]], best: FloatArray
) -> None:
    """Outline the cell of the final model, and cross those where every configuration failed."""
    model: Any = {"fill": False, "edgecolor": drawing.OUTLINE, "linewidth": 3, "clip_on": False}
    model["zorder"] = 4
    cross: Any = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "xxx", "linewidth": 0}
    for (row, column), configurations in cells.items():
        if np.isnan(best[row, column]):
            look = cross
        elif any(one.is_model for one in configurations):
            look = model
        else:
            continue
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))


def _tried(facts: Facts, *, by_fold: bool) -> list[TriedConfiguration]:
    by_params: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in facts.records.trials:
        key = (record.fold if by_fold else "", json.dumps(record.params, sort_keys=True))
        by_params.setdefault(key, []).append(record)
    wins = [refit.trial for refit in facts.outer]
    model = facts.final.trial if facts.final else None
    tried = []
    for (fold, _), records in by_params.items():
        known = FoldValues.of(_scores(records, facts.study.choose_n)).known
        tried.append(
            TriedConfiguration(
                records[0].params,
                known.mean if known else None,
                n_winners=sum(wins.count(record.id) for record in records),
                is_model=any(record.id == model for record in records),
                stopped=all(record.status == "stopped" for record in records),
                fold=fold,
            )
        )
    return tried


def _scores(records: Sequence[TrialRecord], choose_n: ChooseN) -> list[float]:
    """Scores of a configuration in the outer folds, or in the final one if it ran in no other."""
    outer: list[float | None] = []
    final: list[float | None] = []
    for record in records:
        for name, trace in record.folds.items():
            scores = final if name == FINAL else outer
            scores.append(trace.score(choose_n))
    return [score for score in outer or final if score is not None]


def shown_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Choose at most two of the varying parameters, which explain most of the score's variance.

    The share of a pair is the variance of the mean scores of the pair's cells; the values of a
    number with many of them are divided into five groups of equal size first. The order is that of
    the parameters.
    """
    varying = varying_parameters(tried)
    scored = [one for one in tried if one.score is not None]
    if len(varying) <= 2 or not scored:
        return varying[:2]
    scores = np.array([one.score for one in scored], dtype=float)
    groups = {name: _groups(scored, name) for name in varying}

    def explained(pair: tuple[str, str]) -> float:
        cells = pd.Series(scores).groupby([groups[pair[0]], groups[pair[1]]]).agg(["size", "mean"])
        return round(float((cells["size"] * (cells["mean"] - scores.mean()) ** 2).sum()), 12)

    return [*max(combinations(varying, 2), key=explained)]


def varying_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Return the names of the parameters that have several values."""
    names = dict.fromkeys(chain.from_iterable(one.params for one in tried))
    return [name for name in names if len(distinct_values(tried, name)[0]) > 1]


def is_number(value: Any) -> bool:
    """Return whether the value of a parameter is a number; True and False are none."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def distinct_values(tried: Sequence[TriedConfiguration], name: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values of a parameter, increasing numbers first, and each one's place."""
    given = [one.params.get(name) for one in tried]
    distinct = list({repr(value): value for value in given}.values())
    numbers: list[Any] = [value for value in distinct if is_number(value)]
    ordered = [*sorted(numbers), *(value for value in distinct if not is_number(value))]
    places = {repr(value): i for i, value in enumerate(ordered)}
    return ordered, np.array([places[repr(value)] for value in given], dtype=np.int64)


def _groups(tried: Sequence[TriedConfiguration], name: str) -> IntArray:
    """Group of each configuration by the value of a parameter."""
    distinct, at = distinct_values(tried, name)
    if len(distinct) <= _GROUPS or not all(map(is_number, distinct)):
        return at
    numbers = np.array(distinct, dtype=float)[at]
    return np.searchsorted(np.quantile(numbers, np.linspace(0, 1, _GROUPS + 1)[1:-1]), numbers)


def _best(tried: Sequence[TriedConfiguration]) -> TriedConfiguration:
    """The configuration of the best score; one that was stopped early only if there is no other."""
    return max(tried, key=lambda one: (one.score is not None, not one.stopped, one.score or 0.0))


def _label(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.3g}"
    return short(str(value), 14)
