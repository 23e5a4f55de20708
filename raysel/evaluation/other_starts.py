"""What a fit from another start finds, of methods with local optima."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from raysel.base.estimator import Estimator
from raysel.core.arrays import FloatArray, LabelArray
from raysel.evaluation.fold_models import FoldModels
from raysel.numerics.rankings import descending_order

#: Starts that the final model's is compared with, each a further fit.
N_OTHER_STARTS = 3


def compare_other_starts(models: FoldModels) -> dict[str, float] | None:
    """Fit from other starts, and compare the best features with those of the lowest objective.

    None if the optimum depends on no start.
    """
    solver, split, scores = models.solver, models.split, models.scores
    if scores is None or not scores.any():
        return None
    others = fits_from_other_starts(solver, split.X_train, split.y_train)
    if not others:
        return None
    n = min(models.n_features or models.n_shown, int(np.count_nonzero(scores)))
    other = min(others, key=lambda one: float(one.objective_path_[-1]))
    there = replace(split, constant=None).feature_scores(other)
    shared = np.intersect1d(descending_order(scores)[:n], descending_order(there)[:n])
    reached = float(solver.objective_path_[-1])
    excess = 0.0
    if reached:
        excess = (float(other.objective_path_[-1]) - reached) / abs(reached)
    n_iter = sum(int(one.n_iter_) for one in others)
    return {
        "n": n,
        "shared": len(shared),
        "excess": excess,
        "n_iter": n_iter,
        "n_starts": len(others),
    }


def fits_from_other_starts(solver: Estimator, X: FloatArray, y: LabelArray) -> list[Any]:
    """Fit from `N_OTHER_STARTS` further starts, of which there may be fewer or none."""
    others: list[Any] = []
    other: Any = solver
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        while len(others) < N_OTHER_STARTS and (other := other.another_start()) is not None:
            others.append(other.fit(X, y))
    return others
