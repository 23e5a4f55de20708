"""Figures of the data before scaling: images, means, and ranges of columns and modalities."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.description import Preview
from raysel.results.displays import drawing
from raysel.results.displays.display import Display, DividedDisplay, StudyDisplay, labelled_table
from raysel.results.displays.maps import Plane, make_plane
from raysel.results.facts import Facts
from raysel.study.background import read_image

_WIDTH = 5.8  # inches, as all sizes here
_MOST_TASKS = 6
_COLUMNS, _SIDE = 5, 0.95  # of a grid of images
_CAPTION, _LINE, _LABELS = 0.24, 0.14, 0.42  # above an image, a line of it, and below the grid
_LETTERS = 12  # of an image's caption
_ROW = 0.24
_LETTER = 0.086  # width of a letter of a name or figure, about
_COLOURS = (drawing.BLUE, drawing.OUTLINE, drawing.GREEN, drawing.PINK, drawing.SKY, "0.35")
_MARKERS = "os^DvP"


class DataPart(Display):
    """Part of the figure of a study's data."""

    section = "closer"
    on_white = True
    #: Sign in ``about`` that ends the title.
    title_end = ":"

    about: str

    @property
    def title(self) -> str:
        return self.about.partition(self.title_end)[0]

    @property
    def caption(self) -> str:
        return f"{self.about[:1].upper()}{self.about[1:]}."


