"""Linear support vector machines of many features, fitted in the span of their few samples."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.svm import LinearSVC

from raysel.core.arrays import FloatArray, LabelArray

#: Fewest features for each sample at which the decomposition and one fit take less time than one
#: fit of all features, up to 800 samples.
_RATIO = 8
#: Above that the decomposition, which grows with the cube of the number of samples, needs more.
_SAMPLES_BY_RATIO = 100
#: Largest weight of the loss times rounding error of the products of samples.
_ROUNDING = 1e-8


@dataclass(frozen=True)
class SampleSpan:
    """Samples of many more features, in as many coordinates as there are samples.

    The dual problem of an SVM reads nothing of the samples but their products. With ``X X' = U
    diag(v) U'`` the rows of ``Z = U diag(v)^(1/2)`` have the same products. Weights w for Z are the
    weights ``X' U diag(v)^(-1/2) w`` for X.
    """

    #: Z; shape (n_samples, n_samples).
    coordinates: FloatArray
    #: ``diag(v)^(-1/2) U'``; shape (n_samples, n_samples).
    back: FloatArray
    #: Error of the products by rounding.
    rounding: float

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Decompose the products; None where that takes longer than it saves, or overflows.

        `X` is (n_samples, n_features), an array of numbers; None of anything else.
        """
        if not isinstance(X, np.ndarray) or X.dtype != np.float64:
            return None
        n_samples, n_features = X.shape
        if n_features < n_samples * max(_RATIO, n_samples / _SAMPLES_BY_RATIO):
            return None
        products = X @ X.T
        if not np.isfinite(products).all():
            return None
        values, vectors = np.linalg.eigh(products)
        rounding = np.finfo(np.float64).eps * float(values[-1])
        if rounding <= 0.0:
            return None
        # A direction that only rounding tells from zero keeps a length, by which it divides.
        lengths = np.sqrt(np.maximum(values, rounding))
        return cls(vectors * lengths, (vectors / lengths).T, rounding)

    def fit(self, machine: LinearSVC, X: FloatArray, y: LabelArray) -> LinearSVC:
        """Fit a machine that `solves_dual` to the coordinates, and give it the weights for X."""
        dual = machine.dual
        machine.set_params(dual=True).fit(self.coordinates, y).set_params(dual=dual)
        machine.coef_ = (machine.coef_ @ self.back) @ X
        machine.n_features_in_ = X.shape[1]
        return machine


def solves_dual(estimator: Any) -> bool:
    """Whether an estimator is a LinearSVC with a dual that has one solution, stable to rounding."""
    if type(estimator) is not LinearSVC:
        return False
    kinds = estimator.penalty, estimator.loss, estimator.multi_class
    stated = isinstance(estimator.C, Real) and estimator.dual in (True, "auto")
    return stated and kinds == ("l2", "squared_hinge", "ovr")


def fit_clone(estimator: Any, X: Any, y: LabelArray, span: SampleSpan | None = None) -> Any:
    """Fit a clone of an estimator, a linear SVM of few samples in their span.

    Its iterations are those of a fit to `X` but for rounding, so that its coefficients are the same
    within the estimator's tolerance. The span is that of `X` if it is not given.
    """
    made = clone(estimator)
    if not solves_dual(made):
        return made.fit(X, y)
    span = span or SampleSpan.of(X)
    if span is None or made.C * span.rounding > _ROUNDING:
        return made.fit(X, y)
    return span.fit(made, X, y)
