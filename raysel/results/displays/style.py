"""Places of labels and ticks that do not overlap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from raysel.core.arrays import FloatArray
from raysel.core.printing import short

#: Width of a digit of a tick label, as a share of the axis.
_DIGIT = 0.018


def some_ticks(numbers: Sequence[int], ax: Axes) -> list[int]:
    """Choose numbers whose tick labels do not overlap on the x axis of the axes; the first and the last are kept."""
    if len(numbers) < 2:
        return list(numbers)
    places = np.log(numbers) if ax.get_xscale() == "log" else np.array(numbers, dtype=float)
    places = (places - places[0]) / (places[-1] - places[0])
    room = [_DIGIT * (len(str(n)) + 1) for n in numbers]
    kept = [len(numbers) - 1]
    for i in range(len(numbers) - 2, -1, -1):
        after, before = kept[-1], 0
        if i == before or (
            places[after] - places[i] >= (room[after] + room[i]) / 2
            and places[i] - places[before] >= (room[before] + room[i]) / 2
        ):
            kept.append(i)
    return [numbers[i] for i in sorted(kept)]


def spread_out(wanted: FloatArray, least: float, height: float) -> FloatArray:
    """Move places as little as needed so that no two are nearer than ``least``, in the same order."""
    order = np.argsort(wanted, kind="stable")
    # Places less the room that those below need must not fall: this is isotonic regression by pooling neighbours.
    room = least * np.arange(len(wanted))
    pools: list[list[float]] = []
    for value in wanted[order] - room:
        pools.append([float(value)])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    found = np.concatenate([np.full(len(pool), np.mean(pool)) for pool in pools])
    found = np.clip(found, 0.0, max(height - (room[-1] if len(room) else 0.0), 0.0)) + room
    result = np.empty_like(found)
    result[order] = found
    return result


OUTLINE = "#d95f02"  # distinct from all blues, also with colour blindness
BLUE = "#08519c"
EMPTY = "0.90"
WARNING = "#a63603"
# Okabe and Ito's colours, distinct with colour blindness; dashes and markers tell them apart in grey.
GREEN, PINK, SKY = "#009e73", "#a0457e", "#56b4e9"

SMALL = 9.5  # points: size of all text but the titles
_TITLE, _LINE = 0.34, 0.19  # inches of the title and of a line below it
_TITLE_LETTERS, _LETTERS = 8.4, 13.2  # letters per inch of a title of 13 points and of a line


def clean_axes(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the frame's upper and right side, set the size of the tick labels, and draw a light grid below the
    data.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL)
    if grid is not None:
        ax.grid(axis=grid, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)


def plain_legend(ax: Axes, **settings: Any) -> None:
    """Draw a legend without frame whose labels are no formulas, in one row above the axes unless set otherwise."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": len(handles)}
        legend = ax.legend(
            handles,
            labels,
            **{"borderaxespad": 0.2, "fontsize": 8.5, "frameon": False, "columnspacing": 1.2, **place, **settings},
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def headed_figure(width: float, height: float, title: str, facts: Sequence[str], remarks: Sequence[str] = ()) -> Figure:
    """Create a figure with a title, lines of facts and remarks above an empty area."""
    letters = int(width * _LETTERS)
    lines = [(line, "0.25") for fact in facts for line in textwrap.wrap(fact, letters)]
    lines += [(line, WARNING) for remark in remarks for line in textwrap.wrap(remark, letters)]
    head = 0.14 + _TITLE + _LINE * len(lines)
    whole = height + head
    figure = Figure(figsize=(width, whole), layout="constrained")
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, 0, 1, height / whole))  # type: ignore[call-arg]
    left = 0.12 / width
    shown = short(title, int(width * _TITLE_LETTERS * 13 / 10))
    size = float(np.clip(13 * width * _TITLE_LETTERS / len(shown), 10, 13)) if shown else 13
    figure.text(left, 1 - 0.1 / whole, shown, fontsize=size, fontweight="bold", va="top", parse_math=False)
    for i, (line, colour) in enumerate(lines):
        y = 1 - (0.1 + _TITLE + _LINE * i) / whole
        figure.text(left, y, line, fontsize=SMALL, color=colour, va="top", parse_math=False)
    return figure


def in_words(name: str) -> str:
    """Return the name of a metric or reference as it is written in figures, e.g. ``"F-test"`` for ``"f_test"``."""
    return {"f_test": "F-test"}.get(name, name.replace("_", " "))


def fold_colours(n_folds: int) -> tuple[ListedColormap, BoundaryNorm]:
    """Return a colour map for numbers of folds: white for 0, then blues that get darker."""
    blues = colormaps["Blues"](np.linspace(0.28, 1.0, n_folds) if n_folds > 1 else [1.0])
    colours = ListedColormap(np.vstack([[1.0, 1.0, 1.0, 1.0], blues]))
    return colours, BoundaryNorm(np.arange(-0.5, n_folds + 1), n_folds + 1)


def label_folds(bar: Colorbar, n_folds: int, height: float = 4.0) -> None:
    """Label a colour bar of a height in inches with the numbers of folds."""
    bar.set_label(f"outer folds that{' ' if height > 2.3 else chr(10)}select it, of {n_folds}")
    n_ticks = min(n_folds, 10, max(1, int(height / 0.25)))
    bar.set_ticks(np.unique(np.linspace(0, n_folds, n_ticks + 1).round()).tolist())
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter("{x:.0f}")


def mean_and_sd(scores: Sequence[float] | FloatArray) -> str:
    """Return the mean of the folds' scores as text, with the standard deviation if there are several."""
    spread = f" ± {np.std(scores, ddof=1):.3f} (SD)" if len(scores) > 1 else ""
    return f"{np.mean(scores):.3f}{spread}"
