"""Metrics by name: raysel's, scikit-learn's scorers, other packages', dotted names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from sklearn.metrics import (
    f1_score,
    get_scorer,
    get_scorer_names,
    precision_score,
    roc_auc_score,
)

from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.core.errors import ConfigError, DataError, suggestion
from raysel.core.plugins import import_dotted, load_plugin, plugin_names, warn_of_clash
from raysel.numerics import regression
from raysel.numerics.classification import class_scores, decision, probabilities

#: Output of a fitted model that a metric takes: its predictions; scores of the classes, one column
#: a class; the ``decision_function``, else the probabilities, with one column for two classes; the
#: probabilities, that of the second of two classes.
Response: TypeAlias = Literal["predict", "class_scores", "decision_function", "predict_proba"]
#: Types of y that a metric is for, as `Target.y_type` tells them, and their words.
_WORDS: Final[Mapping[str, str]] = {
    "binary": "two classes",
    "multiclass": "three classes or more",
    "multilabel": "several labels a sample",
    "continuous": "quantities",
}
_CLASSES: Final = frozenset({"binary", "multiclass"})
_LABELS: Final = _CLASSES | {"multilabel"}
_QUANTITIES: Final = frozenset({"continuous"})


@dataclass(frozen=True)
class Metric:
    """Metric of a model's output, larger is better."""

    name: str
    #: Takes the labels and the output; as scikit-learn defines it, or larger is better where
    #: ``sign`` is 1.
    function: Callable[..., float]
    response: Response = "predict"
    #: Types of y that it is for; one of another package is for any.
    targets: frozenset[str] = _LABELS
    range: tuple[float, float] = (-math.inf, math.inf)
    #: Whether it is undefined for samples that lack a class, or that have all or none of a label.
    every_class: bool = False
    sign: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments by which the function gets the positive class (``pos_label``), all classes
    #: (``labels``), or the mean of the training samples (``mean``).
    takes: frozenset[str] = frozenset()
    #: Whether scores that order the samples at random may have another value than equal scores.
    by_order: bool = False

    @property
    def is_mean_of_samples(self) -> bool:
        """Whether it is a mean over samples, so that one sample has it; unknown ones are."""
        return not self.is_known or self.function.__name__ in _MEANS_OF_SAMPLES

    @property
    def is_known(self) -> bool:
        """Whether the function is one of raysel's or scikit-learn's, whose properties are known."""
        return self.function.__module__.startswith(("raysel.", "sklearn."))

    def is_for(self, y_type: str) -> bool:
        """Return whether it is for a type of y."""
        return y_type in self.targets or not self.is_known

    @property
    def described_targets(self) -> str:
        """Types of y that it is for, in words."""
        if self.targets == _CLASSES:
            return "one label a sample"
        return " or ".join(words for name, words in _WORDS.items() if name in self.targets)

    def output(self, model: Any, X: Any, y: LabelArray) -> LabelArray:
        """Return what the metric takes of a fitted model.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels); returns
        (n_samples,) or (n_samples, n_columns).
        """
        if self.response == "predict":
            predicted: LabelArray = model.predict(X)
            return predicted
        if self.response == "class_scores":
            return class_scores(model, X, y.shape[1] if y.ndim == 2 else len(model.classes_))
        values = probabilities(model, X) if self.response == "predict_proba" else decision(model, X)
        if y.ndim == 2:
            return values
        return self.take_positive(values, getattr(model, "classes_", None))

    def take_positive(self, values: FloatArray, classes: Any) -> FloatArray:
        """Return the column of the positive of two classes; other outputs as they are."""
        if classes is None or len(classes) != 2:
            return values
        is_first = self.options.get("pos_label", classes[1]) == classes[0]
        if values.ndim == 2 and values.shape[1] == 2:
            return values[:, int(not is_first)]
        if is_first:
            return -values.reshape(-1)
        return values.reshape(-1)

    def __call__(self, y: LabelArray, output: LabelArray, classes: Any = None) -> float:
        """Compute the metric for a model with these `classes`; by default those of y.

        For quantities `classes` are their means over the training samples, see `Target.known`.

        `y` is (n_samples,) or (n_samples, n_labels), `output` that of `output`, `classes`
        (n_classes,).
        """
        if "mean" in self.takes:
            return self.sign * float(self.function(y, output, mean=classes, **self.options))
        if self.response == "class_scores" and y.ndim == 1 and classes is not None:
            return self.function(y[:, None] == classes, output)
        if not self.takes or y.ndim != 1 or classes is None:
            return self.sign * float(self.function(y, output, **self.options))
        known: dict[str, Any] = {"labels": classes}
        if len(classes) == 2:
            known["pos_label"] = classes[1]
        given = {key: known[key] for key in self.takes if key in known} | dict(self.options)
        return self.sign * float(self.function(y, output, **given))


