"""Figure of the coefficients of a linear method's best features by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.results.displays.style import BLUE, OUTLINE, SMALL, clean_axes, headed_figure

_MOST = 30  # features
_ROW = 0.25  # inches
_LONGEST = 26  # letters of a feature

#: Orange for negative and blue for positive, distinct with colour blindness; signs tell them apart in grey.
_COLOURS = colormaps["PuOr"]


def plot_profile(coefficients: ArrayLike, features: Sequence[str], classes: Sequence[object], ax: Axes) -> Axes:
    """Draw coefficients as a heat map of features by class, or as bars where there is one row for two classes."""
    values = np.asarray(coefficients, dtype=np.float64)
    names = [short(feature, _LONGEST) for feature in features]
    places = np.arange(len(names))
    if len(values) == 1:
        colours = np.where(values[0] < 0, OUTLINE, BLUE)
        ax.barh(places, values[0], color=colours, edgecolor="0.3", linewidth=0.5, height=0.7)
        ax.axvline(0, color="0", linewidth=0.8)
        ax.set_ylim(len(names) - 0.4, -0.6)
        clean_axes(ax, "x")
        other, own = (short(str(c), 16) for c in classes) if len(classes) == 2 else ("the others", "the class")
        ax.set_xlabel(f"coefficient\nabove 0 favours {own}, below 0 {other}", fontsize=SMALL, parse_math=False)
    else:
        _draw_cells(values, classes, ax)
    ax.set_yticks(places, names, parse_math=False)
    ax.tick_params(axis="y", labelsize=8.5)
    return ax


def profile_figure(
    coefficients: ArrayLike,
    features: Sequence[str],
    classes: Sequence[object],
    *,
    name: str,
    n_features: int,
    remarks: Sequence[str] = (),
) -> Figure:
    """Draw the coefficients of the best features in the final model by class."""
    values = np.asarray(coefficients, dtype=np.float64)[:, :_MOST]
    shown = list(features)[:_MOST]
    facts = [f"coefficients in the final model, of the scaled features; the best {len(shown)} of {n_features} by score"]
    if not shown:
        facts = ["the final model selects no feature"]
    width = float(np.clip(0.3 * len(values) + 3.6, 6.4, 12.0))
    height = _ROW * max(len(shown), 2) + (1.0 if len(values) == 1 else 1.5)
    figure = headed_figure(width, height, f"{short(name, 36)}: sign of the best features by class", facts, remarks)
    ax = figure.subplots()
    if shown:
        plot_profile(values, shown, classes, ax)
    else:
        ax.set_axis_off()
    return figure


def _draw_cells(values: FloatArray, classes: Sequence[object], ax: Axes) -> None:
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    image = ax.imshow(values.T, cmap=_COLOURS, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    bar = ax.figure.colorbar(image, ax=ax, aspect=40, pad=0.02)
    bar.set_label("coefficient", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    names = [short(str(c), 22) for c in classes]
    if len(names) <= 60:
        size = 9 if len(names) <= 30 else 7
        for feature, row in np.argwhere(np.abs(values.T) > 0.02 * limit):
            value = values[row, feature]
            colour = "1" if abs(value) > 0.6 * limit else "0"
            sign = "+" if value > 0 else "\u2212"
            ax.text(row, feature, sign, ha="center", va="center", fontsize=size, color=colour)
    step = -(-len(names) // 60)
    long = max(map(len, names), default=0) > 2 or len(names) > 30
    ax.set_xticks(range(0, len(names), step), names[::step], rotation=90 if long else 0, parse_math=False)
    ax.tick_params(axis="x", labelsize=8.5 if len(names) <= 30 else 7)
    ax.set_xlabel("class (+ in favour of it, \u2212 against it)", fontsize=SMALL)
