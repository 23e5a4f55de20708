"""Images and volumes in a plane: maps of their cells' scores and of the folds that select them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import Cell, RankingPanel

_FEW = 4  # so many slices are all shown, whatever their scores
_MOST_SLICES = 12  # with the highest scores
_MOST_SPREAD = 16  # evenly spread
_MOST_TILES = 3  # maxima of two axes in a row
_LARGEST = (3.9, 5.2)  # inches of a plane
_TITLE, _GAP = 0.22, 0.1  # inches: height of the title of a slice, and width between two slices
_LEAST = 1.1  # inches of the shorter side of a map
MOST_NAMED = 1500  # cells that the report names, those with the highest scores: 0.1 KB each
_LABELS = (1.3, 0.55)  # inches of the colour bar and the axes' labels
# Grey of the background's darkest cell: light, so that a colour is nearly that of the colour bar.
DARKEST = 0.7
# Opacity above the background: of the lowest and highest score, and of numbers of folds.
_SCORES_ALPHA, _COUNTS_ALPHA = (0.5, 0.95), 0.85

#: Places of ticks, and their labels.
Ticks = tuple[Sequence[float], Sequence[str]]


@dataclass(frozen=True, eq=False)
class Plane:
    """Arrangement of the cells of a sample in a plane."""

    #: Cell of the sample's array, counted in C order, at each place; -1 between slices; shape
    #: (height, width).
    cells: IntArray
    #: Feature at each place; -1 between slices and outside a mask; shape (height, width).
    features: IntArray
    axes: tuple[str, str]
    titles: tuple[tuple[float, float, str], ...] = ()
    ticks: tuple[Ticks, Ticks] | None = None
    #: What is left out, as a sentence.
    about: str = ""
    largest: tuple[float, float] = _LARGEST

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a figure of the plane with its labels; narrow ones are stretched."""
        rows, columns = self.cells.shape
        scale = min(self.largest[0] / columns, self.largest[1] / rows)
        return max(scale * columns, _LEAST) + _LABELS[0], max(scale * rows, _LEAST) + _LABELS[1]

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in inches."""
        rows, columns = self.cells.shape
        return (self.size[0] - _LABELS[0]) / columns, (self.size[1] - _LABELS[1]) / rows

    @property
    def inside(self) -> BoolArray:
        """Mask of the places that hold a feature."""
        return self.features >= 0

    def place_features(self, values: ArrayLike) -> Any:
        """Return values of the features in the plane."""
        return np.ma.array(np.asarray(values)[self.features], mask=~self.inside)

    def place_cells(self, values: ArrayLike) -> Any:
        """Return values of the cells of a sample's array in the plane."""
        image = np.ravel(values)[self.cells]
        return np.ma.array(image, mask=(self.cells < 0) | np.isnan(image))

    def draw(self, ax: Axes, values: Any, colours: Colormap | str, **settings: Any) -> AxesImage:
        """Draw values of the places as colours."""
        width, height = self.cell
        return ax.imshow(
            values, cmap=colours, aspect=height / width, interpolation="nearest", **settings
        )

    def fill(self, ax: Axes) -> None:
        """Draw all places that hold a feature in a light grey."""
        empty = np.ma.array(np.zeros(self.inside.shape), mask=~self.inside)
        self.draw(ax, empty, ListedColormap([drawing.EMPTY]))

    def label(self, ax: Axes) -> None:
        """Label the axes, and the slices of a volume."""
        ax.set_ylabel(self.axes[0])
        ax.set_xlabel(self.axes[1])
        ax.spines[:].set_visible(False)
        if self.ticks is None:
            ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
            ax.yaxis.set_major_locator(MaxNLocator(7, integer=True))
            return
        ax.set_yticks(*self.ticks[0], fontsize=7.5)
        ax.set_xticks(*self.ticks[1], fontsize=7.5)
        ax.tick_params(length=2, pad=1.5)
        look: Any = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 8}
        for x, y, text in self.titles:
            ax.annotate(text, (x, y), (0, 1.5), **look)


def make_plane(
    layout: Layout, weights: FloatArray | None = None, largest: tuple[float, float] = _LARGEST
) -> Plane | None:
    """Arrange cells of images or volumes in a plane of at most some inches; None for others.

    Of volumes in space with many slices the 12 with the highest weights are shown, of others 16,
    evenly spread.
    """
    if not layout.is_image:
        return None
    features = layout.arranged(np.arange(layout.n_features), outside=-1)
    if features.ndim > 2:
        return _slices(features, layout, weights, largest)
    first, second = layout.axes()
    return Plane(features, features, (first, second), largest=largest)


