"""Mean average precision: quality of the order in which the scores of each class put the samples."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray, LabelArray
from raysel.errors import DataError


def average_precision(y_true: LabelArray, y_score: FloatArray) -> FloatArray:
    """Average precision of each class or label, as scikit-learn's ``average_precision_score``.

    With the samples in the order of their scores, R_t and P_t recall and precision of those whose score is at least
    the t-th distinct score, so that tied samples count as one group:

        AP = sum_t (R_t - R_(t-1)) P_t

    All classes are computed at once, which for 40 classes is much faster than scikit-learn's function, whose checks
    cost more than the sorting.

    `y_true` and `y_score` are (n_samples, n_classes); returns (n_classes,).
    """
    if y_true.ndim != 2 or y_true.shape != np.shape(y_score):
        raise DataError(
            f"y_score has the shape {np.shape(y_score)} and y_true {y_true.shape}: give one score for each sample and "
            "each class or label."
        )
    if np.isnan(y_score).any():
        raise DataError(f"y_score holds {int(np.isnan(y_score).sum())} values that are NaN; give numbers.")
    n_samples = len(y_true)
    order = np.argsort(-y_score, axis=0, kind="stable")
    sorted_scores = np.take_along_axis(y_score, order, axis=0)
    hits = np.take_along_axis(np.asarray(y_true, dtype=np.float64), order, axis=0)
    precision = np.cumsum(hits, axis=0) / np.arange(1, n_samples + 1)[:, None]
    # Each sample takes the precision at the last sample of its group of tied scores.
    last = np.ones(y_true.shape, dtype=bool)
    last[:-1] = sorted_scores[1:] != sorted_scores[:-1]
    ends = np.where(last, np.arange(n_samples)[:, None], n_samples)
    ends = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    n_hits = hits.sum(axis=0)
    total = (hits * np.take_along_axis(precision, ends, axis=0)).sum(axis=0)
    found: FloatArray = np.divide(total, n_hits, out=np.full(len(total), np.nan), where=n_hits > 0)
    return found


def mean_average_precision(y_true: LabelArray, y_score: FloatArray) -> float:
    """Mean of the average precision over the classes or labels that at least one sample has.

    `y_true` and `y_score` are (n_samples, n_classes) or (n_samples,).
    """
    if np.ndim(y_true) == np.ndim(y_score) == 1:
        y_true, y_score = y_true[:, None], y_score[:, None]
    found = average_precision(y_true, y_score)
    known = found[~np.isnan(found)]
    return float(known.mean()) if len(known) else float("nan")
