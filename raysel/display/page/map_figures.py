"""Maps of a report: an image or slices of a volume, and scores and selections of the cells over it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.display.maps import COUNTS_ALPHA, cell_border, draw_background, label_plane, score_colours
from raysel.display.page.figures import WIDTH, small, small_figure
from raysel.display.planes import Plane
from raysel.display.style import OUTLINE, fold_colours, label_folds


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
