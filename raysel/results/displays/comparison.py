"""Figure of a comparison: curves over N, scores of the runs, differences to the reference."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from raysel.core.printing import short, short_middle
from raysel.results.comparison.result import ComparisonResult
from raysel.results.displays import drawing
from raysel.results.displays.display import Display
from raysel.results.scores import FoldValues
from raysel.results.texts import spaced

# Okabe and Ito's colours without the yellow, distinct with colour blindness; marker and dashes tell
# them apart in grey.
_COLOURS = (
    "#000000",
    drawing.BLUE,
    drawing.OUTLINE,
    drawing.GREEN,
    drawing.PINK,
    drawing.SKY,
    "#e69f00",
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1)),
    (0, (4, 1, 1, 1)),
)

#: What a score of a member with a curve refers to, by whether its number of features is chosen.
_SCORED_AT = {True: "at the chosen number of features", False: "mean over the curve"}

_WIDTH = 5.6  # inches, as all sizes here: readable at the width of a phone
_CURVES = 3.1  # height of the panel of curves, at least
_ROW = 0.27  # height of a member's row
_SPACE, _GAP = 0.16, 0.65  # between the panels of a row, and below the curves
_LABEL = 0.19  # height of a label beside the curves
_SMALL = 9.5  # points: size of all text but the title
_LETTER = 0.08  # width of a letter of a label
_LONGEST = 24  # letters of a label


@dataclass(frozen=True, eq=False)
class ShownMember:
    """A member of a comparison as the figure shows it."""

    label: str
    #: Test score of each run.
    scores: FoldValues
    #: Test scores for each number of features; empty if the member is not scored by numbers.
    by_n: Mapping[int, FoldValues]
    difference: tuple[float, float, float] | None


@dataclass(frozen=True, eq=False)
class ComparisonFigure(Display):
    """Scores of the members of a comparison, and their differences to the reference.

    If members are scored at two or more numbers of features, a panel shows their mean test scores
    as curves with the standard deviation over the runs, and all other members as horizontal lines.
    Below, a row for each member, the best first, shows its score in every run, their mean and
    standard deviation, and the difference to the reference.
    """

    key = "comparison"

    name: str
    metric: str
    members: Sequence[ShownMember]
    reference: str
    #: What the runs are, e.g. "5 outer folds".
    runs: str = ""
    #: Number of features that the scores of members with a curve refer to, as text.
    scored_at: str = ""
    missing: Sequence[str] = ()

    @classmethod
    def from_comparison(cls, comparison: ComparisonResult) -> Self:
        """Show all members of a comparison that have a result."""
        rows, members = comparison.rows, []
        for label, row in rows.items():
            difference = None
            if (pair := comparison.pairs.get(label)) is not None:
                difference = (pair.compared.mean, np.nan, np.nan)
                if pair.test:
                    difference = (pair.compared.mean, pair.test.lower, pair.test.upper)
            members.append(ShownMember(label, row.facts.test, row.by_n, difference))
        runs = ""
        if comparison.folds:
            runs = comparison.folds.describe()
        of_curves = {bool(row.chosen) for row in rows.values() if len(row.by_n) > 1}
        return cls(
            comparison.name,
            metric=spaced(comparison.metric),
            members=members,
            reference=comparison.reference,
            runs=runs,
            scored_at=" or ".join(_SCORED_AT[chosen] for chosen in sorted(of_curves, reverse=True)),
            missing=[one.label for one in comparison.members if one.label not in rows],
        )

    @property
    def title(self) -> str:
        return self.name

    @property
    def caption(self) -> str:
        caption = (
            f"Test {self.metric} of the methods over {self.runs}, each run a point, with mean and"
            f" SD, and their differences to {self.reference}."
        )
        if self._has_curves:
            caption += " Curves: means by the number of features."
        return caption

    @property
    def remarks(self) -> Sequence[str]:
        if not self.missing:
            return []
        return [f"Not shown, because they have no result: {', '.join(self.missing)}."]

    @property
    def _has_curves(self) -> bool:
        return any(len(member.by_n) > 1 for member in self.members)

    @property
    def _widest(self) -> float:
        """Width of the longest label in inches."""
        return min(_LONGEST, max(len(member.label) for member in self.members)) * _LETTER + 0.15

    @property
    def _below(self) -> list[str]:
        """Further lines of the label of the scores."""
        if not self._has_curves:
            return []
        # Wider than its panel, the label of the scores would run into that of the differences.
        return textwrap.wrap(self.scored_at, int(self._panel / _LETTER) + 2)

    @property
    def _panel(self) -> float:
        """Width of the panel of the scores and of that of the differences, in inches."""
        return (_WIDTH - self._widest - 0.1 - _SPACE - 0.27) / 2

    @property
    def _heights(self) -> tuple[float, float, float]:
        """Heights below the rows, of the rows and of the curves, in inches."""
        foot, rows = 0.68 + 0.16 * max(len(self._below) - 1, 0), _ROW * len(self.members) + 0.1
        if not self._has_curves:
            return foot, rows, 0.0
        return foot, rows, max(_CURVES, _LABEL * len(self.members) + 0.3)

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        foot, rows, curves = self._heights
        if self._has_curves:
            curves += _GAP
        return _WIDTH, foot + rows + 0.1 + curves

    def frame(self) -> pd.DataFrame:
        rows = []
        for member in self.members:
            difference = member.difference or [np.nan] * 3
            for n, values in [("", member.scores), *member.by_n.items()]:
                rows.append((member.label, n, values.mean, _spread(values), *difference))
        heads = ["label", "n_features", "mean", "sd", "difference", "lower", "upper"]
        return pd.DataFrame(rows, columns=heads)

    def draw(self, ax: Axes) -> None:
        ax.set_axis_off()
        foot, rows, curves = self._heights
        inner, panel = self._widest + 0.1, self._panel
        if curves:
            width = _WIDTH - 0.68 - self._widest - 0.4
            area = self._inset(ax, (0.68, foot + rows + _GAP, width, curves))
            _draw_curves(area, self.members, self.metric, curves)
        scored = self._inset(ax, (inner, foot, panel, rows))
        differing = self._inset(ax, (inner + panel + _SPACE, foot, panel, rows))
        ordered = sorted(self.members, key=lambda member: -member.scores.mean)
        _draw_scores(scored, ordered, "\n".join([f"test {self.metric}", *self._below]))
        _draw_differences(differing, ordered, self.reference)

    def _inset(self, ax: Axes, area: tuple[float, float, float, float]) -> Axes:
        """Add axes at a place given in inches: left, bottom, width, height."""
        left, bottom, wide, high = area
        width, height = self.size
        inset = ax.inset_axes((left / width, bottom / height, wide / width, high / height))
        drawing.clean_axes(inset)
        inset.tick_params(labelsize=_SMALL)
        return inset


def _draw_curves(ax: Axes, members: Sequence[ShownMember], score: str, height: float) -> None:
    numbers = sorted(set().union(*(member.by_n for member in members)))
    # Evenly spaced: they are steps, often of unequal width.
    places = {n: i for i, n in enumerate(numbers)}
    ends: list[tuple[float, float]] = []
    for i, member in enumerate(members):
        colour, marker, dashes = _style(i)
        shift = 0.24 * ((i + 0.5) / len(members) - 0.5)  # so that the bars do not cover each other
        if member.by_n:
            x = np.array([places[n] for n in member.by_n]) + shift
            means = np.array([values.mean for values in member.by_n.values()])
            spread = [_spread(values) for values in member.by_n.values()]
        else:
            n_before = sum(not other.by_n for other in members[:i])
            x = np.array([-0.3, len(numbers) - 0.68 - 0.05 * (n_before % 4)])
            means = np.full(2, member.scores.mean)
            spread = [0.0, _spread(member.scores)]
        look: Any = {"color": colour, "linestyle": dashes, "linewidth": 1.5, "zorder": 2}
        if member.by_n:
            look |= {"marker": marker, "markersize": 5, "zorder": 3}
        ax.errorbar(x, means, spread, elinewidth=0.7, capsize=2, **look)
        ends.append((float(x[-1]), float(means[-1])))
    ax.set_xlim(-0.4, len(numbers) - 0.6)
    ax.set_xticks(range(len(numbers)), list(map(str, numbers)))
    ax.set_xlabel("number of features", fontsize=_SMALL)
    ax.set_ylabel(f"test {score}", fontsize=_SMALL)
    drawing.clean_axes(ax, "y")
    _label_ends(ax, members, ends, height)


def _label_ends(
    ax: Axes, members: Sequence[ShownMember], ends: Sequence[tuple[float, float]], height: float
) -> None:
    """Write each curve's label beside its end, moved up or down where labels would overlap."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    wanted = np.array([(y - low) / (high - low) * height for _, y in ends])
    right = ax.get_xlim()[1]
    width = right + 0.4
    edge, text = right + 0.02 * width, right + 0.075 * width
    small: Any = {"fontsize": _SMALL, "va": "center", "parse_math": False, "clip_on": False}
    for i, y in enumerate(drawing.spread_out(wanted, _LABEL, height) / height):
        colour, marker, dashes = _style(i)
        look: Any = {"color": colour, "clip_on": False}
        member, (x, end) = members[i], ends[i]
        at = low + y * (high - low)
        ax.plot([x, edge, text], [end, at, at], linewidth=0.6, linestyle=":", **look)
        if member.by_n:
            ax.plot([text], [at], marker=marker, markersize=5, **look)
        else:
            ax.plot([edge, text + 0.015 * width], [at, at], linestyle=dashes, **look)
        ax.text(text + 0.03 * width, at, short_middle(member.label, _LONGEST), **small)


