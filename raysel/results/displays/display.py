"""Base of the displays: each is one figure with its data, its table, its drawing on axes, its caption and its files."""

from __future__ import annotations

import io
import textwrap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps, font_manager, ft2font, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Text
from scipy.optimize import isotonic_regression

from raysel.core.arrays import FloatArray
from raysel.core.files import write_result
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.numbers import StudyNumbers

OUTLINE = "#d95f02"  # distinct from all blues, also with colour blindness
BLUE = "#08519c"
WARNING = "#a63603"
EMPTY = "0.90"
# Okabe and Ito's colours, distinct with colour blindness; dashes and markers tell them apart in grey.
GREEN, PINK, SKY = "#009e73", "#a0457e", "#56b4e9"

WIDTH = 5.6  # inches, as all sizes here; on a phone the text remains readable
SMALL = 8.5  # points: size of tick labels and legends
_TITLE, _LINE = 0.34, 0.17  # inches of a title and of a line below it
_TITLE_LETTERS, _LETTERS = 7.8, 14.2  # letters per inch of a title of 13 points, and of other text
_LEGEND_LETTERS = 15.5
_GAP = 0.1
_DIGIT = 0.018  # width of a digit of a tick label, as a share of the axis
_SETTINGS: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
}


class Display(ABC):
    """One figure: its data as attributes, its table, its drawing and its caption.

    A subclass is a frozen dataclass, whose fields are the data.
    """

    #: Name of the exported files, and of the figure in the report.
    key: str
    #: Section of the report that shows the figure.
    section: str = ""
    #: Name of the CSV file beside the figure in the report; none if empty.
    table: str = ""
    #: File of the study's directory that holds the whole table where the report cuts it.
    whole_table: str = ""
    #: Whether the figure needs a white background, because its colours mean numbers.
    on_white = False
    #: Width and height of the axes with their labels, in inches.
    size: tuple[float, float] = (WIDTH, 3.4)

    @property
    @abstractmethod
    def title(self) -> str:
        """Title of the exported figure."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """What the figure shows, in sentences."""

    @property
    def remarks(self) -> Sequence[str]:
        """Limitations that stand below the caption of the exported figure."""
        return ()

    @property
    def panels(self) -> Sequence[Display]:
        """Figures that this one consists of; itself if it is not divided."""
        return (self,)

    @property
    def in_report(self) -> bool:
        """Whether the report shows the figure."""
        return True

    def for_report(self) -> Display:
        """Return the figure as the report shows it, which may have fewer rows."""
        return self

    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """Return the numbers that the figure shows as a table."""

    @abstractmethod
    def draw(self, ax: Axes) -> None:
        """Draw the figure on empty axes."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the figure on axes, by default on new ones of a figure that pyplot shows."""
        if ax is None:
            from matplotlib import pyplot as plt  # noqa: PLC0415 - chooses a backend

            _, ax = plt.subplots(figsize=self.size, layout="constrained")
        with rc_context(_SETTINGS):
            ax.tick_params(labelsize=SMALL)
            self.draw(ax)
        return ax

    def figure(self) -> Figure:
        """Return the figure without title and caption."""
        figure = Figure(figsize=self.size, layout="constrained")
        self.plot(figure.subplots())
        return figure

    def headed_figure(self) -> Figure:
        """Return the figure, or all its panels, below the title, the caption and the remarks."""
        rows = list(_rows(self.panels))
        width = max(WIDTH, *(sum(panel.size[0] for panel in row) + _GAP for row in rows))
        heights = [max(panel.size[1] for panel in row) + _TITLE * (len(self.panels) > 1) for row in rows]
        letters = int(width * _LETTERS)
        lines = [(line, "0.25") for line in textwrap.wrap(self.caption, letters)]
        lines += [(line, WARNING) for remark in self.remarks for line in textwrap.wrap(remark, letters)]
        head = 0.2 + _TITLE + _LINE * len(lines)
        figure = Figure(figsize=(width, sum(heights) + head), layout="constrained")
        top, *areas = figure.subfigures(len(rows) + 1, 1, squeeze=False, height_ratios=[head, *heights])[:, 0]
        for row, area in zip(rows, areas, strict=True):
            self._draw_row(row, area, width)
        _write_head(top, (width, head), self.title, lines)
        return figure

    def _draw_row(self, row: Sequence[Display], area: SubFigure, width: float) -> None:
        # A panel without a neighbour stays as wide as it is in the report.
        widths = [panel.size[0] for panel in row]
        rest = width - sum(widths)
        ratios = [*widths, *([rest] if len(row) == 1 and rest > 1 else [])]
        body = area
        if len(self.panels) > 1:
            heights = [_TITLE, max(panel.size[1] for panel in row)]
            top, body = area.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
            for i, panel in enumerate(row):
                place, name = sum(widths[:i]) / sum(ratios) + 0.12 / width, short(panel.title, 60)
                top.text(place, 0.5, name, fontsize=10.5, va="center", parse_math=False)
        grid = body.add_gridspec(1, len(ratios), width_ratios=ratios)  # one, so that the rows of bars are level
        for i, panel in enumerate(row):
            panel.plot(body.add_subplot(grid[i]))


