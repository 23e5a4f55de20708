"""Intervals of scores where folds that are stratified by the label have nearly one score each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import log_loss
from trap import Data, StudyTrap

from raysel.core.arrays import FloatArray
from raysel.results.result import StudyResult

#: New samples of which the truth is computed.
N_NEW = 50_000
RIDGE = {"solver": {"name": "f_test"}}
#: Takes a generator and a number of samples.
Draw = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]


def normal(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """A normal quantity that no feature tells."""
    return rng.standard_normal((n, 20)), rng.standard_normal(n)


def skewed(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """A lognormal quantity that no feature tells."""
    return rng.standard_normal((n, 20)), np.exp(rng.standard_normal(n))


def two_classes(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Shares of .3 and .7 that no feature tells."""
    return rng.standard_normal((n, 20)), (rng.random(n) < 0.3).astype(np.int64)


def _quantity(draw: Draw) -> Callable[[np.random.Generator], Data]:
    scored = {"metric": "neg_mae", "estimator": "ridge", "n_features": [2, 5, 10]}
    return lambda rng: (*draw(rng, 600), {**RIDGE, "evaluation": scored})


def _classes(rng: np.random.Generator) -> Data:
    estimator = {"name": "sklearn.linear_model.LogisticRegression"}
    scored = {"metric": "neg_log_loss", "estimator": estimator, "n_features": [2, 5, 10]}
    return (*two_classes(rng, 400), {"evaluation": scored})


def _mae(model: object, X: FloatArray, y: FloatArray) -> float:
    return -float(np.abs(y - model.predict(X)).mean())


def _log_loss(model: object, X: FloatArray, y: FloatArray) -> float:
    return -log_loss(y, model.predict_proba(X))


def _truth(result: StudyResult, draw: Draw, score: Callable[..., float]) -> float:
    """Mean score of the outer folds' models on new samples."""
    new = draw(np.random.default_rng(2**20), N_NEW)
    return float(np.mean([score(result.fold_model(fold.fold), *new) for fold in result.outer]))


def _holds(draw: Draw, score: Callable[..., float]) -> Callable[[StudyResult], bool]:
    def holds(result: StudyResult) -> bool:
        lower, upper, truth = (
            result.interval.lower,
            result.interval.upper,
            _truth(result, draw, score),
        )
        return lower is not None and lower <= truth <= upper < truth + 0.5 * abs(truth)

    return holds


def _said(draw: Draw, score: Callable[..., float]) -> Callable[[StudyResult], str]:
    def said(result: StudyResult) -> str:
        ends = f"{result.interval.lower:.3f} to {result.interval.upper:.3f}"
        return f"{ends}; on new samples {_truth(result, draw, score):.3f}"

    return said


def _trap(make: Callable[[np.random.Generator], Data], *truth: Callable) -> StudyTrap:
    return StudyTrap(
        make,
        "an interval that holds the score of these models on new samples",
        _holds(*truth),
        said=_said(*truth),
    )


TRAPS: dict[str, StudyTrap] = {
    "interval of an absolute error": _trap(_quantity(normal), normal, _mae),
    "interval of a skewed quantity": _trap(_quantity(skewed), skewed, _mae),
    "interval of a log loss": _trap(_classes, two_classes, _log_loss),
}
