"""Critical-difference diagram: mean ranks of methods, with bars that join those alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.textpath import TextPath
from scipy.optimize import linprog

from raysel.core.arrays import FloatArray
from raysel.core.printing import short_middle
from raysel.results.displays.display import Display

_WIDTH = 5.6  # inches, as all sizes here
_LONGEST = 20  # letters of a label
_SMALL = 9.5  # points
_TOP = 0.6  # from the upper edge to the axis
_EDGE = 0.1  # white space at the sides
_STEP = 0.25  # distance of two labels
_BAR = 0.13  # distance of two bars


@dataclass(frozen=True, eq=False)
class RankDiagram(Display):
    """Critical-difference diagram as Demsar (2006) has it.

    The axis shows mean ranks, the best on the left. Methods that a bar joins do not differ by
    Nemenyi's test; the bar above the axis is as long as the critical difference.
    """

    key = "ranks"
    on_white = True

    name: str
    labels: Sequence[str]
    mean_ranks: FloatArray
    critical_difference: float
    #: Positions of methods that do not differ.
    groups: Sequence[Sequence[int]]
    #: What the tests say.
    tests: str = ""

    @property
    def title(self) -> str:
        return self.name

    @property
    def caption(self) -> str:
        # No line ends within "p = 0.01".
        return self.tests.replace(" = ", "\u00a0=\u00a0").replace(" <", "\u00a0<")

    @property
    def _bars(self) -> float:
        """Height of the bars in inches."""
        return 0.15 + _BAR * len(self.groups)

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return _WIDTH, _TOP + self._bars + _STEP * ((len(self.labels) + 1) // 2) + 0.2

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({"method": list(self.labels), "mean_rank": self.mean_ranks})

    def draw(self, ax: Axes) -> None:
        k, ranks = len(self.labels), self.mean_ranks
        order, on_left = np.argsort(ranks, kind="stable").tolist(), (k + 1) // 2
        ax.set_axis_off()  # places are inches from the upper left corner
        ax.set_xlim(0, _WIDTH)
        ax.set_ylim(self.size[1], 0)
        names = [short_middle(label, _LONGEST) for label in self.labels]
        first, last = _axis(names, ranks, order, on_left)

        def place(rank: float) -> float:
            return first + (rank - 1) / (k - 1) * (last - first)

        ax.plot([place(1), place(k)], [_TOP, _TOP], color="0", linewidth=1.2)
        for rank in range(1, k + 1):
            ax.plot([place(rank)] * 2, [_TOP - 0.06, _TOP], color="0", linewidth=1.0)
            if (last - first) / (k - 1) > 0.2 or rank % 2:
                look: Any = {"fontsize": _SMALL, "ha": "center", "va": "bottom"}
                ax.text(place(rank), _TOP - 0.09, str(rank), **look)
        span = place(1), place(1 + self.critical_difference)
        _draw_critical_difference(ax, span, _TOP - 0.38, self.critical_difference)
        for i, group in enumerate(self.groups):
            y, ends = _TOP + 0.13 + _BAR * i, ranks[list(group)]
            bar = [place(ends.min()) - 0.05, place(ends.max()) + 0.05]
            ax.plot(bar, [y, y], color="#0072b2", linewidth=4)
        for i, method in enumerate(order):
            left = i < on_left
            text = _text(names[method], ranks[method], left)
            if left:
                line, x, side, edge = i, _EDGE, "left", _EDGE + _width(text)
            else:
                line, x, side = k - 1 - i, _WIDTH - _EDGE, "right"
                edge = x - _width(text)
            y = _TOP + self._bars + _STEP * (line + 0.5)
            ax.plot([place(ranks[method])] * 2 + [edge], [_TOP, y, y], color="0.35", linewidth=0.9)
            ax.text(x, y, text, fontsize=_SMALL, ha=side, va="center", parse_math=False)


def _text(name: str, rank: float, left: bool) -> str:
    if left:
        return f"{name}  {rank:.2f}"
    return f"{rank:.2f}  {name}"


def _width(text: str) -> float:
    """Width of a text in inches, with a gap after it."""
    # A dollar sign would start a formula.
    path = TextPath((0, 0), text.replace("$", "S"), size=_SMALL)
    return float(path.get_extents().width) / 72 + 0.08


def _axis(
    names: Sequence[str], mean_ranks: FloatArray, order: Sequence[int], on_left: int
) -> tuple[float, float]:
    """Ends of the longest axis on which no line to a label goes through that label."""
    widths = np.array(
        [_width(_text(names[i], mean_ranks[i], place < on_left)) for place, i in enumerate(order)]
    )
    # Of the way from the first end to the last.
    shares = (mean_ranks[list(order)] - 1) / (len(names) - 1)
    lines = np.column_stack([1 - shares, shares])  # times the ends: the places of the lines
    ends = [(_EDGE + 0.25, _WIDTH - 1.5), (1.5, _WIDTH - _EDGE - 0.25)]
    at_least, at_most = _EDGE + widths[:on_left] + 0.05, _WIDTH - _EDGE - widths[on_left:] - 0.05
    limits = np.concatenate([-at_least, at_most, [-1.0]])  # at least an inch long
    left_of = np.concatenate([-lines[:on_left], lines[on_left:], [[1.0, -1.0]]])
    longest = linprog([1.0, -1.0], left_of, limits, bounds=ends)
    if longest.x is None:
        return ends[0][0], ends[1][1]
    return float(longest.x[0]), float(longest.x[1])


def _draw_critical_difference(ax: Axes, ends: tuple[float, float], y: float, value: float) -> None:
    """Draw a bar as long as the critical difference; write it only if it would leave the figure."""
    start, end = ends
    text = f"critical difference {value:.2f}"
    if end > _WIDTH - 0.1:
        ax.text(start, y, f"{text}: longer than the axis", fontsize=_SMALL, va="center")
        return
    ax.plot([start, end], [y, y], color="0", linewidth=1.2)
    for x in (start, end):
        ax.plot([x, x], [y - 0.05, y + 0.05], color="0", linewidth=1.2)
    if end + 0.1 + _width(text) < _WIDTH:
        ax.text(end + 0.1, y, text, fontsize=_SMALL, va="center")
        return
    box = {"boxstyle": "square,pad=0.2", "facecolor": "1", "edgecolor": "none"}
    ax.text((start + end) / 2, y, text, fontsize=_SMALL, ha="center", va="center", bbox=box)