def _draw_scores(ax: Axes, ordered: Sequence[ShownMember], name: str) -> None:
    point: Any = {"color": "0.45", "alpha": 0.35, "markersize": 3.5, "markeredgewidth": 0}
    mean: Any = {"color": "0", "markersize": 4.5, "elinewidth": 1.2, "capsize": 2.5}
    for y, member in enumerate(ordered):
        scores = member.scores
        ax.plot(scores.array, np.full(len(scores.values), y), "o", **point)
        ax.errorbar(scores.mean, y, xerr=_spread(scores), fmt="o", **mean)
    labels = [short_middle(member.label, _LONGEST) for member in ordered]
    ax.set_yticks(range(len(ordered)), labels, fontsize=_SMALL, parse_math=False)
    ax.set_xlabel(name, fontsize=_SMALL)
    _finish_rows(ax, len(ordered))


def _draw_differences(ax: Axes, ordered: Sequence[ShownMember], reference: str) -> None:
    ax.axvline(0, color="0.4", linewidth=0.9)
    for y, member in enumerate(ordered):
        if member.difference is None:
            continue
        mean, lower, upper = member.difference
        if np.isfinite(lower):
            look: Any = {"color": drawing.BLUE, "alpha": 0.35, "solid_capstyle": "butt"}
            ax.plot([lower, upper], [y, y], linewidth=5, **look)
        ax.plot([mean], [y], marker="D", color=drawing.BLUE, markersize=3, linestyle="")
    if not any(member.difference for member in ordered):
        note: Any = {"fontsize": _SMALL, "color": "0.4", "ha": "center"}
        ax.text(0.5, 0.5, "no differences", transform=ax.transAxes, **note)
    ax.set_yticks([])
    label = f"difference to {short(reference, 14)}\n95 % interval"
    ax.set_xlabel(label, fontsize=_SMALL, parse_math=False)
    _finish_rows(ax, len(ordered))


def _finish_rows(ax: Axes, n_rows: int) -> None:
    ax.set_ylim(n_rows - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    drawing.clean_axes(ax, "x")
    for y in range(1, n_rows, 2):
        ax.axhspan(y - 0.5, y + 0.5, color="0.96", zorder=0)


def _style(i: int) -> tuple[str, str, str | tuple[int, tuple[int, ...]]]:
    """Colour, marker and dashes of the i-th member."""
    return _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)], _DASHES[i % len(_DASHES)]


def _spread(scores: FoldValues) -> float:
    """Standard deviation of scores, 0 of one."""
    if len(scores.values) == 1:
        return 0.0
    return scores.sd
