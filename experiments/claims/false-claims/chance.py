"""Chance and defaults: noise that a constant or an order wins, a reference of straw, a quantity
without an estimator.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trap import Data, Outcome, StudyTrap, Trap, says, verdict, words_of_study

from raysel import NestedSearch
from raysel.results import texts
from raysel.results.result import StudyResult


def skewed_quantity(rng: np.random.Generator) -> Data:
    """A skewed quantity that no feature tells, of which a regression with absolute error
    predicts the median.
    """
    boosting = {"loss": "absolute_error", "n_estimators": 20}
    keys = {
        "solver": {"name": "sklearn.ensemble.GradientBoostingRegressor", "params": boosting},
        "evaluation": {"estimator": "native", "metric": "neg_mae"},
    }
    return rng.standard_normal((200, 20)), rng.lognormal(sigma=1.0, size=200), keys


def percentage_errors(rng: np.random.Generator) -> Data:
    """The same noise, scored in per cent of the quantity, predicted by a support vector
    regression.
    """
    X, y, _ = skewed_quantity(rng)
    metric = "neg_mean_absolute_percentage_error"
    evaluation = {"estimator": "native", "metric": metric}
    return X, y, {"solver": {"name": "sklearn.svm.SVR"}, "evaluation": evaluation}


def rare_positives(rng: np.random.Generator) -> Data:
    """Ten positives of 100 samples that no feature tells, one in each of ten test sets, scored
    by average precision.
    """
    keys = {
        "evaluation": {
            "estimator": "knn",
            "n_neighbors": 15,
            "n_features": [2, 5, 10],
            "metric": "average_precision",
        },
        "cv": {"outer": 10, "inner": 3},
    }
    return rng.standard_normal((100, 40)), rng.permutation(np.arange(100) < 10).astype(int), keys


def _of_random_order(result: StudyResult) -> bool:
    """Whether chance is the mean over the places of one positive among ten, sum(1 / place) / 10."""
    expected = (1 / np.arange(1, 11)).mean()
    return abs(result.references["chance"].mean - expected) < 0.03 and verdict(result) != "better"


def scaled_by_the_estimator(seed: int, _: Path) -> Outcome:
    """A Pipeline that standardises the columns of wine and takes the nearest neighbour of all
    features.
    """
    X, y = load_wine(return_X_y=True)
    nearest = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    result = NestedSearch(nearest, random_state=seed).fit(X, y).study_
    holds = result.references["all features"].verdict == "equal" and not says("zscore")(result)
    said = texts.short_verdict(result.facts)
    return Outcome(holds, {**words_of_study(result), "said": said})


def without_estimator(_: np.random.Generator) -> Data:
    """Diabetes with a metric and numbers of features, and no estimator."""
    X, y = load_diabetes(return_X_y=True)
    keys = {"solver": {"name": "f_test"}, "evaluation": {"metric": "r2", "n_features": [2, 5, 10]}}
    return X, y, keys


def _by_ridge(result: StudyResult) -> bool:
    """Whether the estimator is that of quantities, in the record too, and its score that of a
    linear model.
    """
    return result.config["evaluation"]["estimator"] == "ridge" and result.test_mean > 0.4


TRAPS: dict[str, Trap | StudyTrap] = {
    "skewed quantity": StudyTrap(
        skewed_quantity, "not better than the best constant", lambda r: verdict(r) != "better"
    ),
    "percentage errors": StudyTrap(
        percentage_errors, "not better than the best constant", lambda r: verdict(r) != "better"
    ),
    "rare positives": StudyTrap(
        rare_positives, "chance is that of a random order of ten samples, 0.293", _of_random_order
    ),
    "scaled by the estimator": Trap(
        "equal to all features, as it is their nearest neighbour; no advice to scale",
        scaled_by_the_estimator,
    ),
    "without an estimator": StudyTrap(
        without_estimator,
        "scored and recorded by ridge regression",
        _by_ridge,
        lambda r: str(r.config["evaluation"]["estimator"]),
    ),
}
