"""Score of the confounds alone, by a linear model of them, on the test samples of an outer fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.data.targets import CLASSES, LABELS, QUANTITIES
from raysel.evaluation.scoring_estimators import ALPHAS
from raysel.evaluation.split import Split
from raysel.numerics.metrics import metric

#: Name of the reference in a record.
CONFOUNDS: Final = "confounds alone"

_CLASSIFIERS = [LogisticRegression(class_weight=w, max_iter=1000) for w in (None, "balanced")]
#: Models of the confounds by the kind of the target; the best on the training samples counts.
_MODELS: Final[Mapping[str, Sequence[Any]]] = {
    CLASSES: _CLASSIFIERS,
    LABELS: _CLASSIFIERS,
    QUANTITIES: [RidgeCV(ALPHAS)],
}


def has_confounds(split: Split) -> bool:
    """Whether the samples of a split have confounds; False for several tasks."""
    columns = getattr(split.preparation, "no_features", ())
    if not len(columns) or split.target.kind not in _MODELS:
        return False
    return isinstance(split.source.X, np.ndarray)


def score_confounds(split: Split, metric_name: str) -> float:
    """Score the confounds of a split alone on the samples that are held out.

    The model is logistic regression of classes and labels, ridge regression of quantities. Numbers
    are filled by their median and standardised, texts are encoded, all by the training samples.
    Classes are weighed as they are or equally, whichever scores better on the training samples.
    """
    rows, (samples, texts) = split.source, _confounds(split)
    train, y_train, measure = samples[rows.train], split.y_train, metric(metric_name)
    target = split.target
    models = [target.for_columns(clone(model), y_train) for model in _MODELS[target.kind]]
    fitted = [make_pipeline(_encoder(texts), model).fit(train, y_train) for model in models]

    def score(model: Any, X: FloatArray, y: LabelArray) -> float:
        return measure(y, measure.output(model, X, y), target.known(y_train))

    best = fitted[int(np.argmax([score(model, train, y_train) for model in fitted]))]
    return score(best, samples[rows.test], split.y_test)


def encode_confounds(split: Split) -> FloatArray:
    """Return the confounds of the training samples as standardised columns of numbers."""
    samples, texts = _confounds(split)
    encoded: FloatArray = _encoder(texts).fit_transform(samples[split.source.train])
    return encoded


def _confounds(split: Split) -> tuple[FloatArray, BoolArray]:
    """Return the confounds of all samples as they were read, and which of them are texts."""
    preparation = split.preparation
    assert preparation is not None  # noqa: S101 - as `has_confounds` says
    columns = np.asarray(preparation.no_features)
    texts = np.isin(preparation.feature_names[columns], list(preparation.categories or {}))
    return np.asarray(split.source.X)[:, columns], texts


def _encoder(texts: BoolArray) -> ColumnTransformer:
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    return ColumnTransformer(
        [
            ("numbers", numbers, np.flatnonzero(~texts)),
            ("texts", OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(texts)),
        ],
        sparse_threshold=0.0,
    )