class StudyDisplay(Display):
    """Figure of a study; the list in `raysel.results.displays.registry` is what report, files and plots show."""

    #: Whether the figure is exported as files.
    exported = True
    #: What a study without the data lacks, after its name.
    lacks = ""

    @classmethod
    @abstractmethod
    def from_result(cls, result: StudyNumbers, ranking: FeatureRanking | None = None) -> Self | None:
        """Return the figure of a study, or of one of its rankings; None if the study lacks the data."""


@dataclass(frozen=True, eq=False)
class DividedDisplay(StudyDisplay):
    """Several figures of one kind, e.g. one of each task."""

    name: str
    parts: Sequence[Display]

    @property
    def title(self) -> str:
        return short(self.name, 60)

    @property
    def caption(self) -> str:
        return " ".join(part.caption for part in self.parts)

    @property
    def panels(self) -> Sequence[Display]:
        return self.parts

    def frame(self) -> pd.DataFrame:
        return pd.concat([part.frame() for part in self.parts])

    def draw(self, ax: Axes) -> None:
        self.parts[0].draw(ax)


def _rows(panels: Sequence[Display]) -> Iterator[Sequence[Display]]:
    """Divide panels into rows of one or two that are no wider than a page."""
    i = 0
    while i < len(panels):
        n = 2 if i + 1 < len(panels) and panels[i].size[0] + panels[i + 1].size[0] <= 2 * WIDTH + 1 else 1
        yield panels[i : i + n]
        i += n


def _write_head(area: SubFigure, size: tuple[float, float], title: str, lines: Sequence[tuple[str, str]]) -> None:
    width, height = size
    shown = short(title, int(width * _TITLE_LETTERS * 13 / 10))
    points = float(np.clip(13 * width * _TITLE_LETTERS / max(len(shown), 1), 10, 13))
    left = 0.12 / width
    area.text(left, 1 - 0.1 / height, shown, fontsize=points, fontweight="bold", va="top", parse_math=False)
    for i, (line, colour) in enumerate(lines):
        y = 1 - (0.1 + _TITLE + _LINE * i) / height
        area.text(left, y, line, fontsize=9, color=colour, va="top", parse_math=False)


def clean_axes(ax: Axes, grid: Literal["x", "y"] | None = None) -> None:
    """Remove the frame's upper and right side and draw a light grid below the data."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)


def name_rows(ax: Axes, names: Sequence[str], longest: int = 28) -> None:
    """Name the rows of a plot of horizontal bars, the first at the top."""
    ax.set_yticks(range(len(names)), [short(name, longest) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)


def add_legend(ax: Axes, *, right: bool = False, **settings: Any) -> None:
    """Draw a legend without frame above the axes, from their left or to their right end; no label is a formula."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    width = ax.figure.bbox.width / ax.figure.dpi  # also of a part of a figure
    spec: Any = ax.get_subplotspec()
    if spec:
        ratios = spec.get_gridspec().get_width_ratios()
        width *= ratios[spec.colspan.start] / sum(ratios)
    columns = max(1, int(_LEGEND_LETTERS * (width - (0.6 if right else 1.2)) / (max(map(len, labels)) + 7)))
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)} if right else {"loc": "lower left"}
    settings = {"bbox_to_anchor": (0, 1), "ncols": min(len(labels), columns), **place, **settings}
    legend = ax.legend(handles, labels, frameon=False, borderaxespad=0.2, columnspacing=1.2, **settings)
    for text in legend.get_texts():
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
    bar = add_colour_bar(ax, mappable, f"outer folds that{' ' if height > 2.3 else chr(10)}select it, of {n_folds}")
    n_ticks = min(n_folds, 10, max(1, int(height / 0.25)))
    bar.set_ticks(np.unique(np.linspace(0, n_folds, n_ticks + 1).round()).tolist())
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter("{x:.0f}")
    return bar


