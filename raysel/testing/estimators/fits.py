"""Fits of a method in its conformance suite, and their comparison to the last bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from raysel.arrays import FloatArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.testing.checks import require, require_equal
from raysel.testing.estimators.case import MethodCase
from raysel.testing.estimators.samples import Samples

#: A check of a method on one data set.
SamplesCheck: TypeAlias = Callable[[MethodCase, Samples], None]


def fit(model: Estimator, X: ArrayLike, y: LabelArray) -> Estimator:
    """Fit a method and ignore its ConvergenceWarning, because the suite uses few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def fitted(case: MethodCase, samples: Samples, **changes: Any) -> Estimator:
    """Build the method of a case and fit it to a data set."""
    return fit(case.build(samples.layout, **changes), samples.X, samples.y)


def require_same_bits(found: Estimator, expected: Estimator, X: FloatArray, what: str) -> None:
    """Raise AssertionError unless two fits agree in scores, objectives and predictions to the last bit."""
    require_equal(found.objective_path_, expected.objective_path_, f"{what}: objective_path_ differs")
    require(
        (found.n_iter_, found.converged_) == (expected.n_iter_, expected.converged_),
        f"{what}: n_iter_ and converged_ are {found.n_iter_} and {found.converged_}, not {expected.n_iter_} and "
        f"{expected.converged_}.",
    )
    require(hasattr(found, "scores_") == hasattr(expected, "scores_"), f"{what}: one has scores_, the other has not.")
    for name in ("scores_", "coef_"):
        if hasattr(expected, name):
            require_equal(getattr(found, name), getattr(expected, name), f"{what}: {name} differs")
    if hasattr(expected, "predict"):
        require_equal(found.predict(X), expected.predict(X), f"{what}: predictions differ")
