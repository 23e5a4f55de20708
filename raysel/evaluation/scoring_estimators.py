"""What scores the best features: neighbours, a linear SVM, ridge regression, or another."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isclass, signature
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC

from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import ConfigError, StudyError, raise_storage_error
from raysel.core.plugins import import_dotted
from raysel.core.printing import first_line, short
from raysel.data.targets import (
    CLASSES,
    CLASSIFICATION,
    LABELS,
    QUANTITIES,
    REGRESSION,
    find_target,
)
from raysel.evaluation.neighbours import NearestNeighborsClassifier
from raysel.evaluation.records import Setting
from raysel.numerics.wide_svm import SampleSpan

#: Estimators without a dotted name.
NATIVE, KNN, LINEAR_SVM, RIDGE = SCORING_ESTIMATORS = ("native", "knn", "linear_svm", "ridge")
#: Those that fit to the best features, by the kind of the target, the usual one first.
ESTIMATORS_BY_TARGET: Final[Mapping[str, tuple[str, ...]]] = {
    CLASSES: (KNN, LINEAR_SVM),
    LABELS: (KNN, LINEAR_SVM),
    QUANTITIES: (RIDGE, KNN),
}
#: Strengths of the penalty of ridge regression that the inner scores choose from. Of n standardised
#: columns that are all alike the squared singular value is n times their number, so that few
#: columns need little and many smooth ones much.
ALPHAS: Final = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)

#: Models of the nearest neighbours, by the task of the target.
NEIGHBOURS: Final[Mapping[str, Callable[..., Any]]] = {
    CLASSIFICATION: NearestNeighborsClassifier,
    REGRESSION: partial(KNeighborsRegressor, algorithm="brute"),
}

_EXAMPLE = "write a dotted name such as sklearn.linear_model.LogisticRegression."


@dataclass(frozen=True)
class ScoringEstimator:
    """Estimator that is fitted to the best features; ``native`` is the method itself."""

    name: str
    params: Setting = ()
    #: Settings that the inner scores choose from, for each number of features.
    settings: tuple[Setting, ...] = ((),)

    @classmethod
    def with_space(
        cls, name: str, params: Mapping[str, Any], space: Mapping[str, Sequence[Any]]
    ) -> ScoringEstimator:
        """Return one with all combinations of a space, the last parameter's changing first."""
        values = [[(key, value) for value in domain] for key, domain in space.items()]
        return cls(name, tuple(params.items()), tuple(itertools.product(*values)))

    @property
    def every_iteration(self) -> bool:
        """Whether it scores each iteration; others than k-NN are too slow for it."""
        return self.name in (NATIVE, KNN)

    def make(self, y: LabelArray, random_state: int, setting: Setting = ()) -> Any:
        """Return the unfitted estimator that is trained on the best features.

        `y` is (n_samples,), (n_samples, n_labels) or (n_samples, n_quantities).
        """
        values = {**dict(self.params), **dict(setting)}
        target = find_target(y)
        if self.name == KNN:
            return NEIGHBOURS[target.task](**values)
        if self.name == RIDGE:
            return Ridge(**values)
        if self.name == LINEAR_SVM:
            model: Any = LinearSVC(random_state=random_state, max_iter=10_000, **values)
        else:
            cls = scoring_estimator_class(self.name)
            if "random_state" in signature(cls).parameters:
                values = {"random_state": random_state, **values}
            model = cls(**values)
        return target.for_columns(model, y)


class RidgePath:
    """Ridge regressions of the same samples that differ in alpha, by one product of the samples."""

    def __init__(self, alphas: Sequence[float]) -> None:
        self._alphas = list(alphas)
        self._joint: Any = None

    def fit(self, estimator: Ridge, X: FloatArray, y: FloatArray) -> Ridge:
        """Fit one of the regressions.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_quantities).
        """
        columns = y.reshape(len(y), -1)
        n = columns.shape[1]
        if self._joint is None:  # a column for each alpha and quantity
            alphas = np.repeat(self._alphas, n)
            repeated = np.tile(columns, len(self._alphas))
            self._joint = clone(estimator).set_params(alpha=alphas).fit(X, repeated)
        first = n * self._alphas.index(estimator.alpha)
        model = clone(estimator)
        model.n_features_in_ = X.shape[1]
        several = () if n == 1 else (n,)
        model.coef_ = self._joint.coef_[first : first + n].reshape(*several, -1)
        model.intercept_ = self._joint.intercept_[first : first + n].reshape(several)
        return model


