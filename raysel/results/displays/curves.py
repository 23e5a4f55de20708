"""Curves of the classes' outputs on the outer test samples: ROC, precision-recall, calibration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
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
from raysel.results.facts import Facts
from raysel.results.scores import FoldValues

#: Most classes, or labels, that are drawn: those with the most samples, of equals the first.
_MOST_CLASSES = 6
_COLOURS = (drawing.BLUE, drawing.OUTLINE, drawing.GREEN, drawing.PINK, drawing.SKY, "0.35")
_BINS = 10
_POOLED = "pooled"
#: Dots of the line where guesses lie.
_DOTTED: Any = {"linewidth": 1.0, "linestyle": (0, (1, 1.5))}


class ClassOutputs(NamedTuple):
    """Test samples of one class against the rest: which are of it, and the model's outputs."""

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
    """A curve for each class or label against the rest: folds thin, all samples pooled bold."""

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
    samples: Mapping[str, Sequence[ClassOutputs]]
    #: Number of classes, or labels, of which those with the most samples are drawn.
    n_classes: int
    has_labels: bool

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the outputs of the outer folds' models, if all folds recorded them."""
        folds = [refit for refit in facts.outer if refit.outputs]
        if not folds or len(folds) < len(facts.outer):
            return None
        recorded = {refit.fold: TestOutputs.from_json(refit.outputs) for refit in folds}
        known = set.intersection(*(set(outputs.values) for outputs in recorded.values()))
        response = next((name for name in cls.responses if name in known), None)
        if response is None:
            return None
        samples = _by_class(recorded, response, list(facts.study.classes))
        drawn = {name: each for name, each in samples.items() if _pool(each).has_both}
        by_size = sorted(drawn, key=lambda name: -int(_pool(drawn[name]).truth.sum()))
        most = by_size[:_MOST_CLASSES]
        if not most:
            return None
        kept = {name: each for name, each in drawn.items() if name in most}
        return cls(
            facts.name,
            response=response,
            samples=kept,
            n_classes=len(samples),
            has_labels=_have_labels(recorded),
        )

    @staticmethod
    @abstractmethod
    def points(truth: BoolArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Abscissas and ordinates of a curve. `truth` and `score` are (n_samples,)."""

    @staticmethod
    @abstractmethod
    def summarise(truth: BoolArray, score: FloatArray) -> float:
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
    def _kind(self) -> str:
        return "label" if self.has_labels else "class"

    @property
    def _output(self) -> str:
        return "probabilities" if self.response == "predict_proba" else "decisions"

    @property
    def caption(self) -> str:
        n = max(len(_pool(each).truth) for each in self.samples.values())
        if self.n_classes == 1:
            name = short(next(iter(self.samples)), 24)
            whose = f"the {self._kind} {name}, the positive one"
        else:
            whose = "each label" if self.has_labels else "each class against the rest"
        drawn, of, left_out = len(self.samples), self.n_classes, ""
        if drawn < of:
            left_out = f" Drawn are {drawn} of {of}; no other has more samples."
        n_folds = len(next(iter(self.samples.values())))
        thin = "thin lines are the folds, bold ones" if self.draws_folds else "the lines are of"
        return (
            f"{self.shows} of {whose}, on the test samples of {n_folds} outer folds, which neither"
            f" fit nor choice has seen: {thin} all {n} samples, as if the {self._output} of the"
            f" folds' models were of one scale. {self.summary}, mean ± SD over the folds:"
            f" {self._figures()}.{left_out}"
        )

    def _figures(self) -> str:
        parts = []
        for name, each in self.samples.items():
            values = [self.summarise(one.truth, one.score) for one in each if one.has_both]
            shown = "none"
            if values:
                folds = FoldValues.of(values)
                shown = mean_and_sd(folds.mean, folds.sd)
            if self.n_classes > 1:
                shown = f"{short(name, 24)}: {shown}"
            parts.append(shown)
        return "; ".join(parts)

    @cached_property
    def _curves(self) -> Sequence[tuple[str, str, FloatArray, FloatArray]]:
        curves = []
        for name, each in self.samples.items():
            drawn = [_pool(each)]
            if self.draws_folds:
                drawn = [*each, *drawn]
            curves += [
                (name, one.of, *self.points(one.truth, one.score)) for one in drawn if one.has_both
            ]
        return curves

    def frame(self) -> pd.DataFrame:
        x, y = (name.replace(" ", "_") for name in self.axes)
        rows = [
            pd.DataFrame({self._kind: name, "samples": of, x: abscissas, y: ordinates})
            for name, of, abscissas, ordinates in self._curves
        ]
        return pd.concat(rows, ignore_index=True)

    #: Names of the axes.
    axes: ClassVar[tuple[str, str]]

    def draw(self, ax: Axes) -> None:
        colours = dict(zip(self.samples, _COLOURS, strict=False))
        for name, of, x, y in self._curves:
            style: Any = {"linewidth": 0.8, "alpha": 0.45}
            if of == _POOLED:
                style = {"linewidth": 2.0, "alpha": 1.0, "label": short(name, 24), "zorder": 3}
            self.draw_curve(ax, x, y, color=colours[name], **style)
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
        ax.plot([0, 1], [0, 1], color="0.55", label="guesses", **_DOTTED)


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
    def summarise(truth: BoolArray, score: FloatArray) -> float:
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
    def summarise(truth: BoolArray, score: FloatArray) -> float:
        return float(average_precision_score(truth, score))

    @property
    def shows(self) -> str:
        return "Precision over recall as the threshold falls"

    def draw_curve(self, ax: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
        ax.step(x, y, where="post", **style)

    def draw_chance(self, ax: Axes, colours: dict[str, str]) -> None:
        label = "guesses"
        if self.n_classes == 1:
            colours = dict.fromkeys(self.samples, "0.55")
        for name, each in self.samples.items():
            share = _pool(each).truth.mean()
            ax.axhline(share, color=colours[name], label=label, **_DOTTED)
            label = ""  # the legend has it once


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
    def summarise(truth: BoolArray, score: FloatArray) -> float:
        return float(brier_score_loss(truth, np.clip(score, 0, 1)))

    @property
    def draws_folds(self) -> bool:
        # A fold's samples of one class of several are too few for tenths.
        return self.n_classes == 1

    @property
    def shows(self) -> str:
        return "Share of the samples over their mean probability, in tenths of it,"

    def draw_curve(self, ax: Axes, x: FloatArray, y: FloatArray, **style: Any) -> None:
        ax.plot(x, y, marker="o", markersize=4 if "label" in style else 2, **style)

    def draw_chance(self, ax: Axes, colours: dict[str, str]) -> None:
        ax.plot([0, 1], [0, 1], color="0.55", label="calibrated", **_DOTTED)


def _have_labels(recorded: Mapping[str, TestOutputs]) -> bool:
    """Whether samples have several labels, which have a column each of their truth."""
    return next(iter(recorded.values())).truth.shape[1] > 1


def _by_class(
    recorded: Mapping[str, TestOutputs], response: str, names: Sequence[str]
) -> dict[str, list[ClassOutputs]]:
    """Divide the test samples of each fold into those of each class, or label, and the rest."""
    several = _have_labels(recorded)
    columns = next(iter(recorded.values())).values[response].shape[1]
    numbers = range(columns)
    if columns == 1:  # it is of the second of two classes
        numbers = range(1, 2)
    samples: dict[str, list[ClassOutputs]] = {}
    for column, number in enumerate(numbers):
        each = samples[names[number]] = []
        for fold, outputs in recorded.items():
            truth = outputs.truth[:, 0] == number
            if several:
                truth = outputs.truth[:, column] == 1
            each.append(ClassOutputs(fold, truth, outputs.values[response][:, column]))
    return samples


def _pool(each: Sequence[ClassOutputs]) -> ClassOutputs:
    """Return the samples of all folds."""
    truth = np.concatenate([one.truth for one in each])
    return ClassOutputs(_POOLED, truth, np.concatenate([one.score for one in each]))
