"""Figures of the classes' confusion, or of each label's errors, on the outer test samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay, labelled_table
from raysel.results.facts import Facts

_MOST_WRITTEN = 60  # classes up to which counts are written into the cells
_LONGEST = 22  # letters of a class
_LACKS = "recorded no confusion: an earlier version of raysel ran it."
#: Note of a study whose score is not that of the models.
_CHOSEN = (
    " The models are those of each fold's chosen N; the study's score is a mean over several N."
)


@dataclass(frozen=True, eq=False)
class Confusion(StudyDisplay):
    """Confusion matrix: the share of each true class's samples as colour, their numbers as text."""

    key = "confusion"
    table = "confusion"
    section = "confusion"
    on_white = True
    what = "confusion of the classes"
    lacks = _LACKS

    #: Number of test samples by true and predicted class, shape (n_classes, n_classes).
    counts: IntArray
    classes: Sequence[str]
    n_folds: int
    note: str = ""

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the confusion of a study whose samples have one class each."""
        if (counts := facts.records.confusion) is None or facts.records.has_labels:
            return None
        note = ""
        if facts.chosen_n and not facts.has_chosen_n:
            note = _CHOSEN
        return cls(
            facts.name,
            counts=counts,
            classes=_names(facts, len(counts)),
            n_folds=len(facts.outer),
            note=note,
        )

    @property
    def caption(self) -> str:
        right, n = int(np.trace(self.counts)), int(self.counts.sum())
        caption = (
            f"Number of test samples by true and predicted class, {_over(self.n_folds)}: {right} of"
            f" {n} are right. The colour is the share of a true class."
        )
        if pairs := self._most_confused():
            caption += f" Most often confused: {pairs}."
        return caption + self.note

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        labels = 0.065 * min(_LONGEST, max(len(name) for name in self.classes))
        return self._side + 1.3 + labels, self._side + 0.55 + labels

    @property
    def _side(self) -> float:
        """Side length of the matrix in inches."""
        n = len(self.classes)
        return float(np.clip(0.34 * n, 1.8, max(4.7, min(0.16 * n, 9.0))))

    @property
    def shares(self) -> FloatArray:
        """Share of each predicted class among a true class's samples; 0 where it has none."""
        return self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)

    def frame(self) -> pd.DataFrame:
        return labelled_table("true", self.classes, self.counts, self.classes)

    def draw(self, ax: Axes) -> None:
        counts, shares, n = self.counts, self.shares, len(self.classes)
        cell = 72 * self._side / n  # in points
        image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        drawing.add_colour_bar(ax, image, "share of the true class")
        step = -(-n // int(72 * self._side / 6.5))  # a label needs about 6.5 points
        names = [short(name, _LONGEST) for name in self.classes][::step]
        turned = 90 if max(map(len, names)) > 2 or n > 30 else 0
        ax.set_xticks(range(0, n, step), names, rotation=turned, parse_math=False)
        ax.set_yticks(range(0, n, step), names, parse_math=False)
        ax.tick_params(labelsize=float(np.clip(cell / 1.5 * step, 4.5, 8.5)), length=2)
        if n <= _MOST_WRITTEN:
            texts = {place: f"{count}" for place, count in np.ndenumerate(counts) if count}
            drawing.write_cells(ax, texts, shares > 0.55, float(np.clip(cell / 2.9, 4.5, 9)))
            edges = np.arange(n + 1) - 0.5
            for draw_lines in (ax.vlines, ax.hlines):  # a tick for each takes ten times as long
                draw_lines(edges, -0.5, n - 0.5, color="0.88", linewidth=0.4)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")

    def _most_confused(self) -> str:
        """Describe the three largest counts of wrong predictions; empty if there are none."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        pairs = sorted(np.argwhere(wrong > 0).tolist(), key=lambda pair: -wrong[*pair])[:3]
        return ", ".join(
            f"{short(self.classes[row], 24)} as {short(self.classes[column], 24)} "
            f"({wrong[row, column]} of {self.counts[row].sum()})"
            for row, column in pairs
        )


@dataclass(frozen=True, eq=False)
class LabelErrors(StudyDisplay):
    """Samples with each label that are found or missed, false alarms, precision and recall."""

    key = "confusion"
    table = "confusion"
    section = "confusion"
    what = "errors of each label"
    lacks = _LACKS

    #: True negatives, false positives, false negatives and true positives of each label, shape
    #: (n_labels, 4).
    counts: IntArray
    labels: Sequence[str]
    n_folds: int

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the errors of a study whose samples have several labels."""
        if (counts := facts.records.confusion) is None or not facts.records.has_labels:
            return None
        return cls(facts.name, counts, _names(facts, len(counts)), len(facts.outer))

    @property
    def caption(self) -> str:
        n = int(self.counts[0].sum())
        return (
            "Test samples with each label that are found or missed, and false alarms (to the"
            f" left), {_over(self.n_folds)}, {n} samples for each label. Precision: share of true"
            " ones among the samples predicted to have the label. Recall: share of found ones"
            " among those that have it."
        )

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.6, 0.22 * len(self.labels) + 0.95

    def rates(self) -> tuple[FloatArray, FloatArray]:
        """Return precision and recall of each label; NaN where none is predicted, or has it."""
        _, alarms, missed, hits = self.counts.T
        with np.errstate(invalid="ignore"):  # 0 / 0 is NaN
            return hits / (hits + alarms), hits / (hits + missed)

    def frame(self) -> pd.DataFrame:
        heads = ["true_negatives", "false_positives", "false_negatives", "true_positives"]
        return labelled_table("label", self.labels, self.counts, heads)

    def draw(self, ax: Axes) -> None:
        _, alarms, missed, hits = self.counts.T
        places = np.arange(len(self.labels))
        ax.barh(places, hits, height=0.7, color=drawing.BLUE, label="found")
        grey: Any = {"color": "0.8", "edgecolor": "0.5", "linewidth": 0.5}
        ax.barh(places, missed, left=hits, height=0.7, label="missed", **grey)
        hatched: Any = {"color": "white", "edgecolor": drawing.OUTLINE, "linewidth": 0.8}
        hatched["hatch"] = "////"
        ax.barh(places, -alarms, height=0.7, label="false alarms", **hatched)
        ax.axvline(0, color="0", linewidth=0.8)
        drawing.name_rows(ax, self.labels, _LONGEST)
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        drawing.clean_axes(ax, "x")
        ax.set_xlabel("samples")
        side = ax.secondary_yaxis("right")
        pairs = zip(*self.rates(), strict=True)
        texts = ["   ".join(drawing.cell(rate, ".2f") for rate in pair) for pair in pairs]
        side.set_yticks(places, texts)
        side.tick_params(length=0, labelsize=drawing.SMALL)
        side.spines[:].set_visible(False)
        side.set_ylabel("precision, recall")
        drawing.add_legend(ax)


def _names(facts: Facts, n: int) -> list[str]:
    return [str(name) for name in facts.records.classes or range(n)]


def _over(n_folds: int) -> str:
    if n_folds == 1:
        return "of one outer fold"
    return f"summed over the {n_folds} outer folds"