def readable(name: str) -> str:
    """Return the name of a metric or reference as figures show it, e.g. ``"F-test"`` for ``"f_test"``."""
    return {"f_test": "F-test"}.get(name, name.replace("_", " "))


def set_ticks(ax: Axes, numbers: Sequence[int]) -> None:
    """Label numbers on the x axis as far as their labels do not overlap; the first and the last are kept."""
    kept = [len(numbers) - 1]
    if len(numbers) > 1:
        places = np.log(numbers) if ax.get_xscale() == "log" else np.array(numbers, dtype=float)
        places = (places - places[0]) / (places[-1] - places[0])
        room = [_DIGIT * (len(str(n)) + 1) for n in numbers]
        for i in range(len(numbers) - 2, -1, -1):
            after = places[kept[-1]] - places[i] >= (room[kept[-1]] + room[i]) / 2
            if i == 0 or (after and places[i] >= (room[0] + room[i]) / 2):
                kept.append(i)
    ticks = [numbers[i] for i in sorted(kept)]
    ax.set_xticks(ticks, [f"{n:d}" for n in ticks])
    ax.minorticks_off()


def spread_out(wanted: FloatArray, least: float, height: float) -> FloatArray:
    """Move places as little as needed so that no two are nearer than ``least``, in the same order."""
    order = np.argsort(wanted, kind="stable")
    # Places less the room that those below need must not fall: this is isotonic regression.
    room = least * np.arange(len(wanted))
    values = isotonic_regression(wanted[order] - room).x
    result = np.empty_like(values)
    result[order] = np.clip(values, 0.0, max(height - (room[-1] if len(room) else 0.0), 0.0)) + room
    return result


#: Text stays text (searchable, editable) in SVG and PDF; ids in SVG are random unless their hash has a fixed salt.
_SETTINGS_WRITING = {"svg.hashsalt": "raysel", "svg.fonttype": "none", "pdf.fonttype": 42, "savefig.facecolor": "white"}
#: Metadata without date.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "raysel"},
    "svg": {"Creator": "raysel", "Date": None},
    "pdf": {"Creator": "raysel", "CreationDate": None},
}


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG (150 dots per inch), SVG or PDF; the same figure gives the same bytes.

    Text stays text in SVG and PDF. Letters that the font lacks are taken from another installed font if one has them.
    """
    kind = Path(path).suffix.removeprefix(".")
    image = io.BytesIO()
    families = rcParams["font.sans-serif"]
    settings: Any = _SETTINGS_WRITING | {"font.sans-serif": [families[0], *_more_fonts(figure), *families[1:]]}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from font")  # no installed font has the letter
        figure.savefig(image, format=kind, dpi=150, metadata=_METADATA[kind])
    return write_result(path, image.getvalue())


def write_figures(figure: Figure, folder: str | Path, name: str, kinds: Sequence[str]) -> list[Path]:
    """Write a figure as files ``<name>.<kind>``."""
    return [write_figure(figure, Path(folder, f"{name}.{kind}")) for kind in kinds]


def _more_fonts(figure: Figure) -> list[str]:
    """Families of installed fonts that have the letters of the figure which the default font lacks."""
    letters = {c for text in figure.findobj(Text) if isinstance(text, Text) for c in text.get_text()}
    missing = {c for c in letters if ord(c) > 0x7F} - _letters_of(font_manager.findfont(font_manager.FontProperties()))
    found: list[str] = []
    for font in sorted(font_manager.fontManager.ttflist, key=_preference) if missing else ():
        if helps := missing & _letters_of(font.fname):
            found.append(font.name)
            missing -= helps
        if not missing:
            break
    return found


def _preference(font: font_manager.FontEntry) -> tuple[bool, str, str]:
    """Sort key of fonts: upright of normal weight first, then by name."""
    return (font.style != "normal" or font.weight not in (400, "normal"), font.name, font.fname)


@cache
def _letters_of(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, ft2font.FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font file that is damaged
        return frozenset()
