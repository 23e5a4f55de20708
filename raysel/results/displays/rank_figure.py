"""Critical-difference diagram: mean ranks of methods over data sets, with bars that join those that do not differ."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from raysel.core.arrays import FloatArray
from raysel.core.printing import short, short_middle

_WIDTH = 5.6  # inches, as all sizes here
_LONGEST = 20  # letters of a label
_SMALL = 9.5  # points
_EDGE = 0.1  # white space at the sides
_STEP = 0.25  # distance of two labels
_BAR = 0.13  # distance of two bars


def rank_figure(
    labels: Sequence[str],
    mean_ranks: FloatArray,
    critical_difference: float,
    groups: Sequence[Sequence[int]],
    *,
    title: str,
    subtitle: str,
) -> Figure:
    """Draw a critical-difference diagram as Demsar (2006) has it.

    The axis shows mean ranks, the best on the left. Methods that a bar joins do not differ by Nemenyi's test; the bar
    above the axis is as long as the critical difference.
    """
    k = len(labels)
    order = np.argsort(mean_ranks, kind="stable").tolist()
    on_left = (k + 1) // 2
    unbroken = subtitle.replace(" = ", "\u00a0=\u00a0").replace(" <", "\u00a0<")  # no line ends within "p = 0.01"
    lines = textwrap.wrap(unbroken, 72)
    top = 0.95 + 0.18 * len(lines)  # from the upper edge to the axis
    bars = 0.15 + _BAR * len(groups)
    height = top + bars + _STEP * on_left + 0.3
    figure = Figure(figsize=(_WIDTH, height))
    figure.text(
        0.15 / _WIDTH, 1 - 0.12 / height, short(title, 45), fontsize=13, fontweight="bold", va="top", parse_math=False
    )
    for i, line in enumerate(lines):
        y = 1 - (0.42 + 0.18 * i) / height
        figure.text(0.15 / _WIDTH, y, line, fontsize=_SMALL, color="0.25", va="top", parse_math=False)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))  # in inches from the upper left corner
    ax.set_axis_off()
    ax.set_xlim(0, _WIDTH)
    ax.set_ylim(height, 0)
    names = [short_middle(label, _LONGEST) for label in labels]
    first, last = _axis(names, mean_ranks, order, on_left)

    def place(rank: float) -> float:
        return first + (rank - 1) / (k - 1) * (last - first)

    ax.plot([place(1), place(k)], [top, top], color="0", linewidth=1.2)
    for rank in range(1, k + 1):
        ax.plot([place(rank)] * 2, [top - 0.06, top], color="0", linewidth=1.0)
        if (last - first) / (k - 1) > 0.2 or rank % 2:
            ax.text(place(rank), top - 0.09, str(rank), fontsize=_SMALL, ha="center", va="bottom")
    _draw_critical_difference(figure, place(1), place(1 + critical_difference), top - 0.38, critical_difference)
    for i, group in enumerate(groups):
        y = top + 0.13 + _BAR * i
        ends = mean_ranks[list(group)]
        ax.plot([place(ends.min()) - 0.05, place(ends.max()) + 0.05], [y, y], color="#0072b2", linewidth=4)
    for i, method in enumerate(order):
        left = i < on_left
        y = top + bars + _STEP * ((i if left else k - 1 - i) + 0.5)
        text = _text(names[method], mean_ranks[method], left)
        edge = _EDGE + _width(text) if left else _WIDTH - _EDGE - _width(text)
        ax.plot([place(mean_ranks[method])] * 2 + [edge], [top, y, y], color="0.35", linewidth=0.9)
        x, side = (_EDGE, "left") if left else (_WIDTH - _EDGE, "right")
        ax.text(x, y, text, fontsize=_SMALL, ha=side, va="center", parse_math=False)
    return figure


def _text(name: str, rank: float, left: bool) -> str:
    return f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"


def _width(text: str) -> float:
    """Width of a text in inches, with a gap after it."""
    path = TextPath((0, 0), text.replace("$", "S"), size=_SMALL)  # a dollar sign would start a formula
    return float(path.get_extents().width) / 72 + 0.08


def _axis(names: Sequence[str], mean_ranks: FloatArray, order: Sequence[int], on_left: int) -> tuple[float, float]:
    """Longest axis, as the places of its ends, on which no line to a label goes through that label."""
    k = len(names)
    widths = [_width(_text(names[method], mean_ranks[method], left=i < on_left)) for i, method in enumerate(order)]
    ends = [_EDGE + 0.25, _WIDTH - _EDGE - 0.25]
    for _ in range(200):
        places = [ends[0] + (mean_ranks[method] - 1) / (k - 1) * (ends[1] - ends[0]) for method in order]
        clear = [
            all(x >= _EDGE + w + 0.05 for x, w in zip(places[:on_left], widths[:on_left], strict=True)),
            all(x <= _WIDTH - _EDGE - w - 0.05 for x, w in zip(places[on_left:], widths[on_left:], strict=True)),
        ]
        if all(clear) or ends[1] - ends[0] < 1:
            break
        ends = [ends[0] + (0 if clear[0] else 0.03), ends[1] - (0 if clear[1] else 0.03)]
    return ends[0], ends[1]


def _draw_critical_difference(figure: Figure, start: float, end: float, y: float, value: float) -> None:
    """Draw a bar as long as the critical difference; where it is longer than the figure, write it only."""
    ax = figure.axes[0]
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
