"""Curves of the classes' outputs on the outer folds' test samples: ROC, precision and recall,
calibration.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    auc,
    average_precision_score,
    brier_score_loss,
    precision_recall_curve,
    roc_curve,
)

from raysel.core.arrays import BoolArray, FloatArray
from raysel.core.printing import mean_and_sd, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.outputs import TestOutputs
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay
from raysel.results.numbers import StudyNumbers

#: Classes, or labels, that are drawn at most: those with the most samples, of equally many the
#: first.
_MOST_CLASSES = 6
_COLOURS = (drawing.BLUE, drawing.OUTLINE, drawing.GREEN, drawing.PINK, drawing.SKY, "0.35")
_BINS = 10


class Samples(NamedTuple):
    """Test samples of one class against the rest: which are of it, and what the model gives for
    it.
    """

    #: Name of the fold.
    of: str
    #: Shape (n_samples,).
    truth: BoolArray
    #: Shape (n_samples,).
    score: FloatArray

    @property
    def has_both(self) -> bool:
        """Whether some samples are of the class and some are not."""
        return bool(self.truth.any() and not self.truth.all())


@dataclass(frozen=True, eq=False)
class _ClassCurves(StudyDisplay):
    """One curve for each class, or label, against the rest: each fold thin, all samples pooled
    bold.
    """

    section = "confusion"
    size = (4.9, 4.1)
    lacks = "recorded no outputs of its models for the test samples, or they do not give it."
    #: Outputs that are drawn, the first that the models have.
    responses: ClassVar[Sequence[str]] = ("decision_function", "predict_proba")
    #: Letters and figure of what is below a curve, in the legend.
    summary: ClassVar[str]

    #: Output that is drawn.
    response: str
    #: Test samples of each class by its name, of one outer fold after the other.
    samples: dict[str, Sequence[Samples]]
    #: Number of classes, or labels, of which those with the most samples are drawn.
    n_classes: int
    has_labels: bool

    @classmethod
    def from_result(
        cls, result: StudyNumbers, ranking: FeatureRanking | None = None
    ) -> Self | None:
        """Show the outputs of the outer folds' models, if all folds recorded them."""
        recorded = {
            refit.fold: TestOutputs.from_json(refit.outputs)
            for refit in result.outer
            if refit.outputs
        }
        if not recorded or len(recorded) < len(result.outer):
            return None
        known = [
            name
            for name in cls.responses
            if all(name in outputs.values for outputs in recorded.values())
        ]
        if not known:
            return None
        names, several = (
            list(result.stored.study.classes),
            next(iter(recorded.values())).truth.shape[1] > 1,
        )
        columns = next(iter(recorded.values())).values[known[0]].shape[1]
        shown = range(columns) if columns > 1 else [1]
        samples: dict[str, Sequence[Samples]] = {}
        for column, number in enumerate(shown):
            samples[names[number]] = [
                Samples(
                    fold,
                    outputs.truth[:, column] == 1 if several else outputs.truth[:, 0] == number,
                    outputs.values[known[0]][:, column],
                )
                for fold, outputs in recorded.items()
            ]
        drawn = {name: each for name, each in samples.items() if _pooled(each).has_both}
        most = sorted(drawn, key=lambda name: -int(_pooled(drawn[name]).truth.sum()))[
            :_MOST_CLASSES
        ]
        if not most:
            return None
        kept = {name: each for name, each in drawn.items() if name in most}
        return cls(result.name, known[0], kept, len(samples), several)

    @staticmethod
    @abstractmethod
    def points(truth: BoolArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Abscissas and ordinates of a curve. `truth` and `score` are (n_samples,)."""

    @staticmethod
    @abstractmethod
    def figure_of(truth: BoolArray, score: FloatArray) -> float:
        """The number that summarises a curve. `truth` and `score` are (n_samples,)."""

    @property
    @abstractmethod
    def shows(self) -> str:
        """What the axes are, as the start of the caption."""

    @property
    def draws_folds(self) -> bool:
        """Whether each fold has a line of its own."""
        return True

    @property
    def _output(self) -> str:
        return "probabilities" if self.response == "predict_proba" else "decisions"

    @property
    def caption(self) -> str:
        n = max(len(_pooled(each).truth) for each in self.samples.values())
        kind = "label" if self.has_labels else "class"
        if self.n_classes == 1:
            name = short(next(iter(self.samples)), 24)
            what = f"{self.shows} of the {kind} {name}, the positive one"
        else:
            against = "" if self.has_labels else " against the rest"
            what = f"{self.shows} of each {kind}{against}"
        drawn, of = len(self.samples), self.n_classes
        left_out = "" if drawn == of else f" Drawn are {drawn} of {of}; no other has more samples."
        n_folds = len(next(iter(self.samples.values())))
        thin = "thin lines are the folds, bold ones" if self.draws_folds else "the lines are of"
        return (
            f"{what}, on the test samples of {n_folds} outer folds, which neither fit nor choice"
            f" has seen: {thin} all {n} samples, as if the {self._output} of the folds' models were"
            f" of one scale. {self.summary}, mean ± SD over the folds: {self._figures()}.{left_out}"
        )

    def _figures(self) -> str:
        parts = []
        for name, each in self.samples.items():
            values = [self.figure_of(one.truth, one.score) for one in each if one.has_both]
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
            shown = mean_and_sd(float(np.mean(values)), sd) if values else "none"
            parts.append(shown if self.n_classes == 1 else f"{short(name, 24)}: {shown}")
        return "; ".join(parts)

    @cached_property
    def _curves(self) -> Sequence[tuple[str, str, FloatArray, FloatArray]]:
        return [
            (name, one.of, *self.points(one.truth, one.score))
            for name, each in self.samples.items()
            for one in (*(each if self.draws_folds else ()), _pooled(each))
            if one.has_both
        ]

    def frame(self) -> pd.DataFrame:
        head = "label" if self.has_labels else "class"
        x, y = self.axes
        rows = [
            pd.DataFrame(
                {head: name, "samples": of, x.replace(" ", "_"): a, y.replace(" ", "_"): b}
            )
            for name, of, a, b in self._curves
        ]
        return pd.concat(rows, ignore_index=True)

    #: Names of the axes.
    axes: ClassVar[tuple[str, str]]

    def draw(self, ax: Axes) -> None:
        colours = dict(zip(self.samples, _COLOURS, strict=False))
        for name, of, x, y in self._curves:
            bold: Any = (
                {"linewidth": 2.0, "label": short(name, 24), "zorder": 3} if of == "pooled" else {}
            )
            style: Any = {"linewidth": 0.8, "alpha": 0.45, **bold}
            self.draw_curve(
                ax, x, y, color=colours[name], **({**style, "alpha": 1.0} if bold else style)
            )
        self.draw_chance(ax, colours)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_aspect("equal")
        ax.set_xlabel(self.axes[0])
        ax.set_ylabel(self.axes[1])
        drawing.clean_axes(ax)
        drawing.add_legend(ax)

    def draw_curve(self, ax: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
        """Draw one curve. `x` and `y` are (n_points,)."""
        ax.plot(x, y, **style)

    def draw_chance(self, ax: Axes, colours: dict[str, str]) -> None:
        """Draw where guesses lie."""
        ax.plot(
            [0, 1], [0, 1], color="0.55", linewidth=1.0, linestyle=(0, (1, 1.5)), label="guesses"
        )


@dataclass(frozen=True, eq=False)
class RocCurves(_ClassCurves):
    """True positive rate over the false positive rate as the threshold falls."""

    key = "roc"
    table = "roc"
    what = "ROC on the test samples"
    axes = ("false positive rate", "true positive rate")
    summary = "Area under the curve"

    @staticmethod
    def points(truth: BoolArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        false, true, _ = roc_curve(truth, score)
        return false, true

    @staticmethod
    def figure_of(truth: BoolArray, score: FloatArray) -> float:
        return float(auc(*RocCurves.points(truth, score)))

    @property
    def shows(self) -> str:
        return "True over false positive rate as the threshold falls (ROC)"


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurves(_ClassCurves):
    """Precision over recall as the threshold falls."""

    key = "precision_recall"
    table = "precision_recall"
    what = "precision and recall on the test samples"
    axes = ("recall", "precision")
    summary = "Average precision"

    @staticmethod
    def points(truth: BoolArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        precision, recall, _ = precision_recall_curve(truth, score, drop_intermediate=True)
        return recall, precision

    @staticmethod
    def figure_of(truth: BoolArray, score: FloatArray) -> float:
        return float(average_precision_score(truth, score))

    @property
    def shows(self) -> str:
        return "Precision over recall as the threshold falls"

    def draw_curve(self, ax: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
        ax.step(x, y, where="post", **style)

    def draw_chance(self, ax: Axes, colours: dict[str, str]) -> None:
        for number, (name, each) in enumerate(self.samples.items()):
            label: Any = {"label": "guesses"} if number == 0 else {}
            share, colour = (
                _pooled(each).truth.mean(),
                "0.55" if self.n_classes == 1 else colours[name],
            )
            ax.axhline(share, color=colour, linewidth=1.0, linestyle=(0, (1, 1.5)), **label)


@dataclass(frozen=True, eq=False)
class Calibration(_ClassCurves):
    """Share of the samples that are of the class, over the probability that the model gives it."""

    key = "calibration"
    table = "calibration"
    what = "calibration on the test samples"
    axes = ("mean probability", "share of samples")
    summary = "Brier score"
    responses = ("predict_proba",)

    @staticmethod
    def points(truth: BoolArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        share, probability = calibration_curve(
            truth, np.clip(score, 0, 1), n_bins=_BINS, strategy="uniform"
        )
        return probability, share

    @staticmethod
    def figure_of(truth: BoolArray, score: FloatArray) -> float:
        return float(brier_score_loss(truth, np.clip(score, 0, 1)))

    @property
    def draws_folds(self) -> bool:
        return (
            self.n_classes == 1
        )  # a fold's samples of one class of several are too few for tenths

    @property
    def shows(self) -> str:
        return "Share of the samples over their mean probability, in tenths of it,"

    def draw_curve(self, ax: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
        ax.plot(x, y, marker="o", markersize=4 if "label" in style else 2, **style)

    def draw_chance(self, ax: Axes, colours: dict[str, str]) -> None:
        ax.plot(
            [0, 1], [0, 1], color="0.55", linewidth=1.0, linestyle=(0, (1, 1.5)), label="calibrated"
        )


def _pooled(each: Sequence[Samples]) -> Samples:
    """The samples of all folds."""
    return Samples(
        "pooled", np.concatenate([s.truth for s in each]), np.concatenate([s.score for s in each])
    )
