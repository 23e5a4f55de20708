"""Score of the confounds alone, by a linear model of them, on the test samples of an outer fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from raysel.core.arrays import BoolArray, FloatArray, LabelArray, is_quantity
from raysel.data.preparation.preparation import Preparation
from raysel.data.task_blocks import Samples
from raysel.evaluation.judges import ALPHAS
from raysel.evaluation.plan import OuterFold
from raysel.numerics.metrics import Metric, known_of, metric

#: Name of the reference in a record.
CONFOUNDS: Final = "confounds alone"


def score_of_confounds(
    preparation: Preparation | None,
    X: Samples,
    y: LabelArray,
    fold: OuterFold,
    *,
    labelled: BoolArray,
    metric_name: str,
) -> Callable[[], list[float]] | None:
    """Return what scores the confounds of a preparation; None without confounds, and for several
    tasks.

    The model is logistic regression of classes and labels, ridge regression of quantities. Numbers
    are filled by their median and standardised, texts are encoded, all by the training samples.
    Classes are weighed as they are or equally, whichever scores better on the training samples.

    `X` is (n_samples, n_columns), not prepared, `y` (n_samples,) or (n_samples, n_labels),
    `labelled` (n_samples,).
    """
    columns = np.asarray(getattr(preparation, "no_features", ()))
    if preparation is None or not len(columns) or not isinstance(X, np.ndarray):
        return None
    texts = np.isin(preparation.feature_names[columns], list(preparation.categories or {}))
    samples = X[:, columns]
    train, test = (part[labelled[part]] for part in (fold.train, fold.test))

    def score() -> list[float]:
        measure = metric(metric_name)
        fitted = [
            _model(texts, y, weights).fit(samples[train], y[train])
            for weights in ((None,) if is_quantity(y) else (None, "balanced"))
        ]
        known = known_of(y[train])
        on_training = [_score(each, measure, samples[train], y[train], known) for each in fitted]
        best = fitted[int(np.argmax(on_training))]
        return [_score(best, measure, samples[test], y[test], known)]

    return score


def _model(texts: LabelArray, y: LabelArray, weights: str | None) -> Any:
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    encoded = ColumnTransformer(
        [
            ("numbers", numbers, np.flatnonzero(~texts)),
            ("texts", OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(texts)),
        ],
        sparse_threshold=0.0,
    )
    if is_quantity(y):
        return make_pipeline(encoded, RidgeCV(ALPHAS))
    classifier = LogisticRegression(class_weight=weights, max_iter=1000)
    return make_pipeline(encoded, OneVsRestClassifier(classifier) if y.ndim == 2 else classifier)


def _score(model: Any, measure: Metric, X: FloatArray, y: LabelArray, known: LabelArray) -> float:
    return measure(y, measure.output(model, X, y), known)
