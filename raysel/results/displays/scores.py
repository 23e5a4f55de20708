"""Figure of the scores over the number of features, or as rows where there is no such choice."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

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


@dataclass(frozen=True, eq=False)
class ScoreCurve(StudyDisplay):
    """Scores of the outer folds' winners and references over the number of best features."""

    key = "scores"
    table = "scores"
    section = "scores"
    size = (5.8, 3.8)

    metric: str
    #: Numbers of features, increasing.
    n_features: Sequence[int]
    #: Test scores, shape (n_folds, n_numbers).
    test: FloatArray
    #: Inner validation scores, of the same shape; or no columns if they were not recorded.
    inner: FloatArray
    #: Scores of each reference; shape (n_folds, n_numbers), or (n_folds, 1) where it has one for
    #: all numbers.
    references: Mapping[str, FloatArray]
    #: Number of features that each fold's inner scores choose; empty if the score is the mean over
    #: all numbers.
    chosen: Sequence[int]

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the scores of a study, if it has several numbers of features."""
        outer, numbers = facts.outer, [int(n) for n in facts.curve["n_features"]]
        if len(numbers) < 2:
            return None
        test = np.array([refit.test_scores for refit in outer], dtype=np.float64)
        inner = np.array([refit.inner_curve for refit in outer], dtype=np.float64)
        references = {}
        for name, reference in facts.references.items():
            rows = [refit.references[reference.recorded] for refit in outer]
            references[name] = np.array(rows, dtype=np.float64)
        chosen: list[int] = []
        if facts.study.choose_n != "mean":
            chosen = [refit.n_features for refit in outer if refit.n_features is not None]
        return cls(
            facts.name,
            metric=drawing.readable(facts.metric),
            n_features=numbers,
            test=test,
            inner=inner,
            references=references,
            chosen=chosen,
        )

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"{self.metric} over the number of features"

    @property
    def chosen_scores(self) -> FloatArray:
        """Test score of each fold at its chosen number, or the mean over all; (n_folds,)."""
        if not self.chosen:
            return np.nanmean(self.test, axis=1)  # NaN where the estimator fails
        columns = [list(self.n_features).index(n) for n in self.chosen]
        return self.test[np.arange(len(columns)), columns]

    @property
    def caption(self) -> str:
        folds = f"{len(self.test)} outer folds" if len(self.test) > 1 else "one outer fold"
        scores = self.chosen_scores
        sd = scores.std(ddof=1) if len(scores) > 1 else np.nan
        score = mean_and_sd(scores.mean(), sd)
        shown = (
            f"{texts.capitalized(self.metric)} of the outer folds' winners with their N best"
            " features: on the test samples (unseen by fit and choice) and on the inner validation"
            f" samples, mean and SD over {folds}."
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
        none = np.full(len(self.n_features), np.nan)
        table: dict[str, object] = {"n_features": list(self.n_features)}
        for name, rows in (("inner", self.inner), ("test", self.test)):
            table[f"{name}_mean"] = rows.mean(axis=0) if rows.size else none
            table[f"{name}_sd"] = rows.std(axis=0, ddof=1) if rows.size and len(rows) > 1 else none
        for name, rows in self.references.items():
            table[name] = np.broadcast_to(rows.mean(axis=0), none.shape)
        return pd.DataFrame(table)

    def draw(self, ax: Axes) -> None:
        x = np.array(self.n_features, dtype=float)
        drawing.scale_numbers(ax, self.n_features)
        _band(ax, x, self.test, (drawing.BLUE, "o", "-"), "test ± SD over outer folds")
        if self.inner.size:
            _band(ax, x, self.inner, (drawing.OUTLINE, "s", (0, (4, 1.5))), "inner validation ± SD")
        if self.chosen:
            circle: Any = {"markersize": 10, "markerfacecolor": "none", "markeredgecolor": "0"}
            circle |= {"markeredgewidth": 1.1, "linestyle": "", "label": "a fold at its chosen N"}
            ax.plot(self.chosen, self.chosen_scores, "o", zorder=5, **circle)
        below = self._draw_references(ax, x)
        drawing.clean_axes(ax, "y")
        drawing.set_ticks(ax, self.n_features)
        ax.set_xlabel("N, number of best features that the estimator is given")
        ax.set_ylabel(self.metric, parse_math=False)
        if below:
            low, high = ax.get_ylim()
            ax.set_ylim(low - 0.09 * (high - low), high)
            text = f"below the axis: {', '.join(below)}"
            ax.text(0.01, 0.015, text, transform=ax.transAxes, color="0.35", parse_math=False)
        drawing.add_legend(ax)

    def _draw_references(self, ax: Axes, x: FloatArray) -> list[str]:
        """Draw references as lines named at their ends; return those too far below for that."""
        own = np.concatenate([rows.mean(axis=0) for rows in (self.test, self.inner) if rows.size])
        levels = own[np.isfinite(own)]
        span = float(np.ptp(levels)) if levels.size else 0.0
        lowest = levels.min(initial=np.inf) - _FLATTENS * max(span, 0.02)
        below: list[str] = []
        ends: list[tuple[str, float, str]] = []
        for name, rows in self.references.items():
            places, level = x, rows.mean(axis=0)
            if len(level) == 1:
                places, level = x[[0, -1]], np.repeat(level, 2)
            known = np.isfinite(level)
            places, level = places[known], level[known]
            if not len(level):
                continue
            if level.max() < lowest:
                below.append(f"{short(drawing.readable(name), 24)} {level.mean():.3f}")
                continue
            colour, dashes, marker = _REFERENCES.get(name, _OTHER)
            look: Any = {"color": colour, "linestyle": (0, dashes), "marker": marker}
            ax.plot(places, level, markersize=4.5, linewidth=1.4, **look)
            ends.append((drawing.readable(name), float(level[-1]), colour))
        low, high = ax.get_ylim()
        ax.set_ylim(low, high)
        wanted = np.array([(y - low) / (high - low) for _, y, _ in ends])
        settings: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
        settings["parse_math"] = False
        spread = drawing.spread_out(wanted, 0.06, 1.0)
        for (label, _, colour), place in zip(ends, spread, strict=True):
            ax.annotate(short(label, 24), (1.0, place), (6, 0), color=colour, **settings)
        return below


@dataclass(frozen=True, eq=False)
class ScoreRows(StudyDisplay):
    """Scores of a study without a choice of the number of features: a row for each kind."""

    key = "scores"
    table = "scores"
    section = "scores"

    metric: str
    #: Scores of the outer folds by the row's name.
    rows: Mapping[str, Sequence[float]]
    fold_names: Sequence[str]
    has_tasks: bool = False

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the scores of a study, unless it has several numbers of features."""
        if len(facts.curve["n_features"]) > 1:
            return None
        rows = {
            "test (unseen samples)": facts.test.known_values,
            "inner validation": facts.inner.known_values,
        }
        rows |= {f"test, {name}": scores.known_values for name, scores in facts.by_task.items()}
        for name, reference in facts.references.items():
            rows[texts.reference_name(facts, name)] = reference.scores
        return cls(
            facts.name,
            metric=drawing.readable(facts.metric),
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
        tasks = "; test is the mean of the tasks" if self.has_tasks else ""
        return (
            f"{texts.capitalized(self.metric)} of the outer folds' winners{tasks}: mean (bar), SD"
            " (line) and each outer fold (circle)."
        )

    def frame(self) -> pd.DataFrame:
        return labelled_table("name", list(self.rows), self.rows.values(), self.fold_names)

    def draw(self, ax: Axes) -> None:
        for y, values in enumerate(self.rows.values()):
            scores = np.array(values, dtype=float)
            bar, line = ("0.75", "0.25") if y else (drawing.BLUE, drawing.OUTLINE)
            ax.barh(y, scores.mean(), height=0.62, color=bar, zorder=1)
            if len(scores) > 1:
                look: Any = {"color": line, "capsize": 3, "linewidth": 1.6}
                ax.errorbar(scores.mean(), y, xerr=scores.std(ddof=1), **look)
            circles: Any = {"facecolors": "white", "edgecolors": "0.2", "linewidths": 0.8}
            ax.scatter(scores, np.full(len(scores), y), s=20, zorder=3, **circles)
        names = [textwrap.fill(short(name, 60), 32) for name in self.rows]
        drawing.name_rows(ax, names, longest=70)
        drawing.clean_axes(ax, "x")
        ax.set_xlabel(self.metric, parse_math=False)


def _band(
    ax: Axes,
    x: FloatArray,
    rows: FloatArray,
    style: tuple[str, str, str | tuple[int, tuple[float, ...]]],
    label: str,
) -> None:
    """Draw the mean of rows as a line, and the standard deviation of several rows as a band."""
    colour, marker, line = style
    mean = rows.mean(axis=0)
    if len(rows) > 1:
        spread = rows.std(axis=0, ddof=1)
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    else:
        label = label.partition(" ±")[0]
    look: Any = {"color": colour, "marker": marker, "linestyle": line, "label": label}
    ax.plot(x, mean, markersize=5, linewidth=1.9, zorder=4, **look)
