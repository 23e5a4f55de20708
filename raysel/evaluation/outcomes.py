"""Predictions of samples by a fitted model, of which metrics are computed, of all or of some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.layouts import SEPARATOR
from raysel.numerics.metrics import Metric

_ALL: Final = slice(None)


@dataclass(frozen=True)
class Measured:
    """Samples with what a metric takes of a model for them, of all or of some."""

    metric: Metric
    #: Labels; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    #: What the metric takes of the model; its first axis is of the samples.
    output: Any
    #: Classes of the model, or means of quantities over its training samples.
    classes: Any
    #: Mask of the samples with a label by task, of one task by an empty name; None where all
    #: samples are scored.
    parts: Mapping[str, BoolArray] | None = None

    @property
    def n_columns(self) -> int:
        """Columns of scores that the metric takes, e.g. one for each class; 1 for predictions."""
        if self.metric.response == "predict" or np.ndim(self.output) != 2:
            return 1
        return int(self.output.shape[1])

    def values(self, rows: IntArray | slice = _ALL) -> FloatArray:
        """Compute the metric of all samples or of some rows, for each task.

        Returns (n_tasks,).
        """
        y, output = self.y[rows], self.output[rows]
        if self.parts is None:
            return np.array([self.metric(y, output, self.classes)])
        masks = {name: mask[rows] for name, mask in self.parts.items()}
        return np.array(
            [self._score_task(name, y[mask], output[mask]) for name, mask in masks.items()]
        )

    def _score_task(self, name: str, y: LabelArray, output: Any) -> float:
        """Compute the metric of one task's samples and classes, as if no other task were there.

        `y` is (n_samples,), `output` (n_samples,) or (n_samples, n_classes).
        """
        if not name:
            return self.metric(y, output, self.classes)
        own = np.array([str(label).startswith(f"{name}{SEPARATOR}") for label in self.classes])
        classes = self.classes[own]
        if self.metric.response != "predict":
            output = output[:, own]
        if self.metric.response in ("decision_function", "predict_proba"):
            output = self.metric.take_positive(output, classes)
        return self.metric(y, output, classes)


@dataclass(frozen=True)
class Outcome:
    """Predictions of some samples and their metrics."""

    #: Predicted labels; shape (n_samples,) or (n_samples, n_labels).
    predicted: LabelArray
    #: What the metric is computed of.
    measured: Measured
    report: dict[str, FloatArray]

    @cached_property
    def scores(self) -> FloatArray:
        """Value of the metric; shape (1,) or (n_tasks,)."""
        return self.measured.values()
