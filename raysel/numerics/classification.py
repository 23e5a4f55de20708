"""Classes of labels, and outputs of a classifier as arrays of one form whatever its interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError


def distinct_classes(y: ArrayLike) -> tuple[LabelArray, IntArray]:
    """Find the classes of labels, and number them in their order.

    `y` is (n_samples,); returns `classes` (n_classes,), `codes` (n_samples,).
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!s}); at least two are needed.")
    return classes, codes


def distance_differences(nearest: FloatArray) -> FloatArray:
    """Score each class: distance to another class minus that to its own.

        s_r(x) = min_(q != r) d_q(x) - d_r(x)

    The largest score is that of the class of the nearest sample. Unlike -d_r(x), the scores of a
    class are comparable across samples: a sample that is far from all classes is no worse than one
    that is near to all.

    `nearest` is (n_samples, n_classes); returns (n_samples, n_classes).
    """
    rows = np.arange(len(nearest))
    nearest_class = nearest.argmin(axis=1)
    first_two = np.partition(nearest, 1, axis=1)
    others = np.repeat(first_two[:, :1], nearest.shape[1], axis=1)
    others[rows, nearest_class] = first_two[:, 1]
    return others - nearest


def gives_class_scores(model: Any) -> bool:
    """Return whether a classifier, fitted or not, has scores of the classes."""
    return hasattr(model, "decision_function") or hasattr(model, "predict_proba")


def class_scores(model: Any, X: Any, n_classes: int) -> FloatArray:
    """Score the classes or labels by ``decision_function``, else by ``predict_proba``.

    `X` is (n_samples, n_features); returns (n_samples, n_classes).
    """
    values = decision(model, X)
    if n_classes == 2 and (values.ndim == 1 or values.shape[1] == 1):
        column = values.reshape(-1)
        return np.stack([-column, column], axis=1)
    if values.ndim != 2 or values.shape[1] != n_classes:
        name = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
        wrapped = type(getattr(model, "estimator", model)).__name__
        raise DataError(
            f"{wrapped}.{name} returned an array of shape {values.shape} for {n_classes} classes: "
            "the metric needs one score for each class; use a metric of the predictions."
        )
    return values


def decision(model: Any, X: Any) -> FloatArray:
    """Return a classifier's ``decision_function``, else its ``predict_proba``.

    `X` is (n_samples, n_features); returns (n_samples,) or (n_samples, n_columns).
    """
    if not hasattr(model, "decision_function"):
        return probabilities(model, X)
    given: Any = model.decision_function(X)
    if isinstance(given, list):
        given = np.stack(given, axis=1)
    return np.asarray(given, dtype=np.float64)


def probabilities(model: Any, X: Any) -> FloatArray:
    """Return a classifier's ``predict_proba``, of several labels that of each label.

    `X` is (n_samples, n_features); returns (n_samples, n_classes) or (n_samples, n_labels).
    """
    given: Any = model.predict_proba(X)
    if isinstance(given, list):  # forests give the probabilities of each label without and with it
        given = np.stack([column[:, -1] for column in given], axis=1)
    return np.asarray(given, dtype=np.float64)
