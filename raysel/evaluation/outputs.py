"""Outputs of a fold's model for its test samples, as compact plain data, for curves."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.targets import find_target
from raysel.data.task_blocks import Samples
from raysel.numerics.classification import decision, gives_class_scores, probabilities

#: Values of an output that are recorded at most, of 5.3 bytes each: a journal must stay small.
MOST_VALUES: Final = 2**16
_NAMES: Final = ("truth", "decision_function", "predict_proba")


@dataclass(frozen=True)
class TestOutputs:
    """True labels of test samples and a model's outputs for them, in single precision."""

    __test__ = False  # no test of pytest

    #: Numbers of the true classes, shape (n_samples, 1), or an indicator, shape (n_samples,
    #: n_labels).
    truth: FloatArray
    #: ``decision_function`` and ``predict_proba``, those that the model has: of two classes the
    #: column of the second, shape (n_samples, 1); else one column for each class or label.
    values: Mapping[str, FloatArray]

    @classmethod
    def of(cls, model: Any, X: Samples, y: LabelArray) -> Self | None:
        """Compute the outputs of a fitted classifier; None if it has none, or too many.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        classes = np.asarray(getattr(model, "classes_", ()))
        n_values = len(y) * max(len(classes), 1)
        if not gives_class_scores(model) or not 0 < n_values <= MOST_VALUES:
            return None
        if not find_target(y).is_one_class:
            truth, columns = y, y.shape[1]
        elif np.isin(y, classes).all():
            truth = np.searchsorted(classes, y)[:, None]
            columns = 1 if len(classes) == 2 else len(classes)
        else:
            return None
        given: dict[str, FloatArray] = {}
        if hasattr(model, "decision_function"):
            given["decision_function"] = decision(model, X)
        if hasattr(model, "predict_proba"):
            given["predict_proba"] = probabilities(model, X)
        shaped = {name: _shaped(value, len(y), columns) for name, value in given.items()}
        known = {name: value for name, value in shaped.items() if value is not None}
        if not known:
            return None
        return cls(truth.astype(np.float64), known)

    def to_json(self) -> dict[str, Any]:
        """Return plain data as the journal holds them."""
        arrays = {"truth": self.truth, **self.values}
        return {"n": len(self.truth), **{name: _packed(array) for name, array in arrays.items()}}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Read the outputs from what `to_json` returned; a ValueError if they are damaged."""
        n = raw.get("n")
        if type(n) is not int or n < 1 or set(raw) - {"n", *_NAMES} or "truth" not in raw:
            raise ValueError("'outputs' has other keys than those of the outputs")
        arrays = {name: _unpacked(raw[name], n) for name in _NAMES if name in raw}
        return cls(arrays.pop("truth"), arrays)


def _shaped(values: FloatArray, n: int, columns: int) -> FloatArray | None:
    """An output as (n_samples, n_columns); None if it has another shape.

    That of two classes is one column.
    """
    values = values.reshape(n, -1)
    if columns == 1 and values.shape[1] == 2:
        values = values[:, 1:]
    if values.shape[1] != columns or np.isnan(values).any():
        return None
    return values


def _packed(values: FloatArray) -> str:
    with np.errstate(over="ignore"):
        single = np.nan_to_num(values.astype("<f4"))  # infinite ones are the largest
    return base64.b64encode(np.ascontiguousarray(single).tobytes()).decode()


def _unpacked(text: Any, n: int) -> FloatArray:
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(
            np.float64
        )
    except (ValueError, TypeError) as error:
        raise ValueError("'outputs' holds no numbers") from error
    if not len(values) or len(values) % n or not np.isfinite(values).all():
        raise ValueError(
            f"'outputs' holds {len(values)} values of {n} samples, or some are not finite"
        )
    return values.reshape(n, -1)
