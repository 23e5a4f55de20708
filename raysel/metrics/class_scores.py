"""Scores of the classes or labels by a fitted classifier, as one matrix whatever its interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from raysel.arrays import FloatArray, LabelArray
from raysel.errors import DataError


def gives_class_scores(model: Any) -> bool:
    """Return whether a classifier, fitted or not, has scores of the classes.

    Parameters
    ----------
    model : estimator
        Classifier.

    Returns
    -------
    bool
        True if it has ``decision_function`` or ``predict_proba``.
    """
    return hasattr(model, "decision_function") or hasattr(model, "predict_proba")


def class_scores(model: Any, X: Any, n_classes: int) -> FloatArray:
    """Score the classes or labels by a classifier's ``decision_function``, else its ``predict_proba``.

    Parameters
    ----------
    model : estimator
        Fitted classifier for which `gives_class_scores` is True.
    X : array-like of shape (n_samples, n_features), or TaskBlocks
        Samples.
    n_classes : int
        Number of classes, or of labels of an indicator.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Scores in the order of ``classes_``, or of the labels. One column of scores for two classes is that of the
        second class, and gets its negative as the score of the first.

    Raises
    ------
    DataError
        If the model's scores are not one for each class or label.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> class_scores(LinearSVC().fit(X, y), X[:3], 2).shape
    (3, 2)
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