class SpanFits:
    """Linear SVMs of the same samples, by one decomposition where these are few."""

    def __init__(self) -> None:
        self._span: SampleSpan | None = None

    def fit(self, estimator: LinearSVC, X: Any, y: LabelArray) -> Any:
        """Fit one of them. `X` is (n_samples, n_features), `y` (n_samples,)."""
        self._span = self._span or SampleSpan.of(X)
        return fit_to_labels(estimator, X, y, self._span)


#: What predicts all features beside a method's own predictions, by the kind of the target.
BESIDE_NATIVE: Final[dict[str, ScoringEstimator]] = {
    CLASSES: ScoringEstimator(KNN),
    LABELS: ScoringEstimator(KNN),
    QUANTITIES: ScoringEstimator.with_space(RIDGE, {}, {"alpha": ALPHAS}),
}
#: Number of samples above which it is logistic regression in place of the nearest neighbour, whose
#: time grows with the square of that number.
MOST_FOR_NEIGHBOURS: Final = 2000
LOGISTIC: Final = ScoringEstimator.with_space(
    "sklearn.linear_model.LogisticRegression", {}, {"C": (1.0,)}
)


def estimator_beside_native(kind: str, n_samples: int) -> ScoringEstimator:
    """Return what predicts all features beside a method's own predictions."""
    estimator = BESIDE_NATIVE[kind]
    if estimator.name == KNN and n_samples > MOST_FOR_NEIGHBOURS:
        return LOGISTIC
    return estimator


class EstimatorError(StudyError):
    """An estimator raises an error where it is fitted or predicts."""


#: Errors of the machine, which are no fault of an estimator: no memory, no file, a worker process
#: of joblib killed.
_OF_MACHINE = (MemoryError, OSError, BrokenExecutor)
#: Address of an object, another in each process.
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
_LONGEST_REASON = 200


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise an estimator's error as an EstimatorError, alike in each process.

    Errors of the machine are raised as they are.
    """
    try:
        yield
    except _OF_MACHINE:
        raise
    except Exception as error:
        raise_storage_error(error)
        told = type(error).__name__
        if text := first_line(str(error).strip()):
            told += f": {_ADDRESS.sub('0x...', text)}"
        raise EstimatorError(short(told, _LONGEST_REASON)) from error


def without_nan(output: LabelArray) -> LabelArray:
    """Return what an estimator gives for some samples; an error if some of it is NaN."""
    if np.asarray(output).dtype.kind == "f" and np.isnan(output).any():
        raise ValueError("it gives NaN for some samples")
    return output


def shown_setting(setting: Setting) -> str:
    """Return a setting as text, e.g. ``"C=0.1"``."""
    return ", ".join(f"{key}={value}" for key, value in setting)


def scoring_estimator_class(name: str) -> type[Any]:
    """Import the class of an estimator in scikit-learn's style."""
    key = "evaluation.estimator"
    cls = import_dotted(name, key, _EXAMPLE, SCORING_ESTIMATORS, isclass)
    if not isclass(cls):
        raise ConfigError(f"{key}: {name} is a {type(cls).__name__}, not a class; {_EXAMPLE}")
    missing = [
        method
        for method in ("fit", "predict", "get_params")
        if not callable(getattr(cls, method, None))
    ]
    if missing:
        lacking = " and no ".join(missing)
        raise ConfigError(
            f"{key}: {name} has no {lacking}; give a classifier or regressor in scikit-learn's"
            " style."
        )
    return cls
