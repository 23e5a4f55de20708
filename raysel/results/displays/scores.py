"""Figure of the scores over the number of features, or as rows where there is no such choice."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.arrays import FloatArray
from raysel.core.printing import mean_and_sd, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results import texts
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay, labelled_table
from raysel.results.facts import Facts
from raysel.results.scores import RANKED_BY, FoldValues

#: Colour, dashes and marker of the known references; others take those of the last.
_REFERENCES: dict[str, tuple[str, tuple[float, ...], str]] = {
    "all features": ("0.0", (6, 2), ""),
    "variance": (drawing.GREEN, (2, 1.2), "^"),
    "f_test": (drawing.PINK, (5, 1.5, 1, 1.5), "D"),
    "chance": ("0.45", (1, 1.5), ""),
}
_OTHER = (drawing.SKY, (3, 1, 1, 1, 1, 1), "v")
# References further below the curves than so many times their range are written only.
_FLATTENS = 2.5


#: Colour, marker and line of the study's own scores.
_BANDS: dict[str, tuple[str, str, str | tuple[int, tuple[float, ...]]]] = {
    "test": (drawing.BLUE, "o", "-"),
    "inner": (drawing.OUTLINE, "s", (0, (4, 1.5))),
}


class _End(NamedTuple):
    """Right end of the line of a reference."""

    name: str
    y: float
    colour: str


@dataclass(frozen=True, eq=False)
class ScoreCurve(StudyDisplay):
    """Scores of the outer folds' winners and references over the number of best features."""

    key = "scores"
    table = "scores"
    section = "scores"
    size = (5.1, 3.6)

    metric: str
    #: Mean and SD of inner and test score by number of features, as `Facts.curve`.
    curve: Mapping[str, Sequence[float]]
    #: Test score of each fold at its chosen number, or the mean over all.
    test: FoldValues
    #: Mean score of each reference by number of features, or one for all numbers.
    references: Mapping[str, Sequence[float]]
    #: Number of features that each fold's inner scores choose; empty if the score is the mean over
    #: all numbers.
    chosen: Sequence[int]

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the scores of a study, if it has several numbers of features."""
        if len(facts.curve["n_features"]) < 2:
            return None
        chosen: list[int] = []
        if facts.study.choose_n != "mean":
            chosen = [refit.n_features for refit in facts.outer if refit.n_features is not None]
        return cls(
            facts.name,
            metric=texts.spaced(facts.metric),
            curve=facts.curve,
            test=facts.test,
            references={name: one.curve for name, one in facts.references.items()},
            chosen=chosen,
        )

    @property
    def n_features(self) -> Sequence[int]:
        """Numbers of features, increasing."""
        return list(map(int, self.curve["n_features"]))

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"{self.metric} over the number of features"

    @property
    def caption(self) -> str:
        n_folds = len(self.test.values)
        folds = "one outer fold"
        if n_folds > 1:
            folds = f"{n_folds} outer folds"
        score = mean_and_sd(self.test.mean, self.test.sd)
        shown = (
            f"{texts.capitalized(self.metric)} of the outer folds' winners with their N best"
            f" features, mean and SD over {folds}. Neither fit nor choice has seen the test"
            " samples."
        )
        if not self.chosen:
            return f"{shown} Mean over all these N: test {self.metric} {score} (SD)."
        numbers = ", ".join(
            f"{n} ({count} folds)" if count > 1 else str(n)
            for n, count in sorted(Counter(self.chosen).items())
        )
        return (
            f"{shown} Circled: each outer fold at the N that its inner scores choose, N ="
            f" {numbers}; their mean ± SD is the test {self.metric}, {score}."
        )

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.curve)

    def draw(self, ax: Axes) -> None:
        x = np.array(self.n_features, dtype=float)
        drawing.scale_numbers(ax, self.n_features)
        self._draw_band(ax, "test", "test ± SD over outer folds")
        self._draw_band(ax, "inner", "inner ± SD over outer folds")
        if self.chosen:
            circle: Any = {"markersize": 10, "markerfacecolor": "none", "markeredgecolor": "0"}
            circle |= {"markeredgewidth": 1.1, "linestyle": "", "label": "a fold at its chosen N"}
            ax.plot(self.chosen, self.test.array, "o", zorder=5, **circle)
        below, ends = self._draw_references(ax, x)
        drawing.clean_axes(ax, "y")
        drawing.set_ticks(ax, self.n_features)
        ax.set_xlabel("N, number of best features that the estimator is given")
        ax.set_ylabel(self.metric, parse_math=False)
        low, high = ax.get_ylim()
        if below:
            low -= 0.09 * (high - low)
            text = f"below the axis: {', '.join(below)}"
            ax.text(0.01, 0.015, text, transform=ax.transAxes, color="0.35", parse_math=False)
        ax.set_ylim(low, high)
        _name_ends(ax, ends)
        drawing.add_legend(ax)

    def _draw_band(self, ax: Axes, name: str, label: str) -> None:
        """Draw the means of a score as a line, and the SD of several folds as a band."""
        colour, marker, line = _BANDS[name]
        x = np.array(self.n_features, dtype=float)
        mean, sd = np.array(self.curve[f"{name}_mean"]), np.array(self.curve[f"{name}_sd"])
        if np.isnan(mean).all():
            return
        if len(self.test.values) > 1:
            ax.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
        else:
            label = label.partition(" ±")[0]
        look: Any = {"color": colour, "marker": marker, "linestyle": line, "label": label}
        ax.plot(x, mean, markersize=5, linewidth=1.9, zorder=4, **look)

    def _draw_references(self, ax: Axes, x: FloatArray) -> tuple[list[str], list[_End]]:
        """Draw references as lines; return those too far below for that, and the others' ends."""
        own = np.array([*self.curve["test_mean"], *self.curve["inner_mean"]], dtype=np.float64)
        levels = own[np.isfinite(own)]
        lowest, highest = levels.min(initial=np.inf), levels.max(initial=-np.inf)
        lowest -= _FLATTENS * max(highest - lowest, 0.02)
        below: list[str] = []
        ends: list[_End] = []
        for name, means in self.references.items():
            words = short(RANKED_BY.get(name, name), 24)
            places, level = x, np.array(means, dtype=np.float64)
            if len(level) == 1:
                places, level = x[[0, -1]], np.repeat(level, 2)
            known = np.isfinite(level)
            places, level = places[known], level[known]
            if not len(level):
                continue
            if level.max() < lowest:
                below.append(f"{words} {mean_and_sd(float(level.mean()))}")
                continue
            colour, dashes, marker = _REFERENCES.get(name, _OTHER)
            look: Any = {"color": colour, "linestyle": (0, dashes), "marker": marker}
            ax.plot(places, level, markersize=4.5, linewidth=1.4, **look)
            ends.append(_End(words, float(level[-1]), colour))
        return below, ends


