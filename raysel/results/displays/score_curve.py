"""Figure of the score over the number of features, with the references and the number that each fold chooses."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.results.displays.style import (
    BLUE,
    GREEN,
    OUTLINE,
    PINK,
    SKY,
    SMALL,
    clean_axes,
    headed_figure,
    in_words,
    mean_and_sd,
    plain_legend,
    some_ticks,
    spread_out,
)

#: Colour, dashes and marker of the known references; others take those of the last.
_REFERENCES: dict[str, tuple[str, tuple[float, ...], str]] = {
    "all features": ("0.0", (6, 2), ""),
    "variance": (GREEN, (2, 1.2), "^"),
    "f_test": (PINK, (5, 1.5, 1, 1.5), "D"),
    "chance": ("0.45", (1, 1.5), ""),
}
_OTHER = (SKY, (3, 1, 1, 1, 1, 1), "v")
_HEIGHT, _WIDTH, _ROW = 3.9, 7.2, 0.3  # inches


def plot_score_curve(
    n_features: Sequence[int],
    test: ArrayLike,
    inner: ArrayLike,
    ax: Axes,
    *,
    metric: str = "accuracy",
    references: Mapping[str, ArrayLike] | None = None,
    chosen: Sequence[int] = (),
) -> Axes:
    """Draw mean test and inner score over the number of features, with the standard deviation over the outer folds."""
    x, scores, validation = np.array(n_features, dtype=float), _rows(test), _rows(inner)
    if x[-1] > 12 * x[0]:
        ax.set_xscale("log")
    _band(ax, x, scores, BLUE, "o", "-", "test ± SD over outer folds")
    if validation.size:
        _band(ax, x, validation, OUTLINE, "s", (0, (4, 1.5)), "inner validation ± SD")
    if chosen:
        columns = [list(n_features).index(n) for n in chosen]
        own = scores[np.arange(len(chosen)), columns]
        ax.plot(
            chosen,
            own,
            "o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor="0",
            markeredgewidth=1.1,
            zorder=5,
            linestyle="",
            label="a fold at its chosen N",
        )
    ends: list[tuple[str, float, str]] = []
    drawn, below = _visible(references or {}, [scores, validation])
    for name, values in drawn.items():
        means, (colour, dashes, marker) = values.mean(axis=0), _REFERENCES.get(name, _OTHER)
        across = np.array([x[0], x[-1]]) if len(means) == 1 else x
        level = np.repeat(means, 2) if len(means) == 1 else means
        ax.plot(across, level, color=colour, linestyle=(0, dashes), marker=marker, markersize=4.5, linewidth=1.4)
        ends.append((in_words(name), float(level[-1]), colour))
    clean_axes(ax, "y")
    ticks = some_ticks(list(n_features), ax)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{n:d}" for n in ticks])
    ax.set_xlabel("N, number of best features that the classifier is given", fontsize=SMALL)
    ax.set_ylabel(in_words(metric), fontsize=SMALL, parse_math=False)
    if below:
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.09 * (high - low), high)
        told = ", ".join(f"{in_words(name)} {values.mean():.3f}" for name, values in below.items())
        ax.text(
            0.01,
            0.015,
            f"below the axis: {told}",
            transform=ax.transAxes,
            fontsize=SMALL,
            color="0.35",
            parse_math=False,
        )
    _label_ends(ax, ends)
    plain_legend(ax, ncols=3)
    return ax


def plot_score_rows(rows: Mapping[str, ArrayLike], ax: Axes, *, metric: str = "accuracy") -> Axes:
    """Draw a row for each named set of scores: their mean as a bar, their standard deviation and each score."""
    for y, values in enumerate(rows.values()):
        scores = np.ravel(np.asarray(values, dtype=float))
        ax.barh(y, scores.mean(), height=0.62, color=BLUE if y == 0 else "0.75", zorder=1)
        if len(scores) > 1:
            ax.errorbar(
                scores.mean(), y, xerr=scores.std(ddof=1), color=OUTLINE if y == 0 else "0.25", capsize=3, linewidth=1.6
            )
        ax.scatter(
            scores, np.full(len(scores), y), s=20, facecolors="white", edgecolors="0.2", linewidths=0.8, zorder=3
        )
    ax.set_yticks(range(len(rows)), [textwrap.fill(short(name, 60), 32) for name in rows], parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    clean_axes(ax, "x")
    ax.set_xlabel(f"{in_words(metric)} (bar: mean, line: ± SD, circles: outer folds)", fontsize=SMALL, parse_math=False)
    return ax


def score_curve_figure(
    n_features: Sequence[int],
    test: ArrayLike,
    inner: ArrayLike,
    *,
    name: str,
    metric: str = "accuracy",
    references: Mapping[str, ArrayLike] | None = None,
    chosen: Sequence[int] = (),
    parts: Sequence[str] = (),
    remarks: Sequence[str] = (),
) -> Figure:
    """Draw the scores over the number of features, or as one row each where there is no choice among several."""
    scores = _rows(test)
    folds = f"{len(scores)} outer folds" if len(scores) > 1 else "one outer fold"
    word = in_words(metric)
    if len(n_features) < 2:
        return _rows_figure(n_features, scores, _rows(inner), name, metric, folds, references or {}, parts, remarks)
    facts = [f"{word} of each outer fold's winner with its N best features; mean over {folds}"]
    if chosen:
        own = scores[np.arange(len(chosen)), [list(n_features).index(n) for n in chosen]]
        counted = sorted(Counter(chosen).items())
        told = ", ".join(f"{n}" + (f"\u00a0({count}\u00a0folds)" if count > 1 else "") for n, count in counted)
        facts.append(
            f"at the N that the inner scores of each fold choose: test {word} {mean_and_sd(own)}; N\u00a0=\u00a0{told}"
        )
    else:
        facts.append(f"mean over all these N: test {word} {mean_and_sd(scores.mean(axis=1))}")
    figure = headed_figure(_WIDTH, _HEIGHT, f"{short(name, 36)}: {word} over the number of features", facts, remarks)
    plot_score_curve(n_features, scores, inner, figure.subplots(), metric=metric, references=references, chosen=chosen)
    return figure


def _rows_figure(
    n_features: Sequence[int],
    scores: FloatArray,
    inner: FloatArray,
    name: str,
    metric: str,
    folds: str,
    references: Mapping[str, ArrayLike],
    parts: Sequence[str],
    remarks: Sequence[str],
) -> Figure:
    at = f"the {n_features[0]} best features" if len(n_features) else "the method's own prediction"
    test = scores.mean(axis=1)
    rows: dict[str, ArrayLike] = {"test (unseen samples)": test}
    if inner.size:
        rows["inner validation"] = inner.mean(axis=1)
    if len(parts) > 1:
        rows |= {f"test, {part}": scores[:, i] for i, part in enumerate(parts)}
    rows |= {in_words(key): _rows(values).mean(axis=1) for key, values in references.items()}
    of = ", mean of the tasks" if len(parts) > 1 else ""
    facts = [f"with {at}, over {folds}; test {in_words(metric)}{of}: {mean_and_sd(test)}"]
    figure = headed_figure(_WIDTH, _ROW * len(rows) + 0.75, f"{short(name, 40)}: {in_words(metric)}", facts, remarks)
    plot_score_rows(rows, figure.subplots(), metric=metric)
    return figure


def _rows(values: ArrayLike) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    return found if found.ndim == 2 else found.reshape(len(found), found.size // max(len(found), 1))


def _band(
    ax: Axes,
    x: FloatArray,
    rows: FloatArray,
    colour: str,
    marker: str,
    line: str | tuple[int, tuple[float, ...]],
    label: str,
) -> None:
    """Draw the mean of rows as a line, and their standard deviation as a band if there are several rows."""
    mean = rows.mean(axis=0)
    if len(rows) > 1:
        spread = rows.std(axis=0, ddof=1)
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    else:
        label = label.partition(" ±")[0]
    ax.plot(x, mean, color=colour, marker=marker, markersize=5, linestyle=line, linewidth=1.9, label=label, zorder=4)


def _visible(
    references: Mapping[str, ArrayLike], main: Sequence[FloatArray]
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Divide references into those near the curves and those so far below that they would flatten the curves."""
    rows = {name: _rows(values) for name, values in references.items()}
    levels = np.concatenate([values.mean(axis=0) for values in main if values.size])
    reach = max(float(np.ptp(levels)), 0.02)
    below = {name: v for name, v in rows.items() if v.mean(axis=0).max() < levels.min() - 2.5 * reach}
    return {name: v for name, v in rows.items() if name not in below}, below


def _label_ends(ax: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Write the references' names beside the ends of their lines, moved apart where they would overlap."""
    if not ends:
        return
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    wanted = np.array([(y - low) / (high - low) for _, y, _ in ends])
    for (label, _, colour), place in zip(ends, spread_out(wanted, 0.06, 1.0), strict=True):
        ax.annotate(
            short(label, 24),
            (1.0, place),
            (6, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=SMALL,
            parse_math=False,
        )
