"""Coefficients of a final model that is linear in the features, and their directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError
from raysel.evaluation.records import FINAL
from raysel.results.records import StudyRecords


class Coefficients(NamedTuple):
    """Coefficients of the scaled features in a final model."""

    #: One row a class, label or quantity, one row for two classes; shape (n_rows, d).
    values: FloatArray
    #: Names of the classes, labels or quantities.
    classes: Sequence[str]
    of_quantities: bool

    @classmethod
    def of(cls, records: StudyRecords) -> Coefficients | None:
        """Read the coefficients of a study's final model; None if it is not linear."""
        if not records.is_ranked or records.layout.is_multitask or not records.has_model:
            return None
        try:
            linear = linear_coefficients(records.fold_model(FINAL), len(records.feature_names))
        except DataError:  # the model file is not trusted, which a remark says, or damaged
            return None
        if linear is None:
            return None
        values, classes = linear
        of_quantities = records.predictions is not None
        if of_quantities:
            classes = list(records.classes) or ["the quantity"]
        if records.classes and len(records.classes) in (len(classes), len(values)):
            classes = list(records.classes)
        return cls(values, list(map(str, classes)), of_quantities)

    def directions(self) -> list[str]:
        """Return what larger values of each feature speak for: a class or a quantity.

        Of several rows the one with the largest coefficient counts; empty where all coefficients
        are 0.
        """
        rows = np.abs(self.values).argmax(axis=0)
        largest = self.values[rows, np.arange(self.values.shape[1])]
        return [
            self._direction(int(row), float(value))
            for row, value in zip(rows, largest, strict=True)
        ]

    def _direction(self, row: int, value: float) -> str:
        if not value:
            return ""
        if self.of_quantities:
            word = "larger" if value > 0 else "smaller"
            if len(self.values) == 1:
                return word
            return f"{word} {self.classes[row]}"
        if len(self.values) == 1 and len(self.classes) == 2:
            return f"for {self.classes[int(value > 0)]}"
        if value < 0:
            return f"against {self.classes[row]}"
        return f"for {self.classes[row]}"


def linear_coefficients(model: Any, n_features: int) -> tuple[FloatArray, list[Any]] | None:
    """Find the coefficients of the method, and their classes, in a fitted pipeline."""
    waiting: list[Any] = [model]
    if hasattr(model, "steps"):
        waiting = [model.steps[:2][-1][1]]
    while waiting:
        estimator = waiting.pop(0)
        values = getattr(estimator, "coef_", None)
        if (
            isinstance(values, np.ndarray)
            and values.ndim <= 2
            and values.shape[-1:] == (n_features,)
        ):
            rows = values.reshape(-1, n_features)
            return rows, list(getattr(estimator, "classes_", range(len(rows))))
        fitted = [
            (name, part) for name, part in sorted(vars(estimator).items()) if name.endswith("_")
        ]
        waiting += [part for _, part in fitted if isinstance(part, BaseEstimator)]
    return None
