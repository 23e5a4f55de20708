"""Maps of a ranking of the cells of images or volumes: scores, and number of outer folds that select each cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import BoolArray, FloatArray
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.planes import Plane
from raysel.results.displays.style import EMPTY, OUTLINE, fold_colours, label_folds

_LEFT, _RIGHT = 0.65, 1.10  # margins in inches, as all sizes here: axis labels, and colour bar with labels
_BELOW, _ABOVE = 0.55, 0.62
_LEAST = 2.2
_DARKEST = 0.7  # grey of the mean image's darkest cell: light, so that a colour is nearly that of the colour bar
_SCORES_ALPHA, COUNTS_ALPHA = (0.5, 0.95), 0.85  # opacity above the mean image: of the lowest and the highest score


class Maps:
    """Score map and selection map of the same size, side by side, or stacked if they are wide."""

    def __init__(
        self,
        plane: Plane,
        largest: tuple[float, float] = (4.1, 6.4),
        background: FloatArray | None = None,
        below: str = "mean of all samples",
        meaning: str = "",
    ) -> None:
        rows, columns = plane.shape
        self._plane, self._meaning, self._below = plane, meaning, below
        self._background = None if background is None else plane.of_cells(background)
        self._stacked = columns > 1.8 * rows
        scale = min((2.1 if self._stacked else 1.0) * largest[0] / columns, largest[1] / rows)
        self._width, self._height = max(scale * columns, _LEAST), max(scale * rows, _LEAST)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of both maps with colour bars and labels, in inches."""
        width, height = self._width + _LEFT + _RIGHT, self._height + _BELOW + _ABOVE
        return (width, 2 * height) if self._stacked else (2 * width, height)

    def draw(self, area: Figure | SubFigure, size: tuple[float, float], ranking: FeatureRanking) -> None:
        """Draw the maps at the bottom of an area."""
        plane = self._plane
        first = (0.0, self.size[1] / 2) if self._stacked else (0.0, 0.0)
        second = (0.0, 0.0) if self._stacked else (size[0] / 2, 0.0)
        axes, bar = self._axes(area, size, *first)
        _score_map(ranking, plane, axes, bar, self._background)
        _title(axes, f"score of {ranking.source}", self._meaning)
        cell = min(self._width / plane.shape[1], self._height / plane.shape[0])
        below = self._below if self._background is not None else ""
        _selection_map(ranking, plane, *self._axes(area, size, *second), cell, self._background, below)

    def _axes(self, area: Figure | SubFigure, size: tuple[float, float], x: float, y: float) -> tuple[Axes, Axes]:
        boxes = [
            (x + _LEFT, y + _BELOW, self._width, self._height),
            (x + _LEFT + 0.1 + self._width, y + _BELOW, 0.16, self._height),
        ]
        axes, bar = (area.add_axes((a / size[0], b / size[1], c / size[0], d / size[1])) for a, b, c, d in boxes)
        label_plane(axes, self._plane, 8)
        return axes, bar


