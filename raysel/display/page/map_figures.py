"""Maps of a report: the mean image, and scores and selections of its cells over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.display.maps import COUNTS_ALPHA, cell_border, draw_background, score_colours
from raysel.display.page.figures import WIDTH, small, small_figure
from raysel.display.style import EMPTY, OUTLINE, fold_colours, label_folds


@small
def image_figure(image: FloatArray, axes_names: Sequence[str]) -> Figure:
    """Draw an image in grey, e.g. the mean of all samples.

    Parameters
    ----------
    image : ndarray of shape (height, width)
        Values of the cells.
    axes_names : sequence of str
        Names of the rows' and the columns' axis.

    Returns
    -------
    Figure
        The figure.
    """
    figure, axes = small_figure(*_map_size(image.shape))
    shown = axes.imshow(image, cmap="gray", aspect="auto", interpolation="nearest")
    _label_cells(axes, axes_names)
    figure.colorbar(shown, ax=axes, label="mean value", aspect=28, pad=0.02)
    return figure


@small
def score_map_figure(
    scores: FloatArray, selected: BoolArray, background: FloatArray | None, axes_names: Sequence[str]
) -> Figure:
    """Draw the scores of the cells of a matrix over an image; the selected cells are outlined.

    Parameters
    ----------
    scores : ndarray of shape (height, width)
        Scores; cells without a score (0) show the image.
    selected : ndarray of bool, shape (height, width)
        Cells that are outlined.
    background : ndarray of shape (height, width), optional
        Image below the cells; a light grey by default.
    axes_names : sequence of str
        Names of the rows' and the columns' axis.

    Returns
    -------
    Figure
        The figure.
    """
    figure, axes = small_figure(*_map_size(scores.shape))
    draw_background(background, axes)
    shown = np.ma.array(scores, mask=scores <= 0)
    norm = Normalize(*((shown.min(), shown.max()) if shown.count() else (0.0, 1.0)))
    colours = score_colours(clear=background is not None)
    image = axes.imshow(shown, cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
    _outline(axes, selected)
    _label_cells(axes, axes_names)
    figure.colorbar(image, ax=axes, label="score of the final model", aspect=28, pad=0.02)
    return figure


@small
def count_map_figure(
    counts: IntArray, n_folds: int, selected: BoolArray, background: FloatArray | None, axes_names: Sequence[str]
) -> Figure:
    """Draw the number of outer folds that select each cell of a matrix over an image.

    Parameters
    ----------
    counts : ndarray of int, shape (height, width)
        Number of outer folds; cells that none selects show the image.
    n_folds : int
        Number of outer folds.
    selected : ndarray of bool, shape (height, width)
        Cells that are outlined.
    background : ndarray of shape (height, width), optional
        Image below the cells; a light grey by default.
    axes_names : sequence of str
        Names of the rows' and the columns' axis.

    Returns
    -------
    Figure
        The figure.
    """
    figure, axes = small_figure(*_map_size(counts.shape))
    draw_background(background, axes)
    colours, norm = fold_colours(n_folds)
    shown = np.ma.array(counts, mask=counts == 0)
    alpha = None if background is None else COUNTS_ALPHA
    image = axes.imshow(
        shown, cmap=colours.with_extremes(bad="none"), norm=norm, alpha=alpha, aspect="auto", interpolation="nearest"
    )
    if background is None:
        axes.set_facecolor(EMPTY)
    _outline(axes, selected)
    _label_cells(axes, axes_names)
    bar = figure.colorbar(image, ax=axes, aspect=28, pad=0.02)
    label_folds(bar, n_folds)
    bar.ax.set_ylim(0.5, n_folds + 0.5)  # cells that none selects show the image
    return figure


def _map_size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Height and width of a figure of a matrix with axes and colour bar."""
    rows, columns = shape
    scale = min((WIDTH - 1.3) / columns, 5.2 / rows)
    return max(scale * rows, 1.1) + 0.55, max(scale * columns, 1.1) + 1.3


def _label_cells(axes: Axes, names: Sequence[str]) -> None:
    axes.set_ylabel(names[0])
    axes.set_xlabel(names[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(7, integer=True))
    axes.spines[:].set_visible(False)


def _outline(axes: Axes, cells: BoolArray) -> None:
    lines = LineCollection(list(cell_border(cells)), colors=OUTLINE, linewidths=1.2, capstyle="projecting")
    axes.add_collection(lines, autolim=False)
