"""Checks that order and names do not matter, and that a feature of one value has no score."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.feature_selection import SelectorMixin

from raysel.base.estimator import Estimator
from raysel.core.arrays import LabelArray
from raysel.data.layouts import SEPARATOR
from raysel.testing.checks import require, require_close, require_equal
from raysel.testing.estimators.samples import MethodCase, Samples, SamplesCheck, fit, fitted

#: Share of the largest score that rounding may give a feature of one value.
_ROUNDING = 1e-12


def sample_order(case: MethodCase, samples: Samples) -> None:
    """Samples in another order give the same scores and predictions."""
    order, what = np.random.default_rng(5).permutation(len(samples.y)), "samples in another order"
    straight = fitted(case, samples)
    turned = fit(case.build(samples.layout), samples.X[order], samples.y[order])
    _compare(case, straight, turned, what)
    if hasattr(straight, "predict"):
        _compare_predictions(case, straight.predict(samples.X), turned.predict(samples.X), what)


def class_names(case: MethodCase, samples: Samples) -> None:
    """Other names for the classes, in the same order, change no bit but the names."""
    if not samples.single_label:
        return
    straight = fitted(case, samples)
    renamed = _renamed(samples, "klm")
    turned = fit(case.build(samples.layout), samples.X, renamed)
    if hasattr(straight, "scores_"):
        require_equal(turned.scores_, straight.scores_, "scores_ depend on the names of the classes")
    if hasattr(straight, "predict"):
        names = dict(zip(samples.y.tolist(), renamed.tolist(), strict=True))
        expected = np.array([names[label] for label in straight.predict(samples.X).tolist()])
        require_equal(turned.predict(samples.X), expected, "predictions depend on the names of the classes")


def class_order(case: MethodCase, samples: Samples) -> None:
    """Classes, or labels, in another order give the same scores and predictions."""
    straight, what = fitted(case, samples), "classes in another order"
    renamed = _renamed(samples, "zyx") if samples.single_label else samples.y[:, ::-1]
    turned = fit(case.build(samples.layout), samples.X, renamed)
    _compare(case, straight, turned, what)
    if hasattr(straight, "predict"):
        predicted = turned.predict(samples.X)
        if samples.single_label:
            names = dict(zip(renamed.tolist(), samples.y.tolist(), strict=True))
            predicted = np.array([names[label] for label in predicted.tolist()])
        else:
            predicted = predicted[:, ::-1]
        _compare_predictions(case, straight.predict(samples.X), predicted, what)


def feature_order(case: MethodCase, samples: Samples) -> None:
    """Features in another order, within the layout's parts or along its axes, give their scores in that order."""
    order, what = samples.layout.permutation(np.random.default_rng(6)), "features in another order"
    if (order == np.arange(len(order))).all():
        raise SkipTest("the layout has no other order of its features")
    straight, X = fitted(case, samples), np.ascontiguousarray(samples.X[:, order])
    turned = fit(case.build(samples.layout), X, samples.y)
    _compare(case, straight, turned, what, order)
    if hasattr(straight, "predict"):
        _compare_predictions(case, straight.predict(samples.X), turned.predict(X), what)


def constant_features(case: MethodCase, samples: Samples) -> None:
    """Features of one value in the training set have score 0."""
    X = samples.X.copy()
    constant = [1, X.shape[1] - 1]
    for column, value in zip(constant, (3.7, -1e3 / 3), strict=True):
        X[:, column] = np.where(np.isnan(X[:, column]), np.nan, value)
    X.flags.writeable = False
    model = fit(case.build(samples.layout), X, samples.y)
    if not hasattr(model, "scores_"):
        return
    # A selector keeps what has a score above 0; of a projection rounding may leave something.
    most = 0.0 if isinstance(model, SelectorMixin) else _ROUNDING * model.scores_.max()
    scores = model.scores_[constant]
    require((scores <= most).all(), f"features of one value have the scores {scores}.")


CHECKS: tuple[SamplesCheck, ...] = (sample_order, class_names, class_order, feature_order, constant_features)


def _renamed(samples: Samples, letters: str) -> LabelArray:
    """The labels under other names, a letter for each in their order; a task's name stays before its labels."""
    labels = np.unique(samples.y)
    if not samples.layout.is_multitask:
        return np.array(list(letters))[np.searchsorted(labels, samples.y)]
    parts = np.char.partition(labels, SEPARATOR)
    names = {}
    for task in samples.layout.task_names:
        for letter, label in zip(letters, labels[parts[:, 0] == task], strict=False):
            names[label] = f"{task}{SEPARATOR}{letter}"
    return np.array([names[label] for label in samples.y])


def _compare(case: MethodCase, straight: Estimator, turned: Estimator, what: str, order: Any = slice(None)) -> None:
    if hasattr(straight, "scores_"):
        require_close(turned.scores_, straight.scores_[order], case.tolerance, f"{what}: scores_ differ")


def _compare_predictions(case: MethodCase, expected: LabelArray, predicted: LabelArray, what: str) -> None:
    same = float((predicted == expected).mean())
    require(same >= case.agreement, f"{what}: {same:.0%} of the predictions are the same.")
