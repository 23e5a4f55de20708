"""Base of the displays: one figure each, with its data, table, drawing, caption and files."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import pandas as pd
from matplotlib import font_manager, ft2font, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Text

from raysel.core.files import write_result
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.drawing import SMALL, WARNING, WIDTH
from raysel.results.facts import Facts

# Inches of a title, of each further line of it and of a line below it.
_TITLE, _TITLE_LINE, _LINE = 0.34, 0.24, 0.17
_TITLE_LETTERS, _LETTERS = 7.8, 14.2  # letters per inch of a title of 13 points, and of other text
_LONGEST_TITLE = 240  # letters
_GAP = 0.1
_WIDEST = 12.2  # inches of two panels side by side
_DRAWING: Any = {
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
}
_DPI = 150  # dots per inch of a PNG
#: Text stays text (searchable, editable) in SVG and PDF; ids in SVG are random unless their hash
#: has a fixed salt.
_WRITING = {
    "svg.hashsalt": "raysel",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "savefig.facecolor": "white",
}
#: Metadata without date.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "raysel"},
    "svg": {"Creator": "raysel", "Date": None},
    "pdf": {"Creator": "raysel", "CreationDate": None},
}

#: Ids of clipping areas in SVG, where they are defined and where they are used.
_CLIP_ID = re.compile(rb'(?<=id=")p[0-9a-f]{10}(?=")|(?<=url\(#)p[0-9a-f]{10}(?=\))')


class Cell(NamedTuple):
    """Cell of a map, one unit of the axes wide and high: its centre, its name and its values."""

    x: float
    y: float
    text: str


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

    def cells(self) -> Sequence[Cell]:
        """Return the cells that the report names where a pointer is over them."""
        return ()

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
        with rc_context(_DRAWING):
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
        width = max([WIDTH, *(sum(panel.size[0] for panel in row) + _GAP for row in rows)])
        heights = [max(panel.size[1] for panel in row) for row in rows]
        if len(self.panels) > 1:
            heights = [height + _TITLE for height in heights]
        title = textwrap.wrap(short(self.title, _LONGEST_TITLE), int(width * _TITLE_LETTERS))
        letters = int(width * _LETTERS)
        lines = [(line, "0.25") for line in textwrap.wrap(self.caption, letters)]
        for remark in self.remarks:
            lines += [(line, WARNING) for line in textwrap.wrap(remark, letters)]
        head = 0.2 + _TITLE + _TITLE_LINE * (len(title) - 1) + _LINE * len(lines)
        figure = Figure(figsize=(width, sum(heights) + head), layout="constrained")
        top, *areas = figure.subfigures(
            len(rows) + 1, 1, squeeze=False, height_ratios=[head, *heights]
        )[:, 0]
        for row, area in zip(rows, areas, strict=True):
            self._draw_row(row, area, width)
        _write_head(top, (width, head), title, lines)
        return figure

    def _draw_row(self, row: Sequence[Display], area: SubFigure, width: float) -> None:
        # A panel without a neighbour stays as wide as it is in the report.
        widths = [panel.size[0] for panel in row]
        ratios, rest = list(widths), width - sum(widths)
        if len(row) == 1 and rest > 1:
            ratios.append(rest)
        body = area
        if len(self.panels) > 1:
            heights = [_TITLE, max(panel.size[1] for panel in row)]
            top, body = area.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
            for i, panel in enumerate(row):
                left = sum(widths[:i]) / sum(ratios) + 0.12 / width
                name = short(panel.title, 60)
                top.text(left, 0.5, name, fontsize=10.5, va="center", parse_math=False)
        # One grid, so that the rows of bars are level.
        grid = body.add_gridspec(1, len(ratios), width_ratios=ratios)
        for i, panel in enumerate(row):
            panel.plot(body.add_subplot(grid[i]))


class RankingPanel(Display):
    """Part of the figure of a ranking, of one task where there are several."""

    section = "features"
    on_white = True
    #: What the panel shows, in its title after the task's name.
    what = ""

    ranking: FeatureRanking
    task = ""

    @property
    def title(self) -> str:
        return f"{short(self.task, 24)}: {self.what}" if self.task else self.what

    @property
    def _whose(self) -> str:
        return f" of {short(self.task, 40)}" if self.task else ""


def labelled_table(
    head: str, names: Sequence[str], values: Any, columns: Sequence[str]
) -> pd.DataFrame:
    """Return a table whose first column names the rows; other columns may have its name."""
    table = pd.DataFrame(values, columns=list(columns))
    table.insert(0, head, list(names), allow_duplicates=True)
    return table


@dataclass(frozen=True, eq=False)
class StudyDisplay(Display):
    """Figure of a study; report, files and plots show those that the registry lists."""

    #: What the figure shows, in its title after the study's name.
    what = ""
    #: Whether the figure is exported as files.
    exported = True
    #: What a study without the data lacks, after its name.
    lacks = ""

    #: Name of the study.
    name: str

    @property
    def title(self) -> str:
        return f"{short(self.name, 100)}: {self.what}"

    @classmethod
    @abstractmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Return the figure of a study, or of one of its rankings; None if it lacks the data."""


