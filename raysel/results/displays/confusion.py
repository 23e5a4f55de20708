"""Figure of the confusion of the classes, or of the errors of each label, on the outer folds' test samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.results.displays.style import BLUE, OUTLINE, SMALL, clean_axes, headed_figure, plain_legend

_MOST_WRITTEN = 60  # classes up to which counts are written into the cells
_LONGEST = 22  # letters of a class


def row_shares(counts: ArrayLike) -> FloatArray:
    """Return the share of each predicted class among the samples of each true class; 0 for a class without samples."""
    numbers = np.asarray(counts, dtype=np.float64)
    sums = numbers.sum(axis=1, keepdims=True)
    return np.divide(numbers, sums, out=np.zeros_like(numbers), where=sums > 0)


def plot_confusion(counts: ArrayLike, classes: Sequence[object], ax: Axes, *, side: float | None = None) -> Axes:
    """Draw a confusion matrix: the share of each true class's samples as colour, their numbers as text."""
    numbers, shares = np.asarray(counts, dtype=np.int64), row_shares(counts)
    n = len(classes)
    side = _side(n) if side is None else side
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.5 / side), aspect=22, anchor=(0, 1))
    bar.set_label("share of the true class's samples", fontsize=SMALL)
    size = float(np.clip(72 * side / n / 2.9, 4.5, 9))
    for row, column in zip(*np.nonzero(numbers), strict=True) if n <= _MOST_WRITTEN else ():
        colour = "1" if shares[row, column] > 0.55 else "0"
        ax.text(column, row, f"{numbers[row, column]}", ha="center", va="center", fontsize=size, color=colour)
    step = -(-n // int(72 * side / 6.5))  # a label needs about 6.5 points
    names = [short(str(name), _LONGEST) for name in classes][::step]
    text = float(np.clip(72 * side / n / 1.5 * step, 4.5, 9))
    ax.set_xticks(range(0, n, step), names, rotation=90 if max(map(len, names)) > 2 or n > 30 else 0, parse_math=False)
    ax.set_yticks(range(0, n, step), names, parse_math=False)
    ax.tick_params(labelsize=text, length=2)
    if n <= _MOST_WRITTEN:
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.88", linewidth=0.4)
        ax.tick_params(which="minor", length=0)
    ax.set_xlabel("predicted class", fontsize=SMALL)
    ax.set_ylabel("true class", fontsize=SMALL)
    return ax


def plot_label_errors(counts: ArrayLike, labels: Sequence[object], ax: Axes) -> Axes:
    """Draw for each label the numbers of samples that have it and are found or missed, and of false alarms."""
    _, false_alarms, missed, found = np.asarray(counts, dtype=np.int64).T
    places = np.arange(len(labels))
    ax.barh(places, found, height=0.7, color=BLUE, label="found")
    ax.barh(places, missed, left=found, height=0.7, color="0.8", edgecolor="0.5", linewidth=0.5, label="missed")
    ax.barh(
        places,
        -false_alarms,
        height=0.7,
        color="white",
        edgecolor=OUTLINE,
        hatch="////",
        linewidth=0.8,
        label="false alarms",
    )
    ax.axvline(0, color="0", linewidth=0.8)
    ax.set_yticks(places, [short(str(name), _LONGEST) for name in labels], parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    clean_axes(ax, "x")
    ax.set_xlabel("samples: with the label to the right, without it to the left", fontsize=SMALL)
    plain_legend(ax)
    return ax


def confusion_figure(
    counts: ArrayLike,
    classes: Sequence[object],
    *,
    name: str,
    n_folds: int,
    multilabel: bool = False,
    remarks: Sequence[str] = (),
) -> Figure:
    """Draw how the classes are confused on the outer folds' test samples, or the errors of each label."""
    numbers = np.asarray(counts, dtype=np.int64)
    folds = f"test samples of {n_folds} outer folds" if n_folds > 1 else "test samples of one outer fold"
    if multilabel:
        return _label_figure(numbers, classes, name, folds, remarks)
    right, all_ = int(np.trace(numbers)), int(numbers.sum())
    facts = [f"{all_} {folds}, each predicted by the model that its fold's training samples gave: {right} right"]
    if worst := _most_confused(numbers, classes):
        facts.append(f"most often confused: {worst}")
    side = _side(len(classes))
    figure = headed_figure(
        max(side + 1.9, 5.6), side + 0.9, f"{short(name, 36)}: confusion of the classes", facts, remarks
    )
    plot_confusion(numbers, classes, figure.subplots())
    return figure


def _label_figure(numbers: IntArray, labels: Sequence[object], name: str, folds: str, remarks: Sequence[str]) -> Figure:
    total = int(numbers[0].sum()) if len(numbers) else 0
    facts = [f"{total} {folds}; precision is found / (found + false alarms), recall is found / (found + missed)"]
    height = 0.25 * len(labels) + 1.0
    figure = headed_figure(8.6, height, f"{short(name, 40)}: errors of each label", facts, remarks)
    axes, rates = figure.subplots(1, 2, sharey=True, width_ratios=[1.7, 1])
    plot_label_errors(numbers, labels, axes)
    _, false_alarms, missed, found = numbers.T
    places = np.arange(len(labels))
    for others, marker, colour, word in ((false_alarms, "D", OUTLINE, "precision"), (missed, "o", BLUE, "recall")):
        known = found + others > 0
        shares = np.divide(found, found + others, out=np.full(len(found), np.nan), where=known)
        rates.plot(shares[known], places[known], marker, color=colour, markersize=5.5, linestyle="", label=word)
        for place in places[~known]:
            rates.text(
                0.3 if word == "precision" else 0.75,
                place,
                f"no {word}",
                fontsize=7.5,
                color="0.45",
                va="center",
                ha="center",
            )
    rates.set_xlim(-0.03, 1.03)
    clean_axes(rates, "x")
    rates.set_xlabel("share", fontsize=SMALL)
    plain_legend(rates)
    return figure


def _side(n_classes: int) -> float:
    """Side length of the matrix in inches."""
    return float(np.clip(0.42 * n_classes, 2.4, 4.6) if n_classes <= 16 else np.clip(0.24 * n_classes, 4.6, 10.0))


def _most_confused(numbers: IntArray, classes: Sequence[object]) -> str:
    """The three largest off-diagonal counts in words; empty if there is none above 0."""
    wrong = numbers - np.diag(np.diag(numbers))
    order = np.argsort(-wrong, axis=None, kind="stable")[:3]
    told = []
    for row, column in zip(*np.unravel_index(order, wrong.shape), strict=True):
        if wrong[row, column] > 0:
            true, other = short(str(classes[row]), 24), short(str(classes[column]), 24)
            told.append(f"{true} as {other} ({wrong[row, column]} of {numbers[row].sum()})")
    return ", ".join(told)
