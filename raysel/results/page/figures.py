"""Small figures of a report: bars, ranks by fold, curves of the objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.printing import short, short_middle
from raysel.results.displays.maps import COUNTS_ALPHA, cell_border, draw_background, label_plane, score_colours
from raysel.results.displays.planes import Plane
from raysel.results.displays.style import BLUE, OUTLINE, fold_colours, label_folds

WIDTH = 5.2  # inches, as all sizes here; on a phone the text remains readable
_MOST_POINTS = 150
_LETTERS = 15  # of a legend per inch
_SMALL: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "0.9",
}
P = ParamSpec("P")


def small(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let a function draw with the sizes of a report's figures."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with rc_context(_SMALL):
            return draw(*args, **kwargs)

    return drawn


@small
def framed(
    plot: Callable[..., object], height: float, *args: Any, width: float = WIDTH, xlabel: str = "", **kwargs: Any
) -> Figure:
    """Return a figure of a report with one of the package's plots."""
    figure, axes = small_figure(height, width)
    plot(*args, ax=axes, **kwargs)
    if xlabel:
        axes.set_xlabel(xlabel)
    if legend := axes.get_legend():  # in rows above the axes, so that it does not narrow them
        handles, labels = axes.get_legend_handles_labels()
        legend.remove()
        columns = max(1, min(len(labels), int(_LETTERS * width / (max(map(len, labels)) + 8))))
        below = figure.legend(handles, labels, loc="outside upper left", ncols=columns)
        for text in below.get_texts():
            text.set_parse_math(False)
    return figure