def average_precision(y_true: LabelArray, y_score: FloatArray) -> FloatArray:
    """Average precision of each class or label, as scikit-learn's ``average_precision_score``.

    With the samples in the order of their scores, R_t and P_t recall and precision of those whose
    score is at least the t-th distinct score, so that tied samples count as one group:

        AP = sum_t (R_t - R_(t-1)) P_t

    All classes are computed at once, which for 40 classes is much faster than scikit-learn's
    function, whose checks cost more than the sorting.

    `y_true` and `y_score` are (n_samples, n_classes); returns (n_classes,).
    """
    if y_true.ndim != 2 or y_true.shape != np.shape(y_score):
        raise DataError(
            f"y_score has the shape {np.shape(y_score)} and y_true {y_true.shape}: give one score"
            " for each sample and each class or label."
        )
    if np.isnan(y_score).any():
        raise DataError(
            f"y_score holds {int(np.isnan(y_score).sum())} values that are NaN; give numbers."
        )
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
    if not len(known):
        return math.nan
    return float(known.mean())


# A search scores each iteration at several numbers of features, and scikit-learn's checks of its
# input cost 1.4 ms a call, as much as many a solver's iteration: these two are a hundred times
# quicker.
def accuracy(y_true: LabelArray, y_pred: LabelArray) -> float:
    """Share of the samples that are predicted correctly, multi-label ones in every label.

    `y_true` and `y_pred` are (n_samples,) or (n_samples, n_labels).
    """
    _check_shapes(y_true, y_pred)
    right = y_true == y_pred
    if right.ndim == 2:
        right = right.all(axis=1)
    return float(np.mean(right))


def balanced_accuracy(y_true: LabelArray, y_pred: LabelArray) -> float:
    """Mean recall of the classes that occur in ``y_true``.

    `y_true` and `y_pred` are (n_samples,).
    """
    _check_shapes(y_true, y_pred)
    _, codes = np.unique(y_true, return_inverse=True)
    recalls = np.bincount(codes, weights=y_true == y_pred) / np.bincount(codes)
    return float(recalls.mean())


def _roc_auc(y_true: LabelArray, y_score: FloatArray, labels: LabelArray | None = None) -> float:
    """Area under the ROC curve as scikit-learn's `roc_auc_score`.

    Of two classes by the same sums without its checks of the input, which take twenty times as
    long: the interval of a score takes a hundred calls.
    """
    if labels is not None and len(labels) == 2 and y_true.ndim == np.ndim(y_score) == 1:
        is_positive = y_true == labels[1]
        if 0 < is_positive.sum() < len(y_true) and np.isfinite(y_score).all():
            return _area_under_curve(is_positive, y_score)
    return float(roc_auc_score(y_true, y_score, labels=labels))


def _area_under_curve(is_positive: BoolArray, y_score: FloatArray) -> float:
    """Area under the ROC curve of samples of two classes, without the points on a line.

    `is_positive` and `y_score` are (n_samples,).
    """
    order = np.argsort(y_score)[::-1]
    last = np.append(np.flatnonzero(np.diff(y_score[order])), len(order) - 1)  # of tied scores
    hits = np.cumsum(is_positive[order])[last]
    misses = last + 1 - hits
    bends = np.append(np.diff(hits, 2).astype(bool) | np.diff(misses, 2).astype(bool), True)
    kept = np.insert(bends, 0, True)[: len(hits)]
    hit_rate = np.insert(hits[kept] / hits[-1], 0, 0.0)
    miss_rate = np.insert(misses[kept] / misses[-1], 0, 0.0)
    return float((np.diff(miss_rate) * (hit_rate[1:] + hit_rate[:-1]) / 2).sum())


def _neg_hamming_loss(y_true: LabelArray, y_pred: LabelArray) -> float:
    _check_shapes(y_true, y_pred)
    return -float(np.mean(y_true != y_pred))


def _check_shapes(y_true: LabelArray, y_pred: LabelArray) -> None:
    """Check that the shapes are equal: others would broadcast, or give a single False."""
    if np.shape(y_true) != np.shape(y_pred):
        raise DataError(
            f"y_pred has the shape {np.shape(y_pred)} and y_true {np.shape(y_true)}: the metric"
            " compares labels one by one, so `predict` must return labels in the shape of y."
        )


def _make(name: str, function: Callable[..., float], **properties: Any) -> Metric:
    return Metric(name, function, **{"range": (0.0, 1.0), **properties})


def _make_average(name: str, function: Callable[..., float], average: str) -> Metric:
    return _make(name, function, options={"average": average, "zero_division": 0})


#: Metric of quantities where none is given.
OUT_OF_SAMPLE_R2: Final = "out_of_sample_r2"


