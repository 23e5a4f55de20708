"""What displays draw with: colours, axes, rows, legends, colour bars and ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from raysel.core.arrays import BoolArray, FloatArray
from raysel.core.printing import short

OUTLINE = "#d95f02"  # distinct from all blues, also with colour blindness
BLUE = "#08519c"
WARNING = "#a63603"
EMPTY = "0.90"
# Okabe and Ito's colours, distinct with colour blindness; dashes and markers tell them apart in
# grey.
GREEN, PINK, SKY = "#009e73", "#a0457e", "#56b4e9"

WIDTH = 4.9  # inches, as all sizes here; on a phone the text remains readable
SMALL = 9.0  # points: size of tick labels and legends
_LEGEND_LETTERS = 14.6  # letters per inch
_TICKS = 5  # most intervals between labels of an x axis, so that four digits do not run together
_DIGIT = 0.022  # width of a digit of a tick label, as a share of the axis


def clean_axes(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the frame's upper and right side and draw a light grid below the data."""
    ax.spines[["top", "right"]].set_visible(False)
    locator = ax.xaxis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(nbins=_TICKS)
    if grid is not None:
        ax.grid(axis=grid, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)


def name_rows(ax: Axes, names: Sequence[str], longest: int = 28, margin: float = 0.1) -> None:
    """Name the rows of a plot of horizontal bars or cells, the first at the top."""
    ax.set_yticks(range(len(names)), [short(name, longest) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5 + margin, -0.5 - margin)


def add_legend(ax: Axes, *, right: bool = False, **settings: Any) -> None:
    """Draw a legend above the axes, from the left or to the right; no label is a formula."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    width = ax.figure.bbox.width / ax.figure.dpi  # also of a part of a figure
    spec: Any = ax.get_subplotspec()
    if spec:
        ratios = spec.get_gridspec().get_width_ratios()
        width *= ratios[spec.colspan.start] / sum(ratios)
    margin, place = (0.6, "lower right") if right else (1.2, "lower left")
    columns = max(1, int(_LEGEND_LETTERS * (width - margin) / (max(map(len, labels)) + 7)))
    settings |= {
        "loc": place,
        "bbox_to_anchor": (int(right), 1),
        "ncols": min(len(labels), columns),
        "frameon": False,
        "borderaxespad": 0.2,
        "columnspacing": 1.2,
    }
    for text in ax.legend(handles, labels, **settings).get_texts():
        text.set_parse_math(False)


def add_colour_bar(ax: Axes, mappable: ScalarMappable, label: str) -> Colorbar:
    """Draw a colour bar beside axes, as high as they are."""
    bar = ax.figure.colorbar(mappable, cax=ax.inset_axes((1.02, 0, 0.025, 1)))
    bar.set_label(label)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_linewidth(0.5)
    return bar


def fold_colours(n_folds: int) -> tuple[ListedColormap, BoundaryNorm]:
    """Return a colour map for numbers of folds: white for 0, then blues that get darker."""
    blues = colormaps["Blues"](np.linspace(0.28, 1.0, n_folds) if n_folds > 1 else [1.0])
    colours = ListedColormap(np.vstack([[1.0, 1.0, 1.0, 1.0], blues]))
    return colours, BoundaryNorm(np.arange(-0.5, n_folds + 1), n_folds + 1)


def add_fold_bar(ax: Axes, mappable: ScalarMappable, n_folds: int, height: float) -> Colorbar:
    """Draw a colour bar of numbers of folds beside axes of a height in inches."""
    space = " " if height > 2.3 else "\n"
    bar = add_colour_bar(ax, mappable, f"outer folds that{space}select it, of {n_folds}")
    n_ticks = min(n_folds, 10, max(1, int(height / 0.25)))
    bar.set_ticks(np.unique(np.linspace(0, n_folds, n_ticks + 1).round()).tolist())
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter("{x:.0f}")
    return bar


def scale_numbers(ax: Axes, numbers: Sequence[int]) -> None:
    """Make the x axis of numbers of features logarithmic if they differ much."""
    if numbers[-1] > 12 * numbers[0]:
        ax.set_xscale("log")


def scale_by_logarithm(ax: Axes, side: Literal["x", "y"], values: FloatArray) -> None:
    """Make an axis logarithmic, with limits that are finite for values near the largest number."""
    low, high = np.log10([values.min(), values.max()])
    margin = 0.05 * (high - low)
    limits = 10.0 ** np.clip([low - margin, high + margin], -307, 308)
    ax.set(**{f"{side}scale": "log", f"{side}lim": limits.tolist()})


def set_ticks(ax: Axes, numbers: Sequence[int]) -> None:
    """Label the first and the last number on the x axis, and others that do not overlap."""
    places = np.array(numbers, dtype=float)
    if ax.get_xscale() == "log":
        places = np.log(places)
    places = (places - places[0]) / (np.ptp(places) or 1.0)
    room = [_DIGIT * (len(str(n)) + 1) for n in numbers]
    kept = [len(numbers) - 1]
    for i in range(len(numbers) - 2, -1, -1):
        after = places[kept[-1]] - places[i] >= (room[kept[-1]] + room[i]) / 2
        if i == 0 or (after and places[i] >= (room[0] + room[i]) / 2):
            kept.append(i)
    ticks = [numbers[i] for i in reversed(kept)]
    ax.set_xticks(ticks, [f"{n}" for n in ticks])
    ax.minorticks_off()


def cell(value: float, form: str) -> str:
    """Return a number as the text of a cell, a dash where it is undefined."""
    if np.isnan(value):
        return "\N{EN DASH}"
    return format(value, form)


def write_cells(
    ax: Axes, texts: Mapping[tuple[int, int], str], dark: BoolArray, size: float
) -> None:
    """Write texts into cells by row and column, white into those that are dark."""
    for (row, column), text in texts.items():
        colour = "1" if dark[row, column] else "0"
        look: Any = {"ha": "center", "va": "center", "color": colour, "linespacing": 1.0}
        ax.text(column, row, text, fontsize=size, **look)


def spread_out(wanted: FloatArray, least: float, height: float) -> FloatArray:
    """Move places as little as needed so that no two are nearer than ``least``; keep the order."""
    if not len(wanted):
        return wanted
    order = np.argsort(wanted, kind="stable")
    # Places less the room that those below need must not fall: this is isotonic regression.
    room = least * np.arange(len(wanted))
    values = isotonic_regression(wanted[order] - room).x
    result = np.empty_like(values)
    result[order] = np.clip(values, 0.0, max(height - room[-1], 0.0)) + room
    return result


def mark_folds(ax: Axes, values: ArrayLike, rows: ArrayLike) -> None:
    """Draw the value of each outer fold as a circle in a row of horizontal bars."""
    ax.scatter(
        values, rows, s=22, zorder=3, facecolors="none", edgecolors="0.35", label="each outer fold"
    )
