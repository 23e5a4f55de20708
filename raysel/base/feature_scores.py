"""Feature scores of fitted estimators in scikit-learn's style, by their public attributes."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline

from raysel.base.label_codes import CodedClassifier
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray


def feature_scores(fitted: Any, constant: BoolArray) -> tuple[str, FloatArray] | None:
    """Return the feature scores of a fitted estimator and the attribute that they are of."""
    if isinstance(fitted, CodedClassifier):
        return feature_scores(fitted.estimator_, constant)
    if isinstance(fitted, Pipeline):
        return _pipeline_scores(fitted, constant)
    for name in ("coef_", "feature_importances_", "scores_", "variances_"):
        scores = _by_feature(getattr(fitted, name, None), len(constant), joined=name == "coef_")
        if scores is not None:
            return name, _usable(scores, constant)
    if hasattr(fitted, "get_support"):
        return _selector_scores(fitted, constant)
    return None


def _by_feature(
    values: Any, n_features: int, *, joined: bool, order: float = 2
) -> FloatArray | None:
    """Return values as one number a feature, by the norm over rows; None if they are none."""
    try:
        if hasattr(values, "toarray"):
            values = values.toarray()
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None  # e.g. scores_ of LogisticRegressionCV, a dict of the scores of its folds
    if values.ndim == 0 or values.shape[-1] != n_features or not (joined or values.ndim == 1):
        return None
    if not joined:
        return values
    return np.linalg.norm(values.reshape(-1, n_features), axis=0, ord=order)


def _usable(scores: FloatArray, constant: BoolArray) -> FloatArray:
    """Return scores with 0 for NaN and constant features, and no infinite one."""
    scores = np.where(constant | np.isnan(scores), 0.0, scores)
    return np.minimum(scores, scores[np.isfinite(scores)].max(initial=0.0) or 1.0)


def _selector_scores(selector: Any, constant: BoolArray) -> tuple[str, FloatArray] | None:
    """Return scores of a selector: its ranking, the weights of its estimator, or its support.

    The features that it selects are before all others, and among themselves in the order of the
    weights.
    """
    support = np.asarray(selector.get_support(), dtype=bool)
    if support.shape != constant.shape:
        return None
    ranking = _by_feature(getattr(selector, "ranking_", None), len(support), joined=False)
    name, weights = _weights(selector, len(support), int(support.sum()))
    if ranking is None and weights is not None and len(weights) == len(support):
        return name, _usable(weights, constant)
    if ranking is None:
        name, places = "get_support", support.astype(np.float64)
    else:
        name, places = "ranking_", ranking.max() + 1 - ranking
    if weights is not None and len(weights) == support.sum():
        places[support] += 0.5 * weights / (weights.max(initial=0.0) or 1.0)
    return name, np.where(constant, 0.0, places)


def _weights(selector: Any, n_features: int, n_selected: int) -> tuple[str, FloatArray | None]:
    """Return the weights of all features, or of those selected, by a selector's estimator.

    They are those by which it selects: of its ``importance_getter``, joined by the norm of its
    ``norm_order``.
    """
    fitted = getattr(selector, "estimator_", None)
    getter = getattr(selector, "importance_getter", "auto")
    names: tuple[Any, ...] = (getter,)
    if getter == "auto":
        names = ("coef_", "feature_importances_")
    order = getattr(selector, "norm_order", 2)
    for get in names:
        values = get(fitted) if callable(get) else _attribute(fitted, get)
        for n_columns in (n_features, n_selected):
            weights = _by_feature(values, n_columns, joined=True, order=order)
            if weights is not None:
                name = "feature_importances_" if get == "feature_importances_" else "coef_"
                return name, _usable(weights, np.zeros(n_columns, dtype=bool))
    return "", None


def _attribute(fitted: Any, path: str) -> Any:
    """Return the attribute of a fitted estimator at a path with dots; None if there is none."""
    try:
        return attrgetter(path)(fitted)
    except AttributeError:
        return None


def _pipeline_scores(pipeline: Pipeline, constant: BoolArray) -> tuple[str, FloatArray] | None:
    """Return the scores of the last step that has some; 0 for features that steps leave out.

    Features that `FeatureAgglomeration` joins have the score of their cluster. None if another step
    before the last mixes the features. Variances are scores only of a pipeline that has no others
    and predicts nothing: a filter of constant columns ranks none of those that it keeps.
    """
    scores, name, n_columns = None, "", len(constant)
    column = np.arange(n_columns)  # of each feature between two steps, -1 if it is left out
    for number, (_, step) in enumerate(pipeline.steps, start=1):
        if step is None or step == "passthrough":
            continue
        own = feature_scores(step, np.zeros(n_columns, dtype=bool))
        is_filter = own is not None and own[0] == "variances_"
        if own is not None and not (
            is_filter and (scores is not None or hasattr(pipeline, "predict"))
        ):
            name, values = own
            kept, scores = column >= 0, np.zeros(len(constant))
            scores[kept] = values[column[kept]]
        outputs = _find_outputs(step)
        if outputs is None and number < len(pipeline.steps) and not _keeps_columns(step, n_columns):
            return None
        if outputs is not None:
            kept = column >= 0
            column[kept] = outputs[column[kept]]
            n_columns = int(outputs.max(initial=-1)) + 1
    if scores is None:
        return None
    return name, np.where((column >= 0) & ~constant, scores, 0.0)


def _find_outputs(step: Any) -> IntArray | None:
    """Return the output of each column of a fitted step that selects or joins columns.

    It is -1 of a column that is left out.
    """
    if hasattr(step, "get_support"):
        support = np.asarray(step.get_support(), dtype=bool)
        return np.where(support, np.cumsum(support) - 1, -1)
    if not hasattr(step, "labels_"):
        return None
    from sklearn.cluster import FeatureAgglomeration  # noqa: PLC0415 - takes long to import

    if not isinstance(step, FeatureAgglomeration):
        return None
    labels: IntArray = step.labels_
    return labels


@lru_cache(maxsize=1)  # each fit of a search asks for as many
def _default_names(n_columns: int) -> LabelArray:
    return np.array([f"x{number}" for number in range(n_columns)], dtype=object)


def _keeps_columns(step: Any, n_columns: int) -> bool:
    """Return whether the outputs of a fitted step are the columns at their places."""
    if isinstance(step, OneToOneFeatureMixin):
        return True
    try:
        is_named = hasattr(step, "feature_names_in_")
        names = step.feature_names_in_ if is_named else _default_names(n_columns)
        return np.array_equal(step.get_feature_names_out(names), names)
    except Exception:  # noqa: BLE001 - a step of another package may lack names, or raise anything
        return False