def label_plane(axes: Axes, plane: Plane, most_ticks: int) -> None:
    """Label the axes of a map, and the slices of a volume."""
    axes.set_ylabel(plane.axes[0])
    axes.set_xlabel(plane.axes[1])
    if plane.ticks is None:
        axes.xaxis.set_major_locator(MaxNLocator(most_ticks, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(most_ticks, integer=True))
        return
    axes.set_yticks(*plane.ticks[0], fontsize=7.5)
    axes.set_xticks(*plane.ticks[1], fontsize=7.5)
    axes.tick_params(length=2, pad=1.5)
    axes.spines[:].set_visible(False)
    for x, y, text in plane.titles:
        axes.annotate(text, (x, y), (0, 1.5), textcoords="offset points", ha="center", va="bottom", fontsize=8)


def draw_background(background: Any, plane: Plane, axes: Axes) -> None:
    """Draw an image in greys, light enough that the colours above it can be read, or a light grey without one."""
    if background is None and plane.inside.all():
        axes.set_facecolor(EMPTY)
    elif background is None:
        empty = np.ma.array(np.zeros(plane.shape), mask=~plane.inside)
        axes.imshow(empty, cmap=ListedColormap([EMPTY]), aspect="auto", interpolation="nearest", label="empty")
    else:
        greys = ListedColormap(colormaps["gray"](np.linspace(_DARKEST, 1.0, 256)))
        axes.imshow(background, cmap=greys, aspect="auto", interpolation="nearest", label="background")


def _score_map(ranking: FeatureRanking, plane: Plane, axes: Axes, bar: Axes, background: Any) -> None:
    draw_background(background, plane, axes)
    empty = ranking.constant | (ranking.scores <= 0)
    shown = ranking.scores[~empty]
    norm = Normalize(*((shown.min(), shown.max()) if len(shown) else (0, 1)))
    scores = np.ma.masked_where(plane.of_features(empty).filled(True), plane.of_features(ranking.scores))
    clear = background is not None
    image = axes.imshow(scores, cmap=score_colours(clear=clear), norm=norm, aspect="auto", interpolation="nearest")
    if ranking.constant.any():
        corners = _corners(plane.of_features(ranking.constant).filled(False))
        hatches = PolyCollection(list(corners), facecolor="none", edgecolor="0.65", hatch="////", linewidth=0)
        axes.add_collection(hatches, autolim=False)
    zero = "no colour: 0" if clear else "grey: 0"
    notes = [zero] * bool((empty & ~ranking.constant).any()) + ["hatched: constant"] * bool(ranking.constant.any())
    Colorbar(bar, image, label=f"score ({', '.join(notes)})" if notes else "score")


def score_colours(*, clear: bool) -> Colormap:
    """Return the colours of scores."""
    shades = colormaps["viridis"](np.linspace(0.0, 1.0, 256))
    if clear:
        shades[:, 3] = np.linspace(*_SCORES_ALPHA, len(shades))
    return ListedColormap(shades).with_extremes(bad="none")


def _selection_map(
    ranking: FeatureRanking, plane: Plane, axes: Axes, bar: Axes, cell: float, background: Any, below_it: str
) -> None:
    """Colour each cell by the number of outer folds that select it; ``cell`` is its side length in inches."""
    draw_background(background, plane, axes)
    colours, norm = fold_colours(ranking.n_folds)
    count = plane.of_features(ranking.selection_count)
    if background is not None or not plane.inside.all():
        count = np.ma.masked_equal(count, 0)
    alpha = None if background is None else COUNTS_ALPHA
    image = axes.imshow(count, cmap=colours, norm=norm, alpha=alpha, aspect="auto", interpolation="nearest")
    border = cell_border(plane.of_features(ranking.selected).filled(False))
    width = float(np.clip(72 * cell / 7, 0.4, 2.4))
    lines = LineCollection(list(border), colors=OUTLINE, linewidths=width, capstyle="projecting", clip_on=False)
    axes.add_collection(lines, autolim=False)
    n_outlined = int(ranking.selected.sum())
    below = (
        f"outlined: of {ranking.source}" if n_outlined == ranking.n_selected else f"outlined: {n_outlined} with a score"
    )
    below += f", in grey: {below_it}" if below_it else ""
    _title(axes, f"top {ranking.n_selected}", below)
    label_folds(Colorbar(bar, image), ranking.n_folds, cell * plane.shape[0])


def _title(axes: Axes, title: str, below: str) -> None:
    """Write a title and, smaller, a line below it."""
    axes.set_title(title, fontsize=11, pad=20 if below else 6)
    if below:
        axes.annotate(
            below,
            (0.5, 1.0),
            (0, 5),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color="0.3",
            parse_math=False,
        )


def _corners(cells: BoolArray) -> FloatArray:
    """Coordinates (x, y) of the four corners of each chosen cell, shape (n_cells, 4, 2)."""
    row, column = np.nonzero(cells)
    steps = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return np.stack([column, row], axis=1)[:, None, :] + steps


def cell_border(cells: BoolArray) -> FloatArray:
    """End points (x, y) of the sides between chosen cells and others, shape (n_sides, 2, 2)."""
    padded = np.pad(cells, 1)
    row, column = np.nonzero(padded[:, 1:] != padded[:, :-1])
    upright = np.stack([column - 0.5, row - 1.5, column - 0.5, row - 0.5], axis=1)
    row, column = np.nonzero(padded[1:] != padded[:-1])
    level = np.stack([column - 1.5, row - 0.5, column - 0.5, row - 0.5], axis=1)
    return np.concatenate([upright, level]).reshape(-1, 2, 2)
