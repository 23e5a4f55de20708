"""Study of a method of one's own: python experiments/examples/own_estimator.py"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from raysel import run_study
from raysel.base.classifiers import Selector
from raysel.base.estimator import OneShotEstimator


@dataclass(frozen=True)
class ClassMeans:
    """Means of the classes, shape (n_classes, n_features), and variances within them, shape
    (n_features,).
    """

    means: np.ndarray
    within: np.ndarray


class ShrunkenFisher(OneShotEstimator, Selector):
    """Score each feature by the variance of its class means over the variance within the classes
    plus ``shrinkage``.
    """

    def __init__(self, shrinkage: float = 0.1, n_features_to_select: int | None = None) -> None:
        self.shrinkage = shrinkage
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: np.ndarray, y: np.ndarray) -> ClassMeans:
        """Compute what every ``shrinkage`` needs of a training set."""
        classes, codes = np.unique(y, return_inverse=True)
        means = np.array([X[codes == c].mean(axis=0) for c in range(len(classes))])
        return ClassMeans(means, ((X - means[codes]) ** 2).mean(axis=0))

    def _updates(self, X: np.ndarray, y: np.ndarray, prepared: ClassMeans) -> Iterator[float]:
        self.scores_ = prepared.means.var(axis=0) / (prepared.within + self.shrinkage)
        yield -float(self.scores_.sum())


if __name__ == "__main__":
    study = run_study(
        "digits-smr",
        {
            "name": "own-estimator",
            "solver": {
                "name": "own_estimator.ShrunkenFisher",
                "space": {"shrinkage": [0.001, 0.01, 0.1]},
            },
            "cv": {"outer": 3, "inner": 2},
            "search.executor": "serial",
        },
        output="own-estimator",
        progress=False,
    )
    print(study)
    print(study.ranking().to_frame().head(8).to_string(index=False))
