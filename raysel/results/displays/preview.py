"""Picture of a study's data: images of classes and samples, or ranges of columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.results.displays.preview_data import Images, Ranges
from raysel.results.displays.style import BLUE, GREEN, OUTLINE, PINK, SKY, SMALL, headed_figure, plain_legend

WIDTH = 9.0  # inches, as all sizes here
_TITLE, _CAPTION, _AXES = 0.42, 0.24, 0.42  # above a part, above an image, and for its labels
_SIDE = 0.95  # of an image
_LINE = 0.14  # of a caption
_COLUMNS = 8  # of a grid of images, and of one in a report
_SMALL_WIDTH, _SMALL_COLUMNS = 5.8, 5
_LETTERS, _TITLE_LETTERS = 13, 95  # of an image's caption, and of a line of a title
_ROW = 0.24
_LETTER = 0.08  # width of a letter of a name or figure, about
_MARKS = ((BLUE, "o"), (OUTLINE, "s"), (GREEN, "^"), (PINK, "D"), (SKY, "v"), ("0.35", "P"))


def plot_images(part: Images, area: Figure | SubFigure, n_columns: int = 8) -> list[Axes]:
    """Draw a grid of images with their captions; the axes of the last row's first image are labelled."""
    images = np.asarray(part.images)
    n_rows = -(-len(images) // n_columns)
    grid = area.subplots(n_rows, n_columns, squeeze=False)
    low, high = float(images.min()), float(images.max())
    norm = Normalize(low, high if high > low else low + 1.0)
    drawn: list[Axes] = list(grid.flat)[: len(images)]
    for axes in list(grid.flat)[len(images) :]:
        axes.remove()
    right, last = (part.step * side - 0.5 for side in images.shape[:0:-1])
    rows = (-0.5, last) if part.upwards else (last, -0.5)
    for axes, caption, image in zip(drawn, part.captions, images, strict=True):
        axes.imshow(
            image,
            cmap="gray",
            norm=norm,
            interpolation="nearest",
            aspect="auto",
            origin="lower" if part.upwards else "upper",
            extent=(-0.5, right, *rows),
        )
        axes.set_box_aspect(_aspect(part))
        axes.set_title(_in_two_lines(caption), fontsize=SMALL - 1, pad=3, parse_math=False)
        axes.set(xticks=[], yticks=[])
    labelled = drawn[(n_rows - 1) * n_columns]
    for axis, name in ((labelled.yaxis, part.axes[0]), (labelled.xaxis, part.axes[1])):
        axis.set_major_locator(MaxNLocator(2, integer=True))
        axis.set_label_text(name, fontsize=SMALL - 1)
    labelled.tick_params(labelsize=SMALL - 2, length=2)
    return drawn


def plot_ranges(part: Ranges, ax: Axes, width: float = WIDTH) -> Axes:
    """Draw quartiles of each part over its own range, whose ends are written beside it, and means of classes."""
    quantiles = np.asarray(part.quantiles, dtype=np.float64)
    low, high = quantiles[:, :1], quantiles[:, -1:]
    constant = (high <= low).ravel()
    span = np.where(high > low, high - low, 1.0)
    inside: FloatArray = (quantiles - low) / span
    places = np.arange(len(quantiles))
    varied = places[~constant]
    ax.hlines(varied, 0, 1, color="0.75", linewidth=1.2)
    box = inside[varied]
    ax.barh(
        varied,
        box[:, 3] - box[:, 1],
        left=box[:, 1],
        height=0.62,
        color="0.88",
        edgecolor="0.55",
        linewidth=0.7,
        label="middle half of the values",
    )
    ax.vlines(box[:, 2], varied - 0.31, varied + 0.31, color="0", linewidth=1.6, label="median")
    means = (np.asarray(part.means, dtype=np.float64) - low) / span if len(part.classes) else np.empty((0, 0))
    for i, name in enumerate(part.classes):
        colour, marker = _MARKS[i % len(_MARKS)]
        label = f"mean of {short(name, 16)}"
        ax.plot(means[varied, i], varied, marker, color=colour, markersize=4.5, linestyle="none", label=label)
    for place in places.tolist():
        ends = [(0.5, "center", f"constant: {quantiles[place, 0]:.4g}")]
        if not constant[place]:
            ends = [(-0.02, "right", f"{quantiles[place, 0]:.4g}"), (1.02, "left", f"{quantiles[place, -1]:.4g}")]
        for x, side, text in ends:
            ax.text(x, place, text, ha=side, va="center", fontsize=SMALL - 1, color="0.25")
    names = [short(name, 28) for name in part.names]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(len(places) - 0.4, -0.6)
    margin = _margin([f"{end:.4g}" for end in quantiles[~constant][:, [0, -1]].ravel()], names, width)
    ax.set_xlim(-margin, 1 + margin)
    ax.set_xticks([])
    ax.tick_params(axis="y", labelsize=SMALL - 0.5, length=0)
    ax.spines[:].set_visible(False)
    plain_legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=_legend_columns(part, width))
    return ax


