"""Transformers that are fitted to one training set once, those in a ColumnTransformer as well."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
)
from sklearn.pipeline import Pipeline

#: Selectors whose only fit is a score of each feature, which their other parameters do not change.
_UNIVARIATE = (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
)


@dataclass
class FittedStep:
    """A fitted transformer with what it makes of the samples that it is fitted to."""

    step: Any
    samples: Any
    converged: bool
    #: What it makes of the samples that are held out, once they were asked for.
    held_out: Any = None

    def transform(self, X: Any) -> Any:
        """Transform the samples that are held out, which are the same at each call."""
        if self.held_out is None:
            with warnings.catch_warnings(action="ignore"):  # the winners' models give them
                self.held_out = _freeze(self.step.transform(X))
        return self.held_out


@dataclass
class KnownSteps:
    """What transformers of one training set have computed, whatever else they are set to."""

    scores: dict[bytes, Callable[[Any, Any], Any]] = field(default_factory=dict)
    #: Fitted models that select, and whether their fit converged.
    models: dict[bytes, tuple[Any, bool]] = field(default_factory=dict)
    #: Fitted steps in a ColumnTransformer, by their columns and all steps up to them.
    inner: dict[bytes, FittedStep] = field(default_factory=dict)
    #: What is known of the samples that these steps get, by their columns and the steps before.
    before: dict[bytes, KnownSteps] = field(default_factory=dict)

    def fit_transform(self, step: Any, X: Any, y: Any) -> FittedStep:
        """Fit a transformer to the training samples, and transform them."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step, converged = self._with_known(step, X, y)
            if hasattr(step, "fit_transform"):
                samples = step.fit_transform(X, y)
            else:
                samples = step.fit(X, y).transform(X)
        return FittedStep(step, _freeze(samples), converged and _has_converged(caught))

    def _with_known(self, step: Any, X: Any, y: Any) -> tuple[Any, bool]:
        """Return a transformer that computes nothing again, and whether what it uses converged."""
        if type(step) in _UNIVARIATE:
            scores = self.scores.setdefault(pickle.dumps(step.score_func), _Once(step.score_func))
            return clone(step).set_params(score_func=scores), True
        if type(step) is SelectFromModel and not step.prefit:
            key = pickle.dumps(step.estimator)
            if key not in self.models:
                self.models[key] = _fit_model(step.estimator, X, y)
            model, converged = self.models[key]
            return clone(step).set_params(estimator=model, prefit=True), converged
        if type(step) is ColumnTransformer and step.n_jobs in (None, 1):
            parts = [
                (name, self._inner(part, pickle.dumps(columns)), columns)
                for name, part, columns in step.transformers
            ]
            return clone(step).set_params(transformers=parts), True
        return step, True

    def _inner(self, part: Any, before: bytes) -> Any:
        """Return a part of a ColumnTransformer whose steps are fitted once each."""
        if isinstance(part, str):
            return part
        if not is_plain_pipeline(part):
            known = self.before.setdefault(before, KnownSteps())
            return _InnerStep(part, known, self.inner, before + pickle.dumps(part))
        steps = []
        for name, step in part.steps:
            if step in (None, "passthrough"):
                continue
            steps.append((name, self._inner(step, before)))
            before += pickle.dumps(step)
        return Pipeline(steps) if steps else "passthrough"


class _InnerStep(BaseEstimator):
    """Transformer in a ColumnTransformer that looks up what it makes of the samples."""

    def __init__(
        self, step: Any, known: KnownSteps, fitted: dict[bytes, FittedStep], key: bytes
    ) -> None:
        self.step, self.known, self.fitted, self.key = step, known, fitted, key

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.key in self.fitted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the step, if none that is equal was."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return what the step makes of the training samples."""
        if self.key not in self.fitted:
            self.fitted[self.key] = self.known.fit_transform(clone(self.step), X, y)
        found = self.fitted[self.key]
        if not found.converged:
            warnings.warn("a step did not converge", ConvergenceWarning, stacklevel=2)
        return found.samples

    def transform(self, X: Any) -> Any:
        """Return what the step makes of the samples that are held out."""
        return self.fitted[self.key].transform(X)


class _Once:
    """Function of samples and labels that is called once, as these are always the same."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function, self._value = function, None

    def __call__(self, X: Any, y: Any) -> Any:
        """Return the value of the first call."""
        if self._value is None:
            self._value = self._function(X, y)
        return self._value


def is_plain_pipeline(estimator: Any) -> bool:
    """Whether an estimator is a Pipeline that does no more than its steps one after the other."""
    plain = type(estimator) is Pipeline
    return plain and not estimator.memory and not estimator.transform_input


def _fit_model(estimator: Any, X: Any, y: Any) -> tuple[Any, bool]:
    """Fit a model, and return whether it converged as well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(estimator).fit(X, y)
    return model, _has_converged(caught)


def _has_converged(caught: list[warnings.WarningMessage]) -> bool:
    return not any(issubclass(each.category, ConvergenceWarning) for each in caught)


def _freeze(samples: Any) -> Any:
    """Return samples that no later step may change in place."""
    if isinstance(samples, np.ndarray):
        samples = samples.view()
        samples.flags.writeable = False
    return samples
