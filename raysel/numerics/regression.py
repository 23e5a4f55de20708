"""Metrics of predicted quantities; larger is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError


def out_of_sample_r2(
    y_true: FloatArray, y_pred: FloatArray, mean: FloatArray | None = None
) -> float:
    """R2 against the mean of the training samples, which has 0.

        1 - sum_i (y_i - p_i)^2 / sum_i (y_i - m)^2,   m the mean over the training samples

    scikit-learn's ``r2`` has the mean of the samples that are scored in its place, which no model
    could know. Of several quantities it is the mean of their R2.

    `y_true` and `y_pred` are (n_samples,) or (n_samples, n_quantities), `mean` () or
    (n_quantities,), that of y_true by default.
    """
    truth, predicted = _columns(y_true, y_pred)
    centre = truth.mean(axis=0) if mean is None else np.asarray(mean, dtype=np.float64).reshape(-1)
    error, total = ((truth - predicted) ** 2).sum(axis=0), ((truth - centre) ** 2).sum(axis=0)
    # Where all have the training mean, only predicting it is right.
    values = 1.0 - np.divide(error, total, out=(error > 0.0).astype(np.float64), where=total > 0.0)
    return float(values.mean())


def neg_rmse(y_true: FloatArray, y_pred: FloatArray) -> float:
    """Minus the root of the mean squared error, in units of y; the mean over several quantities."""
    truth, predicted = _columns(y_true, y_pred)
    return -float(np.sqrt(((truth - predicted) ** 2).mean(axis=0)).mean())


def neg_mae(y_true: FloatArray, y_pred: FloatArray) -> float:
    """Minus the mean absolute error, in units of y; the mean over several quantities."""
    truth, predicted = _columns(y_true, y_pred)
    return -float(np.abs(truth - predicted).mean())


def pearson(y_true: FloatArray, y_pred: FloatArray) -> float:
    """Pearson's correlation of quantity and prediction, 0 of constants; the mean over several."""
    return _mean_correlation(y_true, y_pred, lambda column: column)


def spearman(y_true: FloatArray, y_pred: FloatArray) -> float:
    """Spearman's correlation of quantity and prediction, 0 of constants; the mean of several."""
    return _mean_correlation(y_true, y_pred, rankdata)


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation; 0 where one of both is constant. `a` and `b` are (n_samples,)."""
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return 0.0
    a, b = (column / np.abs(column).max() for column in (a - a.mean(), b - b.mean()))
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _mean_correlation(
    y_true: FloatArray, y_pred: FloatArray, transform: Callable[[FloatArray], FloatArray]
) -> float:
    truth, predicted = _columns(y_true, y_pred)
    pairs = zip(truth.T, predicted.T, strict=True)
    return float(np.mean([correlation(transform(a), transform(b)) for a, b in pairs]))


def _columns(y_true: FloatArray, y_pred: FloatArray) -> tuple[FloatArray, FloatArray]:
    truth, predicted = np.asarray(y_true, dtype=np.float64), np.asarray(y_pred, dtype=np.float64)
    if truth.shape != predicted.shape:
        raise DataError(
            f"y_pred has the shape {predicted.shape} and y_true {truth.shape}: `predict` must"
            " return numbers in the shape of y."
        )
    return truth.reshape(len(truth), -1), predicted.reshape(len(truth), -1)
