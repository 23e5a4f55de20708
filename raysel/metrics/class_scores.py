"""Scores of the classes or labels by a fitted classifier, as one matrix whatever its interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from raysel.arrays import FloatArray, LabelArray
from raysel.errors import DataError


def gives_class_scores(model: Any) -> bool:
    """Return whether a classifier, fitted or not, has scores of the classes."""
    return hasattr(model, "decision_function") or hasattr(model, "predict_proba")


def class_scores(model: Any, X: Any, n_classes: int) -> FloatArray:
    """Score the classes or labels by a classifier's ``decision_function``, else its ``predict_proba``.

    `X` is (n_samples, n_features); returns (n_samples, n_classes).
    """
    name = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    given: Any = getattr(model, name)(X)
    if isinstance(given, list):  # forests give the probabilities of each label without and with it
        given = [column[:, -1] for column in given] if name == "predict_proba" else given
        given = np.stack(given, axis=1)
    values: LabelArray = np.asarray(given, dtype=np.float64)
    if n_classes == 2 and (values.ndim == 1 or values.shape[1] == 1):
        column = values.reshape(-1)
        return np.stack([-column, column], axis=1)
    if values.ndim != 2 or values.shape[1] != n_classes:
        wrapped = type(getattr(model, "estimator", model)).__name__
        raise DataError(
            f"{wrapped}.{name} returned an array of shape {values.shape} for {n_classes} classes: "
            "mean_average_precision needs one score for each class; use a metric of the predictions."
        )
    return values