def small_figure(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    """Return a figure of a report with its axes; to be called inside a function marked by `small`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


@small
def range_figure(names: Sequence[str], lows: FloatArray, means: FloatArray, highs: FloatArray) -> Figure:
    """Draw the range of the values of each part of the features, and their mean."""
    figure, axes = small_figure(0.26 * len(names) + 0.75)
    places = np.arange(len(names))
    axes.hlines(places, lows, highs, color=BLUE, linewidth=3, label="smallest to largest value")
    axes.plot(means, places, "D", color=OUTLINE, markersize=5, label="mean")
    axes.set_yticks(places, [short(name, 26) for name in names], parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    if max(np.abs(lows).max(), np.abs(highs).max()) > 200 * max(1.0, float(np.median(highs - lows))):
        axes.set_xscale("symlog")
        axes.set_xlim(2 * min(lows.min(), 0.0), 2 * max(highs.max(), 0.0))
    axes.set_xlabel("value, before scaling")
    axes.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


@small
def bar_figure(names: Sequence[str], values: FloatArray, counts: IntArray, n_folds: int) -> Figure:
    """Draw the scores of the best features, coloured by the number of outer folds that select each."""
    figure, axes = small_figure(0.2 * len(names) + 0.8)
    colours, norm = fold_colours(n_folds)
    places = np.arange(len(names))
    axes.barh(places, values, color=colours(norm(counts)), edgecolor="0.45", linewidth=0.6)
    axes.set_yticks(places, [short(name, 30) for name in names], parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("score of the final model")
    axes.grid(axis="x")
    label_folds(figure.colorbar(ScalarMappable(norm, colours), ax=axes, aspect=28, pad=0.02), n_folds)
    return figure


@small
def rank_figure(names: Sequence[str], ranks: FloatArray, fold_names: Sequence[str], n_selected: int) -> Figure:
    """Draw the ranks of the best features in each outer fold as a table of coloured cells."""
    n_folds = len(fold_names)
    figure, axes = small_figure(0.21 * len(names) + 0.8, WIDTH)
    inside = np.ma.array(ranks.T, mask=np.isnan(ranks.T) | (n_selected < ranks.T))
    colours = colormaps["Blues_r"].with_extremes(bad="0.93")
    norm = Normalize(1, 1.45 * n_selected + 1)  # the palest blue remains distinct from grey
    axes.pcolormesh(inside, cmap=colours, norm=norm, edgecolors="white", linewidth=1.0)
    if n_folds <= 12:
        for (feature, fold), rank in np.ndenumerate(ranks.T):
            dark = rank <= 0.6 * n_selected
            axes.text(
                fold + 0.5,
                feature + 0.5,
                "\N{EN DASH}" if np.isnan(rank) else f"{rank:.0f}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else "black",
            )
    axes.set_yticks(np.arange(len(names)) + 0.5, [short(name, 26) for name in names], parse_math=False)
    axes.invert_yaxis()
    step = max(1, n_folds // 10)
    axes.set_xticks(np.arange(0, n_folds, step) + 0.5, [short_middle(name, 16) for name in fold_names[::step]])
    if n_folds > 5:
        axes.tick_params(axis="x", rotation=90)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.xaxis.tick_top()
    return figure


@small
def objective_figure(curves: Sequence[Sequence[float]], model: int | None, name: str) -> Figure:
    """Draw the objective of configurations by iteration."""
    figure, axes = small_figure(3.1)
    longest = max(len(curve) for curve in curves)
    for i, curve in enumerate(curves):
        if i != model:
            axes.plot(*_thinned(curve), color="0.6", linewidth=0.8, marker="." if len(curve) == 1 else None)
    if model is not None:
        own = curves[model]
        axes.plot(*_thinned(own), color=OUTLINE, linewidth=2.0, marker="." if len(own) == 1 else None, label=name)
        legend = figure.legend(loc="outside upper left")
        for text in legend.get_texts():
            text.set_parse_math(False)
    values = np.concatenate([np.asarray(curve) for curve in curves])
    finite = values[np.isfinite(values)]
    if len(finite) and finite.min() > 0 and finite.max() > 100 * finite.min():
        axes.set_yscale("log")
    axes.set_xlim(0.5, longest + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
    axes.set_ylabel("objective")
    axes.grid(axis="y")
    return figure


@small
def part_figure(
    names: Sequence[str], chosen: IntArray, by_fold: IntArray, expected: FloatArray, n_selected: int
) -> Figure:
    """Draw the number of selected features of each modality."""
    figure, axes = small_figure(0.3 * len(names) + 0.85)
    places = np.arange(len(names))
    axes.barh(places, chosen, height=0.62, color=BLUE, alpha=0.35, label="final model")
    at = np.repeat(places, by_fold.shape[1])
    axes.scatter(by_fold.ravel(), at, s=22, facecolors="none", edgecolors="0.3", zorder=3, label="each outer fold")
    axes.vlines(expected, places - 0.42, places + 0.42, color=OUTLINE, linewidth=1.6, label="expected by chance")
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"features among the best {n_selected}")
    axes.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=3)
    return figure


def _thinned(curve: Sequence[float]) -> tuple[IntArray, FloatArray]:
    """Iterations and values of at most 150 points of a curve, denser at its start."""
    n = len(curve)
    if n > _MOST_POINTS:
        places = np.unique(np.geomspace(1, n, _MOST_POINTS).round().astype(np.int64))
    else:
        places = np.arange(1, n + 1)
    return places, np.asarray(curve, dtype=np.float64)[places - 1]


@small
def image_figure(plane: Plane, image: FloatArray) -> Figure:
    """Draw an image in grey, e.g. the mean of all samples."""
    figure, axes = small_figure(*_map_size(plane.shape))
    shown = axes.imshow(plane.of_cells(image), cmap="gray", aspect="auto", interpolation="nearest")
    _label_cells(axes, plane)
    figure.colorbar(shown, ax=axes, label="mean value", aspect=28, pad=0.02)
    return figure


@small
def score_map_figure(plane: Plane, scores: FloatArray, selected: BoolArray, background: FloatArray | None) -> Figure:
    """Draw the scores of the cells over an image; the selected cells are outlined."""
    figure, axes = small_figure(*_map_size(plane.shape))
    _draw_below(background, plane, axes)
    shown = np.ma.masked_less_equal(plane.of_features(scores), 0)
    norm = Normalize(*((shown.min(), shown.max()) if shown.count() else (0.0, 1.0)))
    colours = score_colours(clear=background is not None)
    image = axes.imshow(shown, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
    _outline(axes, plane.of_features(selected).filled(False))
    _label_cells(axes, plane)
    figure.colorbar(image, ax=axes, label="score of the final model", aspect=28, pad=0.02)
    return figure


@small
def count_map_figure(
    plane: Plane, counts: IntArray, n_folds: int, selected: BoolArray, background: FloatArray | None
) -> Figure:
    """Draw the number of outer folds that select each cell over an image."""
    figure, axes = small_figure(*_map_size(plane.shape))
    _draw_below(background, plane, axes)
    colours, norm = fold_colours(n_folds)
    shown = np.ma.masked_equal(plane.of_features(counts), 0)
    alpha = None if background is None else COUNTS_ALPHA
    image = axes.imshow(
        shown, cmap=colours.with_extremes(bad="none"), norm=norm, alpha=alpha, aspect="auto", interpolation="nearest"
    )
    _outline(axes, plane.of_features(selected).filled(False))
    _label_cells(axes, plane)
    bar = figure.colorbar(image, ax=axes, aspect=28, pad=0.02)
    label_folds(bar, n_folds)
    bar.ax.set_ylim(0.5, n_folds + 0.5)  # cells that none selects show the image
    return figure


def _map_size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Height and width of a figure of a matrix with axes and colour bar."""
    rows, columns = shape
    scale = min((WIDTH - 1.3) / columns, 5.2 / rows)
    return max(scale * rows, 1.1) + 0.55, max(scale * columns, 1.1) + 1.3


def _draw_below(background: FloatArray | None, plane: Plane, axes: Axes) -> None:
    draw_background(None if background is None else plane.of_cells(background), plane, axes)


def _label_cells(axes: Axes, plane: Plane) -> None:
    label_plane(axes, plane, 7)
    axes.spines[:].set_visible(False)


def _outline(axes: Axes, cells: BoolArray) -> None:
    lines = LineCollection(list(cell_border(cells)), colors=OUTLINE, linewidths=1.2, capstyle="projecting")
    axes.add_collection(lines, autolim=False)
