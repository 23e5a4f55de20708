"""Figures of predicted quantities and their residuals on the outer test samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay
from raysel.results.facts import Facts

_MARKERS = "os^Dv"
_COLOURS = (drawing.BLUE, drawing.OUTLINE, drawing.GREEN, drawing.PINK, drawing.SKY)
_UNNAMED = ("the quantity",)
_LACKS = "predicts classes, or recorded no predictions; this figure is of quantities."


@dataclass(frozen=True, eq=False)
class Predictions(StudyDisplay):
    """Predicted quantity over the true one."""

    key = "predictions"
    table = "predictions"
    section = "confusion"
    size = (4.6, 4.2)
    what = "predicted against true quantity"
    lacks = _LACKS

    #: True and predicted value of each test sample, shape (n_samples, n_quantities) each.
    true: FloatArray
    predicted: FloatArray
    #: Position of the outer fold that tested each sample; shape (n_samples,).
    folds: IntArray
    names: tuple[str, ...]

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the predictions of a study of quantities."""
        if (pairs := facts.records.predictions) is None:
            return None
        names = tuple(map(str, facts.records.classes)) or _UNNAMED
        counts = [len(refit.predictions) for refit in facts.outer]
        folds = np.repeat(np.arange(len(counts)), counts)
        return cls(
            facts.name, true=pairs[..., 0], predicted=pairs[..., 1], folds=folds, names=names
        )

    @property
    def caption(self) -> str:
        n, n_folds = len(self.true), int(self.folds.max()) + 1
        several = ""
        if len(self.names) > 1:
            several = "; each of several quantities in standard deviations from its mean"
        return (
            f"{n} test samples of the {n_folds} outer folds, each predicted by its fold's model,"
            f" which has not seen it{several}. On the line the prediction is right."
        )

    def _shown(self) -> tuple[FloatArray, FloatArray]:
        """True and predicted values as they are drawn: several quantities on one scale."""
        if len(self.names) == 1:
            return self.true, self.predicted
        mean, deviation = self.true.mean(axis=0), self.true.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        return (self.true - mean) / deviation, (self.predicted - mean) / deviation

    def frame(self) -> pd.DataFrame:
        table = pd.DataFrame({"outer_fold": self.folds})
        for i, name in enumerate(self.names):
            table[f"true {name}"] = self.true[:, i]
            table[f"predicted {name}"] = self.predicted[:, i]
        return table

    def draw(self, ax: Axes) -> None:
        true, predicted = self._shown()
        both = [true, predicted]
        low, high = float(np.min(both)), float(np.max(both))
        ax.plot([low, high], [low, high], color="0.4", linewidth=0.9)
        self._scatter(ax, true, predicted)
        ax.set_xlabel(self._axis("true"), parse_math=False)
        ax.set_ylabel(self._axis("predicted"), parse_math=False)

    def _axis(self, kind: str) -> str:
        if len(self.names) > 1:
            return f"{kind}, in standard deviations"
        if self.names == _UNNAMED:
            return f"{kind} value"
        return f"{kind} {short(self.names[0], 24)}"

    def _scatter(self, ax: Axes, x: FloatArray, y: FloatArray) -> None:
        for i, name in enumerate(self.names):
            colour, marker = _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
            look: Any = {"color": colour, "marker": marker, "alpha": 0.6, "linewidths": 0}
            ax.scatter(x[:, i], y[:, i], 12, label=short(name, 24), **look)
        if len(self.names) > 1:
            drawing.add_legend(ax)
        drawing.clean_axes(ax)


@dataclass(frozen=True, eq=False)
class Residuals(Predictions):
    """Residuals over the predicted quantity."""

    key = "residuals"
    table = "residuals"
    what = "residuals of the predictions"

    @property
    def caption(self) -> str:
        left = (self.true - self.predicted).mean(axis=0)
        means = ", ".join(f"{value:.3g}" for value in left)
        return (
            f"True less predicted value of the {len(self.true)} test samples of the outer folds"
            f" over the predicted one, on average {means}. A bend or a funnel says what the model"
            " misses."
        )

    def frame(self) -> pd.DataFrame:
        table = super().frame()
        for name in self.names:
            table[f"residual {name}"] = table[f"true {name}"] - table[f"predicted {name}"]
        return table

    def draw(self, ax: Axes) -> None:
        true, predicted = self._shown()
        ax.axhline(0, color="0.4", linewidth=0.9)
        self._scatter(ax, predicted, true - predicted)
        ax.set_xlabel(self._axis("predicted"), parse_math=False)
        ax.set_ylabel("true less predicted")
