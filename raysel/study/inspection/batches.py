"""How well batches are still told from prepared columns, on held-out training samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import recall_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from raysel.core.arrays import FloatArray, IntArray
from raysel.data.dataset import Dataset
from raysel.data.formats.recognition import names_batch
from raysel.data.preparation.combat import SiteHarmoniser
from raysel.data.preparation.preparation import Preparation
from raysel.data.preparation.steps import Residualiser
from raysel.evaluation.plan import NestedPlan
from raysel.study.preparation import prepared_parts

#: Most training samples that the SVM is fitted to; of more, as many are drawn.
_MOST = 1000
#: Samples of a batch on average below which a column of numbers is none of batches.
_FEWEST = 4
#: Level at which a batch counts as told.
_LEVEL = 0.01
#: Weight of the loss where the mean square of a sample's values is 1: about that of a hard margin
#: for many columns.
_C = 10.0


def batch_remarks(
    preparation: Preparation | None, dataset: Dataset, plan: NestedPlan
) -> Iterator[tuple[str, bool]]:
    """Remark on how well each batch is told after the steps that take it out, and say if it is.

    A linear SVM of the prepared columns predicts the batches of the held-out samples of the first
    outer fold's inner folds. No test sample of that fold is used.
    """
    if preparation is None or not plan.folds:
        return
    for part, rows, X in prepared_parts(preparation, dataset):
        folds = [
            [np.flatnonzero(np.isin(rows, half)) for half in (inner.train, inner.validation)]
            for inner in plan.folds[0].inner
        ]
        for step, column in _batches(part, X):
            predicted = [_predicted(part, X, dataset.y[rows], column, *fold) for fold in folds]
            true, found = np.concatenate(predicted, axis=1)
            if len(np.unique(true)) > 1:
                yield _remark(
                    step, str(part.feature_names[column]), true=true, found=found, part=part
                )


def _batches(part: Preparation, X: FloatArray) -> Iterator[tuple[str, int]]:
    """Yield the columns of batches that a step takes out, with the name of the step."""
    for step, transformer, _, beside in part.steps:
        if isinstance(transformer, SiteHarmoniser | Residualiser):
            for column in beside.tolist():
                name, values = str(part.feature_names[column]), X[:, column]
                known = values[~np.isnan(values)]
                few = 1 < len(np.unique(known)) <= len(known) / _FEWEST
                named = name in (part.categories or {}) or names_batch(name)
                if few and (named or isinstance(transformer, SiteHarmoniser)):
                    yield step, column


def _predicted(
    part: Preparation,
    X: FloatArray,
    y: np.ndarray,
    column: int,
    train: IntArray,
    held_out: IntArray,
) -> FloatArray:
    """Batch and predicted batch of held-out samples of known batches, shape (2, n_samples)."""
    if len(train) > _MOST:
        train = np.sort(np.random.default_rng(0).choice(train, _MOST, replace=False))
    train = train[~np.isnan(X[train, column])]
    batch = X[:, column]
    held_out = held_out[np.isin(batch[held_out], batch[train])]
    if len(np.unique(batch[train])) < 2 or not len(held_out):
        return np.empty((2, 0))
    fitted, scaler = clone(part), StandardScaler()
    learned = scaler.fit_transform(fitted.fit_transform(X[train], y[train]))
    others = scaler.transform(fitted.transform(X[held_out]))
    svm = SVC(C=_C, kernel="precomputed", class_weight="balanced")
    width = learned.shape[1]
    svm.fit(learned @ learned.T / width, batch[train])
    return np.stack([batch[held_out], svm.predict(others @ learned.T / width)])


def _remark(
    step: str, name: str, true: FloatArray, found: FloatArray, part: Preparation
) -> tuple[str, bool]:
    """Return how well batches are told beside chance with what to do, and whether they are."""
    values, counts = np.unique(true, return_counts=True)
    k = len(values)
    score = recall_score(true, found, labels=values, average="macro", zero_division=0)
    error = np.sqrt(np.sum((k - 1) / counts)) / k**2  # of the mean of recalls that are 1 / k each
    scores = (
        f"from the other columns: balanced accuracy {score:.2f} on held-out training samples,"
        f" {1 / k:.2f} by chance"
    )
    if (score - 1 / k) / error <= norm.isf(_LEVEL):
        return f"After {step}, a linear SVM does not clearly tell {name} {scores}.", False
    mend = f"compare with the ranking on other values by cv.groups: {name}"
    if step == "harmonise":
        mend = f"centre the columns by residualise with dataset.confounds: [{name}] instead"
    elif name not in (part.categories or {}):
        mend = f"put {{encode: {{}}, columns: [{name}]}} before it, which centres each value"
    told = (
        f"After {step}, a linear SVM still tells {name} {scores}."
        f" Features of {name} may rank high: {mend}."
    )
    return told, True
