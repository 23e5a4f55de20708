"""Figure of the validation score over the hyperparameters that were searched over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import listed, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay
from raysel.results.numbers import StudyNumbers

_GROUPS = 5  # groups of the values of a parameter of many values
_MOST_LABELS = 16
_FEW_VALUES = 6  # of a number, all of which are labelled
_FULL = 0.6  # least share of the cells of a grid that configurations fill


@dataclass(frozen=True)
class TriedConfiguration:
    """A configuration with its mean validation score; None if it failed."""

    params: Mapping[str, Any]
    score: float | None
    n_winners: int = 0
    is_model: bool = False
    stopped: bool = False
    fold: str = ""


@dataclass(frozen=True, eq=False)
class SearchSurface(StudyDisplay):
    """Validation score over one or two hyperparameters, the best over all others.

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
    def from_result(
        cls, result: StudyNumbers, ranking: FeatureRanking | None = None
    ) -> Self | None:
        """Show the search of a study, if configurations differ and one has a score.

        The scores are means over the outer folds; where one parameter was searched over in each
        outer fold by itself, each configuration has a point in each fold.
        """
        tried = _tried(result, by_fold=False)
        if len(varying_parameters(tried)) == 1 and any(record.fold for record in result.records):
            tried = _tried(result, by_fold=True)
        surface = cls(result.name, drawing.readable(result.metric), tried)
        return surface if surface.shown and any(one.score is not None for one in tried) else None

    @property
    def what(self) -> str:  # type: ignore[override]
        shown = " and ".join(short(name.rpartition("__")[2], 20) for name in self.shown)
        return f"validation {self.metric} over {shown}"

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
        over = (
            "mean over the inner folds, one line a fold"
            if self._by_fold
            else "mean over the inner and outer folds"
        )
        n_scored = sum(one.score is not None for one in self.tried)
        return (
            f"Validation {self.metric} of {n_scored} of {len(self.tried)} configurations by"
            f" {' and '.join(short(name, 40) for name in self.shown)}{best}: {over}, for display"
            " only. Each outer fold chooses its winner by its own inner folds, and the best"
            " validation score is no estimate for new samples: it is the best of many, and of"
            " smaller training sets."
        )

    @property
    def _is_grid(self) -> bool:
        """Whether there are two parameters, and the configurations fill most cells of the grid
        of their values.
        """
        values = [values_of(self.tried, name) for name in self.shown]
        n_cells = np.prod([len(distinct) for distinct, _ in values])
        n_filled = len(set(zip(*(at.tolist() for _, at in values), strict=True)))
        return len(self.shown) == 2 and bool(n_filled >= _FULL * n_cells)

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        if not self._is_grid:
            return drawing.WIDTH, 3.4
        rows, _ = values_of(self.tried, self.shown[-1])
        return drawing.WIDTH, float(np.clip(0.36 * len(rows) + 1.2, 2.4, 6.0))

    @property
    def on_white(self) -> bool:  # type: ignore[override]
        return len(self.shown) == 2

    def frame(self) -> pd.DataFrame:
        names = varying_parameters(self.tried)
        table: dict[str, Any] = {"fold": [one.fold for one in self.tried]} if self._by_fold else {}
        table |= {name: [one.params.get(name) for one in self.tried] for name in names}
        table[f"val_{self.metric.replace(' ', '_')}"] = [one.score for one in self.tried]
        table["outer_folds_won"] = [one.n_winners for one in self.tried]
        table["final_model"] = [one.is_model for one in self.tried]
        return pd.DataFrame(table)

    def draw(self, ax: Axes) -> None:
        draw = self._draw_line if len(self.shown) == 1 else self._draw_points
        (self._draw_grid if self._is_grid else draw)(ax)

    @property
    def scores(self) -> FloatArray:
        """Validation scores, NaN where a configuration failed; shape (n_configurations,)."""
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
        drawing.add_colour_bar(
            ax, ScalarMappable(norm, colormaps["viridis"]), f"validation {self.metric}"
        )
        drawing.clean_axes(ax)
        drawing.add_legend(ax, scatterpoints=1)

    def _draw_line(self, ax: Axes) -> None:
        name, scores = self.shown[0], self.scores
        x = self._places(ax, name, "x")
        order = np.argsort(x, kind="stable")
        style = "-" if all(is_number(one.params.get(name)) for one in self.tried) else ""
        folds = np.array([one.fold for one in self.tried])
        for fold in dict.fromkeys(folds.tolist()):  # scores of different folds are not comparable
            drawn = order[(~np.isnan(scores) & (folds == fold))[order]]
            ax.plot(
                x[drawn],
                scores[drawn],
                color=drawing.BLUE,
                marker="o",
                linestyle=style,
                markersize=5.5,
            )
        for i, place in enumerate(x[np.isnan(scores)]):
            ax.axvline(
                place, color="0.6", linestyle=":", linewidth=1, label=None if i else "failed"
            )
        self._mark_winners(ax, x, scores)
        drawing.clean_axes(ax, "y")
        ax.set_ylabel(f"validation {self.metric}", parse_math=False)
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
                edge: Any = {
                    "markerfacecolor": "none",
                    "markeredgecolor": colour,
                    "markeredgewidth": 1.6,
                }
                ax.plot(
                    x[chosen],
                    y[chosen],
                    marker,
                    markersize=size,
                    linestyle="",
                    label=label,
                    zorder=3,
                    **edge,
                )

    def _places(self, ax: Axes, name: str, side: Literal["x", "y"]) -> FloatArray:
        """Set up the axis of a parameter, and return the place of each configuration on it."""
        distinct, at = values_of(self.tried, name)
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_label_text(short(name, 50 if side == "x" else 34), parse_math=False)
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
        (columns, x), (rows, y) = (values_of(self.tried, name) for name in self.shown)
        cells: dict[tuple[int, int], list[TriedConfiguration]] = {}
        for place, one in zip(zip(y.tolist(), x.tolist(), strict=True), self.tried, strict=True):
            cells.setdefault(place, []).append(one)
        best = np.full((len(rows), len(columns)), np.nan)
        for place, configurations in cells.items():
            best[place] = _best(configurations).score  # None is NaN
        shown = np.ma.masked_invalid(best)
        image = ax.imshow(
            shown, cmap="viridis", aspect="auto", origin="lower", interpolation="nearest"
        )
        drawing.add_colour_bar(ax, image, f"validation {self.metric}")
        won = {
            place: n for place, group in cells.items() if (n := sum(one.n_winners for one in group))
        }
        dark, failed = (
            best < shown.min() + 0.6 * np.ptp(shown),
            [place for place in cells if np.isnan(best[place])],
        )
        written = len(columns) <= 12 and len(rows) <= 14
        if written:
            texts = {place: f"{best[place]:.3f}" for place in cells if place not in failed}
            texts |= {
                place: f"{text}\n{won[place]} won" for place, text in texts.items() if place in won
            }
            drawing.write_cells(ax, texts, dark, 8)
        for row, column in () if written else won:
            ax.plot(column, row, "o", color="1" if dark[row, column] else "0", markersize=4)
        model: Any = {
            "fill": False,
            "edgecolor": drawing.OUTLINE,
            "linewidth": 3,
            "clip_on": False,
            "zorder": 4,
        }
        cross: Any = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "xxx", "linewidth": 0}
        for (row, column), configurations in cells.items():
            if (row, column) in failed or any(one.is_model for one in configurations):
                look = cross if (row, column) in failed else model
                ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))
        for axis, values, name in zip(
            (ax.xaxis, ax.yaxis), (columns, rows), self.shown, strict=True
        ):
            step = -(-len(values) // _MOST_LABELS)
            axis.set_ticks(
                range(0, len(values), step), list(map(_label, values[::step])), parse_math=False
            )
            axis.set_label_text(short(name, 50 if axis is ax.xaxis else 26), parse_math=False)
        if len(columns) > 6 and max(len(_label(value)) for value in columns) > 5:
            ax.tick_params(axis="x", rotation=45)
        notes = [
            "outlined: final model",
            "won: outer folds that it wins" if written else "dot: wins an outer fold",
        ]
        notes += ["crossed: failed"] * bool(failed)
        ax.set_title("   \u00b7   ".join(notes), fontsize=8.5, loc="left", color="0.25")


def _tried(result: StudyNumbers, *, by_fold: bool) -> list[TriedConfiguration]:
    by_params: dict[tuple[str, str], list[Any]] = {}
    for record in result.records:
        key = (record.fold if by_fold else "", json.dumps(record.params, sort_keys=True))
        by_params.setdefault(key, []).append(record)
    wins = [refit.trial for refit in result.outer]
    model = result.final.trial if result.has_final else None
    tried = []
    for (fold, _), records in by_params.items():
        traces = [(name, trace) for record in records for name, trace in record.folds.items()]
        outer = [trace for name, trace in traces if name != FINAL] or [trace for _, trace in traces]
        scores = [
            score
            for trace in outer
            if (score := trace.score(result.stored.study.choose_n)) is not None
        ]
        tried.append(
            TriedConfiguration(
                records[0].params,
                float(np.mean(scores)) if scores else None,
                n_winners=sum(wins.count(record.id) for record in records),
                is_model=any(record.id == model for record in records),
                stopped=all(record.status == "stopped" for record in records),
                fold=fold,
            )
        )
    return tried


def shown_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Choose at most two of the parameters that vary: those whose values explain most of the
    variance of the score.

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
    names = dict.fromkeys(name for one in tried for name in one.params)
    return [name for name in names if len(values_of(tried, name)[0]) > 1]


def is_number(value: Any) -> bool:
    """Return whether the value of a parameter is a number; True and False are none."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def values_of(tried: Sequence[TriedConfiguration], name: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values of a parameter, numbers increasing before others, and which
    each configuration has.
    """
    given = [one.params.get(name) for one in tried]
    distinct = list({repr(value): value for value in given}.values())
    numbers: list[Any] = [value for value in distinct if is_number(value)]
    ordered = [*sorted(numbers), *(value for value in distinct if not is_number(value))]
    places = {repr(value): i for i, value in enumerate(ordered)}
    return ordered, np.array([places[repr(value)] for value in given], dtype=np.int64)


def _groups(tried: Sequence[TriedConfiguration], name: str) -> IntArray:
    """Group of each configuration by the value of a parameter."""
    distinct, at = values_of(tried, name)
    if len(distinct) <= _GROUPS or not all(map(is_number, distinct)):
        return at
    numbers = np.array(distinct, dtype=float)[at]
    return np.searchsorted(np.quantile(numbers, np.linspace(0, 1, _GROUPS + 1)[1:-1]), numbers)


def _best(tried: Sequence[TriedConfiguration]) -> TriedConfiguration:
    """The configuration of the best score; those that were stopped early count only if there is
    no other.
    """
    return max(tried, key=lambda one: (one.score is not None, not one.stopped, one.score or 0.0))


def _label(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else short(str(value), 14)