def _slices(
    features: IntArray, layout: Layout, weights: FloatArray | None, largest: tuple[float, float]
) -> Plane:
    # In space the first other axis runs to the right and the second upwards; else the first runs
    # down and the second to the right, as in a matrix.
    in_space, along, axes = layout.affine is not None, layout.slice_axis, layout.axes()
    labels = layout.axis_labels()
    others = [axis for axis in range(3) if axis != along]
    down, right = others
    if in_space:
        down, right = right, down
    cells = np.arange(features.size).reshape(features.shape)
    volume = np.stack([cells, features]).transpose(0, along + 1, down + 1, right + 1)
    rows, columns = _extent(volume[1], 1), _extent(volume[1], 2)
    if in_space:
        rows = rows[::-1]
    else:
        weights = None
    chosen = _chosen(volume[1], weights)
    n, height, width = len(chosen), len(rows), len(columns)

    def scale(across: int) -> float:
        return min(largest[0] / (across * width), largest[1] / (math.ceil(n / across) * height))

    across = max(range(1, n + 1), key=scale)
    above, between = (max(1, math.ceil(inches / scale(across))) for inches in (_TITLE, _GAP))
    corners = [
        (i // across * (height + above) + above, i % across * (width + between)) for i in range(n)
    ]
    plane = np.full(
        (2, math.ceil(n / across) * (height + above), across * (width + between) - between), -1
    )
    for i, (top, left) in zip(chosen, corners, strict=True):
        plane[:, top : top + height, left : left + width] = volume[:, i][:, rows[:, None], columns]
    about = ""
    if n < volume.shape[1]:
        which = "those with the highest values"
        if weights is None:
            which = "evenly spread"
        about = f"{n} of the {volume.shape[1]} slices along {axes[along]} are shown, {which}."
    titles = tuple(
        (left + (width - 1) / 2, top - 0.5, layout.slice_label(along, i))
        for (top, left), i in zip(corners, chosen, strict=True)
    )
    return Plane(
        cells=plane[0],
        features=plane[1],
        axes=(labels[down], labels[right]),
        titles=titles,
        ticks=(_ends(sorted({top for top, _ in corners}), rows), _ends([0], columns)),
        about=about,
        largest=largest,
    )


def _chosen(volume: IntArray, weights: FloatArray | None) -> list[int]:
    """Indices of the slices that are shown, increasing."""
    if weights is None:
        filled = np.flatnonzero((volume >= 0).any(axis=(1, 2)))
        places = np.linspace(0, len(filled) - 1, min(len(filled), _MOST_SPREAD)).round().astype(int)
        return filled[np.unique(places)].tolist()
    if len(volume) <= _FEW:
        return list(range(len(volume)))
    best = np.where(volume >= 0, weights[volume], 0.0).max(axis=(1, 2))
    order = np.argsort(-best, kind="stable")
    shown = [i for i in order[:_MOST_SLICES].tolist() if best[i] > 0]
    return sorted(shown or order[:1].tolist())


def _extent(volume: IntArray, axis: int) -> IntArray:
    """Indices from the first to the last with a feature in any slice, and one more on each side."""
    filled = np.flatnonzero((volume >= 0).any(axis=(0, 3 - axis)))
    return np.arange(max(0, filled[0] - 1), min(volume.shape[axis], filled[-1] + 2))


def _ends(starts: Sequence[int], indices: IntArray) -> Ticks:
    """Ticks at the first and the last index of tiles; more would touch each other."""
    ends = sorted({0, len(indices) - 1})
    places = [float(start + end) for start, end in product(starts, ends)]
    return places, [str(indices[end]) for end in ends] * len(starts)


@dataclass(frozen=True, eq=False)
class ScoreMap(RankingPanel):
    """Scores of one task's cells, over an image if there is one; the selected are outlined."""

    whole_table = "ranking/ranking.csv"

    ranking: FeatureRanking
    layout: Layout
    plane: Plane
    #: Value of each cell of a sample's array, shape (n_cells,); None without an image.
    background: FloatArray | None = None
    #: What the background is.
    image: str = ""
    task: str = ""
    key: str = "score-map"
    table: str = "map"

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"score of {self.ranking.source}"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return self.plane.size

    @property
    def caption(self) -> str:
        sentences = [
            f"Scores of the features{self._whose} in {self.ranking.source}{self._over};",
            f"{self._outlined}. Cells without colour have no score.",
        ]
        if self.ranking.constant.any():
            sentences.append("Hatched: constant.")
        return " ".join(filter(None, [*sentences, self.plane.about]))

    @property
    def _outlined(self) -> str:
        """What the outlined cells are."""
        n, top = int(self.ranking.selected.sum()), self.ranking.n_selected
        outlined = f"outlined: its {n} best features"
        if n < top:
            outlined += f", of the {top} that count as selected at most"
        return outlined

    @property
    def _over(self) -> str:
        if self.background is None:
            return ""
        return f" over the {self.image}"

    def frame(self) -> pd.DataFrame:
        ranking = self.ranking
        table: dict[str, Any] = {**self.layout.coordinates(), "score": ranking.usable_scores}
        return pd.DataFrame(
            table | {"outer_folds": ranking.selection_count, "selected": ranking.selected}
        )

    def cells(self) -> Sequence[Cell]:
        rows, columns = np.nonzero(self.plane.inside)
        features = self.plane.features[rows, columns]
        order = np.argsort(-self.ranking.usable_scores[features], kind="stable")[:MOST_NAMED]
        return [Cell(columns[i], rows[i], self._describe(features[i])) for i in order]

    def _describe(self, feature: int) -> str:
        """Name a feature with its score and the outer folds that select it."""
        ranking = self.ranking
        score = "no score"
        if ranking.usable_scores[feature] > 0:
            score = f"score {ranking.scores[feature]:.3g}"
        folds = f"selected by {ranking.selection_count[feature]} of {ranking.n_folds} outer folds"
        return f"{short(ranking.feature_names[feature], 60)}: {score}, {folds}"

    def draw(self, ax: Axes) -> None:
        ranking, plane = self.ranking, self.plane
        self._draw_background(ax)
        empty = ranking.usable_scores == 0
        masked = plane.place_features(empty).filled(True)
        scores = np.ma.masked_where(masked, plane.place_features(ranking.scores))
        low, high = 0, 1
        if scores.count():
            low, high = scores.min(), scores.max()
        colours = score_colours(clear=self.background is not None)
        image = plane.draw(ax, scores, colours, norm=Normalize(low, high))
        if ranking.constant.any():
            corners = _corners(plane.place_features(ranking.constant).filled(False))
            look: Any = {"facecolor": "none", "edgecolor": "0.65", "hatch": "////", "linewidth": 0}
            ax.add_collection(PolyCollection(list(corners), **look), autolim=False)
        self._draw_outline(ax)
        drawing.add_colour_bar(ax, image, "score")

    def _draw_background(self, ax: Axes) -> None:
        """Draw the image in light greys, below colours that can be read; else one light grey."""
        self.plane.label(ax)
        if self.background is not None:
            greys = ListedColormap(colormaps["gray"](np.linspace(DARKEST, 1.0, 256)))
            self.plane.draw(ax, self.plane.place_cells(self.background), greys)
        elif self.plane.inside.all():
            ax.set_facecolor(drawing.EMPTY)
        else:
            self.plane.fill(ax)

    def _draw_outline(self, ax: Axes) -> None:
        """Draw the border of the selected cells."""
        width = float(np.clip(72 * min(self.plane.cell) / 7, 0.5, 1.8))
        outline(ax, self.plane.place_features(self.ranking.selected).filled(False), width)


@dataclass(frozen=True, eq=False)
class SelectionMap(ScoreMap):
    """Number of outer folds that select each cell, over an image if there is one."""

    what = "outer folds that select it"

    @property
    def caption(self) -> str:
        ranking = self.ranking
        sentence = (
            f"Number of the {ranking.n_folds} outer folds that select each feature{self._whose}"
            f" among their best {ranking.n_selected}{self._over}; {self._outlined}."
        )
        return f"{sentence} {self.plane.about}".rstrip()

    def draw(self, ax: Axes) -> None:
        ranking = self.ranking
        self._draw_background(ax)
        colours, norm = drawing.fold_colours(ranking.n_folds)
        counts = np.ma.masked_equal(self.plane.place_features(ranking.selection_count), 0)
        alpha = None if self.background is None else _COUNTS_ALPHA
        image = self.plane.draw(
            ax, counts, colours.with_extremes(bad="none"), norm=norm, alpha=alpha
        )
        self._draw_outline(ax)
        bar = drawing.add_fold_bar(ax, image, ranking.n_folds, self.size[1] - _LABELS[1])
        bar.ax.set_ylim(0.5, ranking.n_folds + 0.5)  # cells that none selects show the background


@dataclass(frozen=True, eq=False)
class ScoreMaxima(RankingPanel):
    """Highest score over all other axes at each pair of indices of two axes, for each two axes."""

    what = "highest score over the other axes"
    whole_table = "ranking/ranking.csv"

    ranking: FeatureRanking
    layout: Layout
    task: str = ""
    key: str = "score-maxima"
    table: str = ""

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return self._tiles[0].size

    @property
    def caption(self) -> str:
        return (
            f"Highest score of the features{self._whose} in {self.ranking.source} at each place of"
            " two axes, over all other axes. The first axis runs down, the second across. Outlined:"
            " places of its best features."
        )

    @property
    def _tiles(self) -> tuple[Plane, FloatArray, BoolArray]:
        """Tiles of all pairs of axes in rows, their highest scores and whether one is selected."""
        names = self.layout.axes()
        scores = np.asarray(self.layout.arranged(self.ranking.usable_scores), dtype=np.float64)
        selected = self.layout.arranged(self.ranking.selected, outside=False)
        pairs = list(combinations([axis for axis, side in enumerate(scores.shape) if side > 1], 2))
        height, width = (max(scores.shape[pair[i]] for pair in pairs) for i in (0, 1))
        across = min(len(pairs), _MOST_TILES)
        above = max(2, math.ceil(_TITLE * across * (width + 1) / _LARGEST[0]))
        shape = (math.ceil(len(pairs) / across) * (height + above), across * (width + 2) - 1)
        places, highest, best = np.full(shape, -1), np.zeros(shape), np.zeros(shape, dtype=bool)
        titles = []
        for i, (first, second) in enumerate(pairs):
            others = tuple(axis for axis in range(scores.ndim) if axis not in (first, second))
            top, left = i // across * (height + above) + above, i % across * (width + 2) + 1
            cells = np.s_[top : top + scores.shape[first], left : left + scores.shape[second]]
            places[cells] = 0
            highest[cells] = scores.max(axis=others)
            best[cells] = selected.any(axis=others)
            middle = left + (scores.shape[second] - 1) / 2
            title = f"{short(names[first], 12)} x {short(names[second], 12)}"
            titles.append((middle, top - 0.5, title))
        none: Ticks = ([], [])
        plane = Plane(
            cells=places,
            features=places,
            axes=("", ""),
            titles=tuple(titles),
            ticks=(none, none),
        )
        return plane, np.ma.array(highest, mask=(places < 0) | (highest == 0)), best

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({**self.layout.coordinates(), "score": self.ranking.usable_scores})

    def draw(self, ax: Axes) -> None:
        plane, highest, best = self._tiles
        plane.label(ax)
        plane.fill(ax)
        image = plane.draw(ax, highest, score_colours(clear=False))
        outline(ax, best, 1.2)
        drawing.add_colour_bar(ax, image, "score")


def has_maxima(layout: Layout) -> bool:
    """Return whether samples have more than two axes to take maxima over."""
    return sum(side > 1 for side in layout.shape) > 2


def score_colours(*, clear: bool) -> Colormap:
    """Colours of scores; above an image lower ones are clearer."""
    shades = colormaps["viridis"](np.linspace(0.0, 1.0, 256))
    if clear:
        shades[:, 3] = np.linspace(*_SCORES_ALPHA, len(shades))
    return ListedColormap(shades).with_extremes(bad="none")


def _corners(cells: BoolArray) -> FloatArray:
    """Coordinates (x, y) of the four corners of each chosen cell, shape (n_cells, 4, 2)."""
    row, column = np.nonzero(cells)
    steps = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return np.stack([column, row], axis=1)[:, None, :] + steps


def outline(ax: Axes, cells: BoolArray, width: float) -> None:
    """Draw the border of chosen cells as lines of a width in points."""
    look: Any = {"colors": drawing.OUTLINE, "capstyle": "projecting", "clip_on": False}
    lines = LineCollection(list(_border(cells)), linewidths=width, **look)
    ax.add_collection(lines, autolim=False)


def _border(cells: BoolArray) -> FloatArray:
    """End points (x, y) of the sides between chosen cells and others, shape (n_sides, 2, 2)."""
    padded = np.pad(cells, 1)
    row, column = np.nonzero(padded[:, 1:] != padded[:, :-1])
    upright = np.stack([column - 0.5, row - 1.5, column - 0.5, row - 0.5], axis=1)
    row, column = np.nonzero(padded[1:] != padded[:-1])
    level = np.stack([column - 1.5, row - 0.5, column - 0.5, row - 0.5], axis=1)
    return np.concatenate([upright, level]).reshape(-1, 2, 2)
