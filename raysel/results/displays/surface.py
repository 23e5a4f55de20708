"""Validation score over the hyperparameters that were searched over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.results.displays.data import (
    TriedConfiguration,
    distinct_values,
    is_grid,
    is_number,
    shown_parameters,
    varying_parameters,
)
from raysel.results.displays.style import BLUE, OUTLINE, SMALL, clean_axes, headed_figure, in_words, plain_legend

_MOST_LABELS = 16
_FEW_VALUES = 6  # of a number, all of which are labelled


def plot_surface(tried: Sequence[TriedConfiguration], ax: Axes, *, metric: str = "accuracy") -> Axes:
    """Draw the validation score over one or two hyperparameters, the best over all others.

    Two parameters of a grid are drawn as a heat map, two of other searches as points, and one as a line.
    """
    names = shown_parameters(tried)
    if not names or all(one.score is None for one in tried):
        why = "every configuration failed" if names else "no parameter was searched over"
        ax.set_axis_off()
        ax.text(0.5, 0.5, why, ha="center", va="center", color="0.35", transform=ax.transAxes)
    elif len(names) == 1:
        _draw_line(tried, names[0], ax, metric)
    elif is_grid(tried, names):
        _draw_grid(tried, names, ax, metric)
    else:
        _draw_points(tried, names, ax, metric)
    return ax


def surface_figure(
    tried: Sequence[TriedConfiguration], *, name: str, over: str, metric: str = "accuracy", remarks: Sequence[str] = ()
) -> Figure:
    """Draw the validation score over one or two hyperparameters, the best over all others."""
    shown = shown_parameters(tried)
    others = [other for other in varying_parameters(tried) if other not in shown]
    scored = [one for one in tried if one.score is not None]
    over = "the inner folds, one line a fold" if any(one.fold for one in tried) else over
    facts = [f"validation {in_words(metric)}, mean over {over}; {len(scored)} of {len(tried)} configurations"]
    if others:
        told = ", ".join(short(other, 30) for other in others[:6]) + (" and others" if len(others) > 6 else "")
        facts.append(f"best over {told}; the parameters shown explain most of the score's variance")
    facts.append("the best of these scores chose the winners, so it is too high for new samples")
    title = f"{short(name, 30)}: validation {in_words(metric)}"
    if shown:
        title += f" over {' and '.join(short(parameter.rpartition('__')[2], 20) for parameter in shown)}"
    grid = len(shown) == 2 and bool(scored) and is_grid(tried, shown)
    rows = len(distinct_values(tried, shown[1])) if grid else 0
    height = float(np.clip(0.42 * rows + 1.2, 2.6, 6.5)) if grid else 3.9
    figure = headed_figure(7.2, height, title, facts, remarks)
    plot_surface(tried, figure.subplots(), metric=metric)
    return figure


def _label(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else short(str(value), 14)


def _best(tried: Sequence[TriedConfiguration]) -> TriedConfiguration:
    """The configuration of the best score; those that were stopped early count only if there is no other."""
    return max(tried, key=lambda one: (one.score is not None, not one.stopped, one.score or 0.0))


def _draw_grid(tried: Sequence[TriedConfiguration], names: Sequence[str], ax: Axes, metric: str) -> None:
    first, second = names
    columns, rows = distinct_values(tried, first), distinct_values(tried, second)
    cells: dict[tuple[int, int], list[TriedConfiguration]] = {}
    at_column, at_row = ({repr(v): i for i, v in enumerate(values)} for values in (columns, rows))
    for one in tried:
        place = (at_row[repr(one.params.get(second))], at_column[repr(one.params.get(first))])
        cells.setdefault(place, []).append(one)
    best = np.full((len(rows), len(columns)), np.nan)
    for place, own in cells.items():
        score = _best(own).score
        best[place] = np.nan if score is None else score
    shown = np.ma.masked_invalid(best)
    image = ax.imshow(shown, cmap="viridis", aspect="auto", origin="lower", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax).set_label(f"validation {in_words(metric)}", fontsize=SMALL)
    written = len(columns) <= 12 and len(rows) <= 14
    for (row, column), own in cells.items():
        if np.isnan(best[row, column]):
            ax.add_patch(
                Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="0.95", edgecolor="0.6", hatch="xxx", linewidth=0)
            )
            continue
        dark = bool(best[row, column] < shown.min() + 0.6 * np.ptp(shown))
        n_winners = sum(one.n_winners for one in own)
        if written:
            told = f"{best[row, column]:.3f}" + (f"\n{n_winners} won" if n_winners else "")
            ax.text(
                column, row, told, ha="center", va="center", fontsize=8, color="1" if dark else "0", linespacing=1.0
            )
        elif n_winners:
            ax.plot(column, row, "o", color="1" if dark else "0", markersize=4)
        if any(one.is_model for one in own):
            ax.add_patch(
                Rectangle(
                    (column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=OUTLINE, linewidth=3, clip_on=False, zorder=4
                )
            )
    for axis, values, parameter in ((ax.xaxis, columns, first), (ax.yaxis, rows, second)):
        step = -(-len(values) // _MOST_LABELS)
        axis.set_ticks(range(0, len(values), step), [_label(v) for v in values[::step]], parse_math=False)
        axis.set_label_text(short(parameter, 50 if axis is ax.xaxis else 26), fontsize=SMALL, parse_math=False)
    if len(columns) > 6 and max(len(_label(v)) for v in columns) > 5:
        ax.tick_params(axis="x", rotation=45)
    ax.tick_params(labelsize=SMALL)
    notes = ["outlined: final model", "won: outer folds that it wins" if written else "dot: wins an outer fold"]
    notes += ["crossed: failed"] * bool(np.isnan([best[place] for place in cells]).any())
    ax.set_title("   ·   ".join(notes), fontsize=8.5, loc="left", color="0.25")


def _draw_points(tried: Sequence[TriedConfiguration], names: Sequence[str], ax: Axes, metric: str) -> None:
    places = np.column_stack([_axis(tried, names[0], ax, "x"), _axis(tried, names[1], ax, "y")])
    scores = np.array([np.nan if one.score is None else one.score for one in tried], dtype=float)
    norm = Normalize(np.nanmin(scores), np.nanmax(scores))
    stopped = np.array([one.stopped for one in tried])
    failed = np.isnan(scores)
    order = np.argsort(np.where(failed, -np.inf, scores), kind="stable")  # the best on top
    for mask, marker, label in ((~stopped, "o", ""), (stopped, "v", "stopped early")):
        own = order[(mask & ~failed)[order]]
        if len(own):
            ax.scatter(
                places[own, 0],
                places[own, 1],
                c=scores[own],
                cmap="viridis",
                norm=norm,
                marker=marker,
                s=46,
                edgecolors="0.25",
                linewidths=0.6,
                label=label or None,
                zorder=2,
            )
    if failed.any():
        ax.scatter(places[failed, 0], places[failed, 1], marker="x", color="0.45", s=30, label="failed")
    _mark_winners(tried, places, ax)
    ax.figure.colorbar(ScalarMappable(norm, colormaps["viridis"]), ax=ax).set_label(
        f"validation {in_words(metric)}", fontsize=SMALL
    )
    clean_axes(ax)
    plain_legend(ax, scatterpoints=1)


def _draw_line(tried: Sequence[TriedConfiguration], name: str, ax: Axes, metric: str) -> None:
    x = _axis(tried, name, ax, "x")
    scores = np.array([np.nan if one.score is None else one.score for one in tried], dtype=float)
    order = np.argsort(x, kind="stable")
    style = "-" if all(is_number(one.params.get(name)) for one in tried) else ""
    folds = np.array([one.fold for one in tried])
    for fold in dict.fromkeys(folds.tolist()):  # scores of different folds are not comparable
        drawn = order[(~np.isnan(scores) & (folds == fold))[order]]
        ax.plot(x[drawn], scores[drawn], color=BLUE, marker="o", linestyle=style, markersize=5.5)
    for place in x[np.isnan(scores)]:
        ax.axvline(place, color="0.6", linestyle=":", linewidth=1)
    _mark_winners(tried, np.column_stack([x, scores]), ax)
    if np.isnan(scores).any():
        ax.plot([], [], color="0.6", linestyle=":", label="failed")
    clean_axes(ax, "y")
    ax.set_ylabel(f"validation {in_words(metric)}", fontsize=SMALL, parse_math=False)
    plain_legend(ax)


def _mark_winners(tried: Sequence[TriedConfiguration], places: FloatArray, ax: Axes) -> None:
    for model, colour, size, label in (
        (False, "0", 11, "wins an outer fold"),
        (True, OUTLINE, 15, "final model"),
    ):
        own = [i for i, one in enumerate(tried) if (one.is_model if model else one.n_winners) and one.score is not None]
        if own:
            ax.plot(
                places[own, 0],
                places[own, 1],
                "s" if model else "o",
                markersize=size,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=1.6,
                linestyle="",
                label=label,
                zorder=3,
            )


def _axis(tried: Sequence[TriedConfiguration], name: str, ax: Axes, side: str) -> FloatArray:
    """Set up the axis of a parameter, and return the place of each configuration on it."""
    values = [one.params.get(name) for one in tried]
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_label_text(short(name, 50 if side == "x" else 34), fontsize=SMALL, parse_math=False)
    if all(is_number(value) for value in values):
        numbers = np.array(values, dtype=float)
        if numbers.min() > 0 and numbers.max() >= 20 * numbers.min():
            (ax.set_xscale if side == "x" else ax.set_yscale)("log")
        if len(few := np.unique(numbers)) <= _FEW_VALUES:
            axis.set_minor_locator(NullLocator())
            axis.set_ticks(few.tolist(), [_label(value) for value in few])
        return numbers
    distinct = distinct_values(tried, name)
    at = {repr(value): i for i, value in enumerate(distinct)}
    axis.set_major_locator(FixedLocator(range(len(distinct))))
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(range(len(distinct)), [_label(value) for value in distinct], parse_math=False)
    return np.array([at[repr(value)] for value in values], dtype=float)