def _make_for_quantities(
    name: str, function: Callable[..., float], bounds: tuple[float, float], **properties: Any
) -> Metric:
    return Metric(name, function, targets=_QUANTITIES, range=bounds, **properties)


#: Macro metrics average the classes' values, micro metrics sum the counts first; an undefined value
#: counts as 0.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _make("accuracy", accuracy),
        _make("balanced_accuracy", balanced_accuracy, targets=_CLASSES),
        _make("subset_accuracy", accuracy),
        _make_average("macro_f1", f1_score, "macro"),
        _make_average("micro_f1", f1_score, "micro"),
        _make_average("macro_precision", precision_score, "macro"),
        _make_average("micro_precision", precision_score, "micro"),
        # A loss with scikit-learn's sign and name, so that larger is better here too.
        _make("neg_hamming_loss", _neg_hamming_loss, range=(-1.0, 0.0)),
        _make(
            "mean_average_precision",
            mean_average_precision,
            response="class_scores",
            by_order=True,
        ),
        _make_for_quantities(
            OUT_OF_SAMPLE_R2,
            regression.out_of_sample_r2,
            (-math.inf, 1.0),
            takes=frozenset({"mean"}),
        ),
        _make_for_quantities("neg_rmse", regression.neg_rmse, (-math.inf, 0.0)),
        _make_for_quantities("neg_mae", regression.neg_mae, (-math.inf, 0.0)),
        _make_for_quantities("pearson", regression.pearson, (-1.0, 1.0)),
        _make_for_quantities("spearman", regression.spearman, (-1.0, 1.0)),
    )
}


#: The entry point group in which other packages register metrics: functions of y_true and y_pred,
#: larger is better, or scorers by ``sklearn.metrics.make_scorer``.
GROUP = "raysel.metrics"

#: Functions of scikit-learn that are undefined where a class is missing.
_OF_EVERY_CLASS = (
    *(
        "roc_auc_score",
        "average_precision_score",
        "positive_likelihood_ratio",
        "negative_likelihood_ratio",
    ),
    *("d2_log_loss_score", "d2_brier_score"),
)
#: Functions that average a value of each sample.
_MEANS_OF_SAMPLES = (
    *("accuracy", "accuracy_score", "_neg_hamming_loss", "hamming_loss", "zero_one_loss"),
    *("log_loss", "brier_score_loss", "top_k_accuracy_score", "neg_mae", "mean_absolute_error"),
    *("mean_squared_error", "mean_squared_log_error", "mean_absolute_percentage_error"),
    *("mean_pinball_loss", "mean_tweedie_deviance", "mean_poisson_deviance"),
    "mean_gamma_deviance",
)
_OF_TWO = ("positive_likelihood_ratio", "negative_likelihood_ratio")
#: Functions whose columns are those of the classes, so that they must know them.
_OF_COLUMNS = (
    *("roc_auc_score", "log_loss", "brier_score_loss", "d2_log_loss_score", "d2_brier_score"),
    "top_k_accuracy_score",
)
_RANGES: Mapping[str, tuple[float, float]] = {
    "matthews_corrcoef": (-1.0, 1.0),
    "adjusted_rand_score": (-0.5, 1.0),
    "adjusted_mutual_info_score": (-math.inf, 1.0),
    "mutual_info_score": (0.0, math.inf),
    "positive_likelihood_ratio": (0.0, math.inf),
}
_EXAMPLE = (
    "write the dotted name of a function of y_true and y_pred, or of a scorer by"
    " sklearn.metrics.make_scorer."
)


def metric(name: str, key: str = "evaluation.metric") -> Metric:
    """Return the metric of a name of raysel, another package or scikit-learn, or a dotted one."""
    if name in METRICS:
        warn_of_clash(GROUP, name, METRICS)
        return METRICS[name]
    if name in plugin_names(GROUP):
        return _wrap_function(name, load_plugin(GROUP, name), key)
    if name in get_scorer_names():
        return _find_scorer(name)
    if "." in name:
        return _wrap_function(name, import_dotted(name, key, _EXAMPLE, list(METRICS)), key)
    own = [*METRICS, *plugin_names(GROUP)]
    known = [*own, *get_scorer_names()]
    shown = (
        f"known: {', '.join(own)}, the scorers of scikit-learn (sklearn.metrics.get_scorer_names())"
        " and dotted names."
    )
    raise ConfigError(f"{key}: unknown metric {name!r}; {suggestion(name, known, shown)}")


def metric_names() -> list[str]:
    """List the names of the metrics that are known without importing anything."""
    return list(dict.fromkeys([*METRICS, *plugin_names(GROUP), *get_scorer_names()]))


def metric_range(name: str) -> tuple[float, float]:
    """Smallest and largest value of a metric; infinite if they are not known."""
    if name in METRICS:
        return METRICS[name].range
    if name in get_scorer_names() and name not in plugin_names(GROUP):
        return _find_scorer(name).range
    return -math.inf, math.inf


