"""Classification metrics by their name in a configuration; larger is better."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from sklearn.metrics import f1_score, precision_score

from raysel.arrays import LabelArray
from raysel.errors import ConfigError, DataError, suggestion
from raysel.metrics.average_precision import mean_average_precision
from raysel.plugins import load_plugin, plugin_names, warn_of_clash

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

#: Smallest and largest value of raysel's own metrics; those of other packages may have any.
RANGES = {**dict.fromkeys(METRICS, (0.0, 1.0)), "neg_hamming_loss": (-1.0, 0.0)}

_ONE_LABEL = {"balanced_accuracy"}

#: Metrics of the classes' scores rather than of predictions.
_OF_SCORES = {"mean_average_precision"}

#: The entry point group in which other packages register metrics: functions of y_true and y_pred, larger is better.
GROUP = "raysel.metrics"


def metric_range(name: str) -> tuple[float, float]:
    """Smallest and largest value of a metric; infinite for metrics of other packages."""
    return RANGES.get(name, (-math.inf, math.inf))


def needs_scores(name: str) -> bool:
    """Return whether a metric is one of the scores of the classes or labels, and not of predictions."""
    return name in _OF_SCORES


def classification_metric(name: str, *, multilabel: bool = False, key: str = "evaluation.metric") -> Metric:
    """Metric of the given name."""
    if name not in METRICS:
        if name in plugin_names(GROUP):
            registered: Metric = load_plugin(GROUP, name)
            return registered
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