def _name_ends(ax: Axes, ends: Sequence[_End]) -> None:
    """Write the names of lines beside their right ends, on axes whose limits are final."""
    low, high = ax.get_ylim()
    wanted = np.array([(end.y - low) / (high - low) for end in ends])
    settings: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
    settings["parse_math"] = False
    for end, place in zip(ends, drawing.spread_out(wanted, 0.06, 1.0), strict=True):
        ax.annotate(end.name, (1.0, place), (6, 0), color=end.colour, **settings)


@dataclass(frozen=True, eq=False)
class ScoreRows(StudyDisplay):
    """Scores of a study without a choice of the number of features: a row for each kind."""

    key = "scores"
    table = "scores"
    section = "scores"

    metric: str
    #: Scores of the outer folds by the row's name.
    rows: Mapping[str, FoldValues]
    fold_names: Sequence[str]
    has_tasks: bool = False

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the scores of a study, unless it has several numbers of features."""
        if len(facts.curve["n_features"]) > 1:
            return None
        rows = {"test (unseen samples)": facts.test, "inner": facts.inner}
        rows |= {f"test, {name}": scores for name, scores in facts.by_task.items()}
        for name, reference in facts.references.items():
            rows[texts.reference_name(facts, name)] = reference.values
        return cls(
            facts.name,
            metric=texts.spaced(facts.metric),
            rows=rows,
            fold_names=[refit.fold for refit in facts.outer],
            has_tasks=bool(facts.by_task),
        )

    @property
    def what(self) -> str:  # type: ignore[override]
        return self.metric

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        lines = sum(len(textwrap.wrap(short(name, 60), 32)) for name in self.rows)
        return 5.6, 0.2 * lines + 0.12 * len(self.rows) + 0.7

    @property
    def caption(self) -> str:
        whose = f"{texts.capitalized(self.metric)} of the outer folds' winners"
        if self.has_tasks:
            whose += "; test is the mean of the tasks"
        return f"{whose}: mean (bar), SD (line) and each outer fold (circle)."

    def frame(self) -> pd.DataFrame:
        values = [row.values for row in self.rows.values()]
        return labelled_table("name", list(self.rows), values, self.fold_names)

    def draw(self, ax: Axes) -> None:
        for y, scores in enumerate(self.rows.values()):
            bar, line = ("0.75", "0.25") if y else (drawing.BLUE, drawing.OUTLINE)
            ax.barh(y, scores.mean, height=0.62, color=bar, zorder=1)
            if len(scores.values) > 1:
                look: Any = {"color": line, "capsize": 3, "linewidth": 1.6}
                ax.errorbar(scores.mean, y, xerr=scores.sd, **look)
            circles: Any = {"facecolors": "white", "edgecolors": "0.2", "linewidths": 0.8}
            ax.scatter(scores.array, np.full(len(scores.values), y), s=20, zorder=3, **circles)
        names = [textwrap.fill(short(name, 60), 32) for name in self.rows]
        drawing.name_rows(ax, names, longest=70)
        drawing.clean_axes(ax, "x")
        ax.set_xlabel(self.metric, parse_math=False)
