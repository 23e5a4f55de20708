"""Predictions of samples by a fitted model, of which metrics are computed, of all or of some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.data.layouts import SEPARATOR
from raysel.numerics.metrics import Metric


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
        scores = self.metric.response != "predict" and np.ndim(self.output) == 2
        return int(self.output.shape[1]) if scores else 1

    def values(self, rows: IntArray | None = None) -> FloatArray:
        """Compute the metric of all samples or of some rows, for each task.

        Returns (n_tasks,).
        """
        y, output = (self.y, self.output) if rows is None else (self.y[rows], self.output[rows])
        if self.parts is None:
            return np.array([self.metric(y, output, self.classes)])
        masks = [mask if rows is None else mask[rows] for mask in self.parts.values()]
        return np.array(
            [
                self._of_part(name, y[mask], output[mask])
                for name, mask in zip(self.parts, masks, strict=True)
            ]
        )

    def _of_part(self, task: str, y: LabelArray, output: Any) -> float:
        if task:
            return _of_task(self.metric, task, y, output, self.classes)
        return self.metric(y, output, self.classes)


def _of_task(measure: Metric, name: str, y: LabelArray, output: Any, classes: Any) -> float:
    """Compute a metric of one task's samples and classes, as if no other task were there.

    `y` is (n_samples,), `output` (n_samples,) or (n_samples, n_classes), `classes` (n_classes,)
    those of all tasks.
    """
    own = np.array([str(label).startswith(f"{name}{SEPARATOR}") for label in classes])
    if measure.response != "predict":
        output = output[:, own]
    if measure.response in ("decision_function", "predict_proba"):
        output = measure.of_two(output, classes[own])
    return measure(y, output, classes[own])


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