def has_positive_class(name: str) -> bool:
    """Return whether a scorer of scikit-learn looks at one of two classes, the second."""
    if name in METRICS or name in plugin_names(GROUP) or name not in get_scorer_names():
        return False
    measure = _find_scorer(name)
    return "pos_label" in measure.takes or name.endswith("likelihood_ratio") or name == "roc_auc"


def averages_classes(name: str) -> bool:
    """Return whether a metric is a mean over classes of what their predictions give."""
    known = name in METRICS or (name in get_scorer_names() and name not in plugin_names(GROUP))
    if not known:
        return False
    measure = METRICS[name] if name in METRICS else _find_scorer(name)
    return name == "balanced_accuracy" or measure.options.get("average") == "macro"


def is_of_quantities(name: str) -> bool:
    """Return whether a metric is known as one of quantities only; imports nothing."""
    if name in METRICS:
        return METRICS[name].targets == _QUANTITIES
    return name in get_scorer_names() and _find_scorer(name).targets == _QUANTITIES


@cache
def _find_scorer(name: str) -> Metric:
    return _take_apart(name, get_scorer(name))


def _wrap_function(name: str, given: Any, key: str) -> Metric:
    if hasattr(given, "_score_func"):
        return _take_apart(name, given)
    if not callable(given) or isinstance(given, type):
        raise ConfigError(f"{key}: {name} is no function but {type(given).__name__}; {_EXAMPLE}")
    try:
        required = [
            p
            for p in signature(given).parameters.values()
            if p.default is p.empty and p.kind < p.VAR_POSITIONAL
        ]
    except (TypeError, ValueError):  # a builtin without a signature
        required = []
    if len(required) > 2:
        raise ConfigError(f"{key}: {name} takes {', '.join(p.name for p in required)}; {_EXAMPLE}")
    return Metric(name, given, by_order=True)


def _take_apart(name: str, scorer: Any) -> Metric:
    """Take a scorer of scikit-learn apart: its function, sign, arguments and response."""
    # There are no public names for them.
    function, options, sign = scorer._score_func, dict(scorer._kwargs), scorer._sign  # noqa: SLF001
    responses = scorer._response_method  # noqa: SLF001
    response: Any = responses if isinstance(responses, str) else "decision_function"
    word, module = function.__name__, function.__module__
    arguments = signature(function).parameters
    if not module.startswith("sklearn."):
        takes = {"pos_label"} & set(arguments)
        if response == "predict_proba":
            takes |= {"labels"} & set(arguments)
        return Metric(
            name,
            function,
            response,
            sign=sign,
            options=options,
            takes=frozenset(takes),
            by_order=True,
        )
    if "zero_division" in arguments:  # the same value as by default, without a warning at each call
        options = {"zero_division": 0, **options}
    takes = set()
    if word in _OF_COLUMNS:
        takes.add("labels")
    if "pos_label" in arguments and options.get("average") in (None, "binary"):
        takes.add("pos_label")
    bounds = _RANGES.get(name) or (
        -math.inf if word.startswith(("d2_", "r2_", "explained")) else 0.0,
        1.0,
    )
    if sign < 0:
        bounds = (-math.inf, 0.0)
    targets = _targets(word, module, options)
    every = word in _OF_EVERY_CLASS
    return Metric(
        name=name,
        function=_roc_auc if name == "roc_auc" else function,
        response=response,
        targets=targets,
        range=bounds,
        every_class=every,
        sign=sign,
        options=options,
        takes=frozenset(takes),
        by_order=word == "average_precision_score",
    )


def _targets(word: str, module: str, options: Mapping[str, Any]) -> frozenset[str]:
    """Kinds of labels that a function of scikit-learn is for."""
    if module.endswith("._regression"):
        return frozenset({"continuous"})
    if word in _OF_TWO or options.get("average") == "binary":
        return frozenset({"binary"})
    if options.get("average") == "samples":
        return frozenset({"multilabel"})
    if word == "top_k_accuracy_score":  # of two classes, two are always right
        return frozenset({"multiclass"})
    if word == "roc_auc_score" and "multi_class" not in options:
        return frozenset({"binary", "multilabel"})
    averaged = "average" in options and word != "roc_auc_score"
    return _LABELS if averaged or word == "average_precision_score" else _CLASSES


def metrics_instead(name: str, y_type: str) -> list[str]:
    """List metrics of a type of y: those whose names are alike, else raysel's own."""
    fitting = [known for known in metric_names() if known in METRICS or known in get_scorer_names()]
    fitting = [known for known in fitting if metric(known).is_for(y_type)]
    alike = [known for known in fitting if known.startswith(name) or name in known]
    return alike or [known for known in fitting if known in METRICS]