@dataclass(frozen=True, eq=False)
class DividedDisplay(StudyDisplay):
    """Several figures of one kind, e.g. one of each task."""

    parts: Sequence[Display]

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
        row = panels[i : i + 2]
        if sum(panel.size[0] for panel in row) > _WIDEST:
            row = row[:1]
        yield row
        i += len(row)


def _write_head(
    area: SubFigure,
    size: tuple[float, float],
    title: Sequence[str],
    lines: Sequence[tuple[str, str]],
) -> None:
    width, height = size
    left, top = 0.12 / width, 0.1
    for i, line in enumerate(title):
        y = 1 - (top + _TITLE_LINE * i) / height
        area.text(left, y, line, fontsize=13, fontweight="bold", va="top", parse_math=False)
    top += _TITLE + _TITLE_LINE * (len(title) - 1)
    for i, (line, colour) in enumerate(lines):
        y = 1 - (top + _LINE * i) / height
        area.text(left, y, line, fontsize=9, color=colour, va="top", parse_math=False)


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF; the same figure gives the same bytes.

    Text stays text in SVG and PDF. Letters that the font lacks are taken from another installed
    font if one has them.
    """
    kind = Path(path).suffix.removeprefix(".")
    image = io.BytesIO()
    first, *others = rcParams["font.sans-serif"]
    settings: Any = _WRITING | {"font.sans-serif": [first, *_find_more_fonts(figure), *others]}
    with rc_context(settings), warnings.catch_warnings():
        # No installed font has the letter.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from font")
        lay_out(figure)
        figure.savefig(image, format=kind, dpi=_DPI, metadata=_METADATA[kind])
    content = image.getvalue()
    if kind == "svg":
        content = _number_clips(content)
    return write_result(path, content)


def _number_clips(svg: bytes) -> bytes:
    """Name the clipping areas of an SVG by their order.

    matplotlib names them by all bits of their places, and of several panels the layout gives the
    last ones differently in each process.
    """
    names: dict[bytes, bytes] = {}
    return _CLIP_ID.sub(lambda found: names.setdefault(found[0], b"clip%d" % len(names)), svg)


def lay_out(figure: Figure) -> None:
    """Place the parts of a figure once for all its files: `savefig` draws twice for each."""
    if engine := figure.get_layout_engine():
        figure.set_dpi(_DPI)
        engine.execute(figure)
        figure.set_layout_engine(None)


def _find_more_fonts(figure: Figure) -> list[str]:
    """Find installed fonts with letters of the figure that the default font lacks."""
    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    letters = {letter for letter in "".join(texts) if not letter.isascii()}
    if not letters:
        return []
    default = font_manager.findfont(font_manager.FontProperties())
    missing = letters - _read_letters(default)
    if not missing:
        return []
    families: list[str] = []
    for font in sorted(font_manager.fontManager.ttflist, key=_preference):
        if helps := missing & _read_letters(font.fname):
            families.append(font.name)
            missing -= helps
        if not missing:
            break
    return families


def _preference(font: font_manager.FontEntry) -> tuple[bool, str, str]:
    """Sort key of fonts: upright of normal weight first, then by name."""
    return (font.style != "normal" or font.weight not in (400, "normal"), font.name, font.fname)


@cache
def _read_letters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, ft2font.FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font file that is damaged
        return frozenset()
