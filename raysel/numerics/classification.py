"""Classes of labels, scores of the classes as one matrix whatever the classifier's interface, and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import f1_score, precision_score

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError, suggestion
from raysel.core.plugins import load_plugin, plugin_names, warn_of_clash


def distinct_classes(y: ArrayLike) -> tuple[LabelArray, IntArray]:
    """Find the classes of labels, and number them in their order.

    `y` is (n_samples,); returns `classes` (n_classes,), `codes` (n_samples,).
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!s}); at least two are needed.")
    return classes, codes


def distance_differences(nearest: FloatArray) -> FloatArray:
    """Score of each class: distance to the nearest sample of another class minus that to the nearest of its own.

        s_r(x) = min_(q != r) d_q(x) - d_r(x)

    The largest score is that of the class of the nearest sample. Unlike -d_r(x), the scores of a class are comparable
    across samples: a sample that is far from all classes is no worse than one that is near to all.

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
    return np.divide(total, n_hits, out=np.full(len(total), np.nan), where=n_hits > 0)


def mean_average_precision(y_true: LabelArray, y_score: FloatArray) -> float:
    """Mean of the average precision over the classes or labels that at least one sample has.

    `y_true` and `y_score` are (n_samples, n_classes) or (n_samples,).
    """
    if np.ndim(y_true) == np.ndim(y_score) == 1:
        y_true, y_score = y_true[:, None], y_score[:, None]
    values = average_precision(y_true, y_score)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


#: Takes y_true and y_pred, shape (n_samples,) or (n_samples, n_labels); metrics of scores take an indicator of the
#: classes or labels and their scores, both of shape (n_samples, n_classes).
Metric: TypeAlias = Callable[[LabelArray, LabelArray], float]


# A search scores each iteration at several numbers of features, and scikit-learn's checks of its input
# cost 1.4 ms a call, as much as many a solver's iteration: these two are a hundred times quicker.
def accuracy(y_true: LabelArray, y_pred: LabelArray) -> float:
    """Share of the samples that are predicted correctly, multi-label ones in every label.

    `y_true` and `y_pred` are (n_samples,) or (n_samples, n_labels).
    """
    _check_shapes(y_true, y_pred)
    right = y_true == y_pred
    return float(np.mean(right if right.ndim == 1 else right.all(axis=1)))


def balanced_accuracy(y_true: LabelArray, y_pred: LabelArray) -> float:
    """Mean recall of the classes that occur in ``y_true``. `y_true` and `y_pred` are (n_samples,)."""
    _check_shapes(y_true, y_pred)
    _, codes = np.unique(y_true, return_inverse=True)
    recalls = np.bincount(codes, weights=y_true == y_pred) / np.bincount(codes)
    return float(recalls.mean())


def _neg_hamming_loss(y_true: LabelArray, y_pred: LabelArray) -> float:
    _check_shapes(y_true, y_pred)
    return -float(np.mean(y_true != y_pred))


def _check_shapes(y_true: LabelArray, y_pred: LabelArray) -> None:
    """Check that the shapes are equal, since comparing different ones would broadcast or give a single False."""
    if np.shape(y_true) != np.shape(y_pred):
        raise DataError(
            f"y_pred has the shape {np.shape(y_pred)} and y_true {np.shape(y_true)}: the metric compares labels one by "
            "one, so `predict` must return labels in the shape of y."
        )


def _scikit_learn(function: Callable[..., float], **options: object) -> Metric:
    def metric(y_true: LabelArray, y_pred: LabelArray) -> float:
        return float(function(y_true, y_pred, **options))

    return metric


#: Macro metrics average the classes' values, micro metrics sum the counts first; an undefined value counts as 0.
METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "subset_accuracy": accuracy,
    "macro_f1": _scikit_learn(f1_score, average="macro", zero_division=0),
    "micro_f1": _scikit_learn(f1_score, average="micro", zero_division=0),
    "macro_precision": _scikit_learn(precision_score, average="macro", zero_division=0),
    "micro_precision": _scikit_learn(precision_score, average="micro", zero_division=0),
    # A loss with scikit-learn's sign and name, so that larger is better here too.
    "neg_hamming_loss": _neg_hamming_loss,
    "mean_average_precision": mean_average_precision,
}

_SHARES = ("accuracy", "balanced_accuracy", "subset_accuracy", "mean_average_precision")
_MEANS = ("macro_f1", "micro_f1", "macro_precision", "micro_precision")
#: Smallest and largest value of a metric; one that is not listed, as those of other packages, may have any value.
RANGES = {**dict.fromkeys((*_SHARES, *_MEANS), (0.0, 1.0)), "neg_hamming_loss": (-1.0, 0.0)}

_ONE_LABEL = {"balanced_accuracy"}

#: Metrics of the classes' scores rather than of predictions.
_OF_SCORES = {"mean_average_precision"}

#: The entry point group in which other packages register metrics: functions of y_true and y_pred, larger is better.
GROUP = "raysel.metrics"


def metric_range(name: str) -> tuple[float, float]:
    """Smallest and largest value of a metric; infinite if they are not known."""
    return RANGES.get(name, (-math.inf, math.inf))


def needs_scores(name: str) -> bool:
    """Return whether a metric is one of the scores of the classes or labels, and not of predictions."""
    return name in _OF_SCORES


def classification_metric(name: str, *, multilabel: bool = False, key: str = "evaluation.metric") -> Metric:
    """Metric of the given name."""
    if name not in METRICS:
        if name in plugin_names(GROUP):
            return load_plugin(GROUP, name)
        known = [*METRICS, *plugin_names(GROUP)]
        hint = suggestion(name, known, f"known: {', '.join(known)}.")
        raise ConfigError(f"{key}: unknown metric {name!r}; {hint}")
    if multilabel and name in _ONE_LABEL:
        able = ", ".join(known for known in METRICS if known not in _ONE_LABEL)
        raise ConfigError(f"{key}: {name} is for one label a sample, and y is an indicator; take {able}.")
    warn_of_clash(GROUP, name, METRICS)
    return METRICS[name]


def check_metric(name: str, y: LabelArray, *, key: str = "evaluation.metric") -> None:
    """Check that a metric can be used for these labels; one of another package is computed once, for right
    predictions.
    """
    metric = classification_metric(name, multilabel=y.ndim > 1, key=key)
    if name in METRICS:
        return
    try:
        value = float(metric(y.copy(), y.copy()))
    except (Exception, SystemExit) as error:  # a function of another package may raise anything
        raise ConfigError(
            f"{key}: {name}, a metric of another package, gives no number for y itself as the predictions: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not math.isfinite(value):
        raise ConfigError(f"{key}: {name}, a metric of another package, is {value} for y itself as the predictions.")