@dataclass(frozen=True, eq=False)
class Images(DataPart):
    """Images of one shape in the same greys, the smallest value black and the largest white."""

    about: str
    captions: Sequence[str]
    #: Values of the cells; shape (n_images, height, width).
    images: FloatArray
    axes: tuple[str, str] = ("row", "column")
    step: int = 1
    upwards: bool = False
    key: str = "images"
    table: str = ""

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        n_rows = -(-len(self.images) // _COLUMNS)
        return _WIDTH, n_rows * sum(self._tile) + _LABELS

    @property
    def _tile(self) -> tuple[float, float]:
        """Height of an image, bounded so that narrow ones are visible, and of its caption."""
        height, width = self.images.shape[1:]
        lines = any(len(caption) > _LETTERS for caption in self.captions)
        return _SIDE * float(np.clip(height / width, 0.25, 2.0)), _CAPTION + _LINE * lines

    def frame(self) -> pd.DataFrame:
        image, row, column = np.indices(self.images.shape).reshape(3, -1)
        table = pd.DataFrame({"image": np.array(self.captions, dtype=object)[image]})
        places = dict(zip(self.axes, (row * self.step, column * self.step), strict=True))
        return table.assign(**places, value=self.images.ravel())

    def draw(self, ax: Axes) -> None:
        width, height = self.size
        n_rows, (high, above) = -(-len(self.images) // _COLUMNS), self._tile
        wide = min(_SIDE, high / 0.25, high * self.images.shape[2] / self.images.shape[1] * 4)
        low, top = float(self.images.min()), float(self.images.max())
        if top <= low:
            top = low + 1.0
        look: Any = {"cmap": "gray", "vmin": low, "vmax": top, "interpolation": "nearest"}
        look["origin"] = "lower" if self.upwards else "upper"
        text: Any = {"ha": "center", "va": "bottom", "fontsize": drawing.SMALL}
        for i, (caption, image) in enumerate(zip(self.captions, self.images, strict=True)):
            row, column = divmod(i, _COLUMNS)
            left = _LABELS + column * (width - _LABELS) / _COLUMNS
            bottom = _LABELS + (n_rows - 1 - row) * (high + above)
            extent = (left, left + wide, bottom, bottom + high)
            ax.imshow(image, extent=extent, **look)
            middle, above_it, lines = left + wide / 2, bottom + high + 0.03, _in_two_lines(caption)
            ax.text(middle, above_it, lines, parse_math=False, **text)
        self._label(ax, wide, high)
        ax.set_xlim(0, width)
        ax.set_ylim(0, height)
        ax.set_axis_off()

    def _label(self, ax: Axes, wide: float, high: float) -> None:
        """Label the axes of the last row's first image, with their first and last index."""
        down, right = self.axes
        last_row, last_column = (self.step * (side - 1) for side in self.images.shape[1:])
        first, last = last_row, 0
        if self.upwards:
            first, last = last, first
        small: Any = {"fontsize": drawing.SMALL - 1, "ha": "center", "va": "center"}
        for y, text in ((0.06, first), (high - 0.06, last)):
            ax.text(_LABELS - 0.04, _LABELS + y, str(text), **(small | {"ha": "right"}))
        for x, text in ((0.04, 0), (wide - 0.04, last_column)):
            ax.text(_LABELS + x, _LABELS - 0.08, str(text), **small)
        ax.text(_LABELS - 0.32, _LABELS + high / 2, down, rotation=90, **small)
        ax.text(_LABELS + wide / 2, _LABELS - 0.22, right, **small)


@dataclass(frozen=True, eq=False)
class Ranges(DataPart):
    """Distribution of the values of columns or modalities, each drawn over its own range."""

    title_end = ","

    about: str
    names: Sequence[str]
    #: Smallest value, quartiles and largest value; shape (n_parts, 5).
    quantiles: FloatArray
    #: Mean of each class; no columns where they are not shown; shape (n_parts, n_classes).
    means: FloatArray
    classes: Sequence[str] = ()
    key: str = "columns"
    table: str = "columns"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        legend = 0.2 * -(-(2 + len(self.classes)) // 3)
        return _WIDTH, legend + _ROW * max(2, len(self.names)) + 0.15

    def frame(self) -> pd.DataFrame:
        heads = ["smallest", "lower_quartile", "median", "upper_quartile", "largest"]
        heads += [f"mean of {name}" for name in self.classes]
        return labelled_table("column", self.names, np.hstack([self.quantiles, self.means]), heads)

    def draw(self, ax: Axes) -> None:
        quantiles = np.asarray(self.quantiles, dtype=np.float64)
        low, high = quantiles[:, :1], quantiles[:, -1:]
        constant = (high <= low).ravel()
        span = np.where(high > low, high - low, 1.0)
        inside: FloatArray = (quantiles - low) / span
        rows = np.flatnonzero(~constant)
        box = inside[rows]
        ax.hlines(rows, 0, 1, color="0.75", linewidth=1.2)
        look: Any = {"color": "0.88", "edgecolor": "0.55", "linewidth": 0.7, "height": 0.62}
        label = "middle half of the values"
        ax.barh(rows, box[:, 3] - box[:, 1], left=box[:, 1], label=label, **look)
        ax.vlines(box[:, 2], rows - 0.31, rows + 0.31, color="0", linewidth=1.6, label="median")
        means = (np.asarray(self.means, dtype=np.float64) - low) / span
        for i, name in enumerate(self.classes):
            look = {"color": _COLOURS[i % 6], "marker": _MARKERS[i % 6], "linestyle": "none"}
            label = f"mean of {short(name, 16)}"
            ax.plot(means[rows, i], rows, markersize=4.5, label=label, **look)
        longest = 0
        for row, (smallest, largest) in enumerate(quantiles[:, [0, -1]]):
            ends = [(0.5, "center", f"constant: {smallest:.4g}")]
            if not constant[row]:
                ends = [(-0.02, "right", f"{smallest:.4g}"), (1.02, "left", f"{largest:.4g}")]
                longest = max(longest, *(len(text) for _, _, text in ends))
            for x, side, text in ends:
                ax.text(x, row, text, ha=side, va="center", fontsize=drawing.SMALL, color="0.25")
        drawing.name_rows(ax, self.names)
        needed = 0.12 + _LETTER * longest
        axes = _WIDTH - 0.2 - _LETTER * min(28, max(map(len, self.names)))
        margin = 0.02 + needed / max(1.0, axes - 2 * needed)
        ax.set_xlim(-margin, 1 + margin)
        ax.set_xticks([])
        ax.tick_params(axis="y", length=0)
        ax.spines[:].set_visible(False)
        drawing.add_legend(ax, right=True)


def _in_two_lines(caption: str) -> str:
    """Caption of an image, divided at a space if it is wider than the image."""
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}
    words = textwrap.wrap(caption, _LETTERS, **whole)
    lines = [*words[:1], " ".join(words[1:])]
    return "\n".join(short(line, _LETTERS) for line in lines if line)


@dataclass(frozen=True, eq=False)
class MeanImage(Display):
    """Mean of all samples of a task as an image, before scaling."""

    section = "asked"
    on_white = True

    layout: Layout
    plane: Plane
    #: Mean of each feature, shape (n_features,).
    mean: FloatArray
    what: str
    key: str = "mean"
    table: str = "mean"

    @property
    def title(self) -> str:
        return self.what

    @property
    def caption(self) -> str:
        return f"{self.what}, before scaling. {self.plane.about}".rstrip()

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return self.plane.size

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({**self.layout.coordinates(), "mean": self.mean})

    def draw(self, ax: Axes) -> None:
        values = self.plane.place_cells(self.layout.arranged(self.mean, outside=np.nan))
        self.plane.label(ax)
        drawing.add_colour_bar(ax, self.plane.draw(ax, values, "gray"), "mean value")


@dataclass(frozen=True, eq=False)
class MeanImages(DividedDisplay):
    """Mean images of the tasks whose samples are images or volumes."""

    key = "means"
    section = "asked"
    what = "mean images"
    exported = False

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the mean sample that the directory of a study keeps, if its samples are images."""
        if facts.records.in_memory:
            return None
        mean = read_image(facts.records.directory.mean_sample, len(facts.records.feature_names))
        if mean is None:
            return None
        blocks = [(task, *block) for task, block in facts.records.layout.blocks().items()]
        images = [(task, columns, block) for task, columns, block in blocks if block.is_image]
        means = []
        for i, (task, columns, block) in enumerate(images[:_MOST_TASKS]):
            what, key = f"Mean of all {facts.study.n_samples} samples", "mean"
            if task:
                what, key = f"Mean of the samples of {short(task, 40)}", f"mean-{i}"
            if plane := make_plane(block):
                means.append(MeanImage(block, plane, mean[columns], what, key=key, table=key))
        if not means:
            return None
        return cls(facts.name, means)


@dataclass(frozen=True, eq=False)
class ModalityRanges(StudyDisplay):
    """Range of the values of each modality, before scaling."""

    key = "ranges"
    section = "asked"
    table = "ranges"
    what = "range of each modality"
    exported = False

    #: Name, smallest value, mean and largest value of each modality.
    ranges: Sequence[tuple[str, float, float, float]]
    n_samples: int

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the ranges that the directory of a study keeps, if it has modalities."""
        if facts.records.in_memory:
            return None
        preview = Preview.read(facts.records.directory.preview)
        if preview is None or not preview.ranges:
            return None
        return cls(facts.name, preview.ranges, facts.study.n_samples)

    @property
    def caption(self) -> str:
        return (
            f"Values of each modality over all {self.n_samples} samples, before scaling: smallest,"
            " mean and largest."
        )

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.26 * len(self.ranges) + 0.75

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.ranges, columns=["modality", "smallest", "mean", "largest"])

    def draw(self, ax: Axes) -> None:
        names, *values = zip(*self.ranges, strict=True)
        lows, means, highs = map(np.array, values)
        rows = range(len(names))
        look: Any = {"color": drawing.BLUE, "linewidth": 3, "label": "smallest to largest value"}
        ax.hlines(rows, lows, highs, **look)
        ax.plot(means, rows, "D", color=drawing.OUTLINE, markersize=5, label="mean")
        drawing.name_rows(ax, names)
        largest, usual = np.abs([lows, highs]).max(), float(np.median(highs - lows))
        if largest > 200 * max(1.0, usual):
            ax.set_xscale("symlog")
            ax.set_xlim(2 * min(lows.min(), 0.0), 2 * max(highs.max(), 0.0))
        ax.set_xlabel("value, before scaling")
        drawing.clean_axes(ax, "x")
        drawing.add_legend(ax)