def preview_figure(parts: Sequence[Images | Ranges], *, name: str, facts: Sequence[str] = ()) -> Figure:
    """Draw a data set as it was understood."""
    heights = [_height(part) for part in parts]
    figure = headed_figure(WIDTH, sum(heights), f"{short(name, 60)}: the data as they were read", facts)
    areas = figure.subfigures(len(parts), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, area in zip(parts, areas, strict=True):
        title = "\n".join(textwrap.wrap(short(part.title, 2 * _TITLE_LETTERS), _TITLE_LETTERS))
        area.suptitle(title, fontsize=SMALL + 1, x=0.013, ha="left", parse_math=False)
        if isinstance(part, Images):
            plot_images(part, area)
        else:
            plot_ranges(part, area.subplots())
    return figure


def part_figure(part: Images | Ranges) -> Figure:
    """Draw one part of a data set without title, for a report."""
    figure = Figure(figsize=(_SMALL_WIDTH, _height(part, _SMALL_COLUMNS, _SMALL_WIDTH) - _TITLE), layout="constrained")
    if isinstance(part, Images):
        plot_images(part, figure, _SMALL_COLUMNS)
    else:
        plot_ranges(part, figure.subplots(), _SMALL_WIDTH)
    return figure


def _height(part: Images | Ranges, columns: int = _COLUMNS, width: float = WIDTH) -> float:
    title = _TITLE + 0.17 * (len(part.title) > _TITLE_LETTERS)
    if isinstance(part, Ranges):
        rows = -(-(2 + len(part.classes)) // _legend_columns(part, width))
        return title + 0.2 * rows + _ROW * max(2, len(part.names)) + 0.15
    caption = _CAPTION + _LINE * any(len(caption) > _LETTERS for caption in part.captions)
    return title + -(-len(part.images) // columns) * (_SIDE * min(_aspect(part), 2.0) + caption) + _AXES


def _margin(ends: Sequence[str], names: Sequence[str], width: float) -> float:
    """Return the space that the texts beside the ranges need, as a fraction of the ranges' width."""
    needed = 0.12 + _LETTER * max(map(len, ends), default=0)
    axes = width - 0.2 - _LETTER * max(map(len, names))
    return 0.02 + needed / max(1.0, axes - 2 * needed)


def _in_two_lines(caption: str) -> str:
    """Caption of an image, divided at a space if it is wider than the image."""
    first, *rest = textwrap.wrap(caption, _LETTERS, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(short(line, _LETTERS) for line in (first, " ".join(rest)) if line)


def _aspect(part: Images) -> float:
    """Height of the images relative to their width, within bounds that keep narrow images visible."""
    height, width = part.images.shape[1:]
    return float(np.clip(height / width, 0.25, 4.0))


def _legend_columns(part: Ranges, width: float) -> int:
    longest = max([18, *(8 + min(len(name), 16) for name in part.classes)])
    return min(2 + len(part.classes), int((width - 0.6) * 14 / (longest + 5)))
