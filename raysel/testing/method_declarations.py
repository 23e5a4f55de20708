"""Checks that a method can do what its class declares, and no more than it has."""

from __future__ import annotations

from inspect import signature

import numpy as np
from sklearn.feature_selection import SelectorMixin

from raysel.data.targets import QUANTITIES
from raysel.testing.checks import require, require_close, require_equal
from raysel.testing.method_cases import MethodCase, Samples, SamplesCheck, fit, fitted


def declares_what_it_has(case: MethodCase, samples: Samples) -> None:
    """``ranks`` and ``predicts`` of the capabilities agree with the class and its fits."""
    can, model = case.capabilities, fitted(case, samples)
    has = hasattr(case.cls, "predict")
    require(
        can.predicts == has,
        f"capabilities.predicts is {can.predicts}, but that the class has predict is {has}.",
    )
    if case.wrapped:  # what it has fitted is its own to say
        return
    has = hasattr(model, "scores_")
    require(
        can.ranks == has, f"capabilities.ranks is {can.ranks}, but that a fit has scores_ is {has}."
    )
    unknown = {*can.prepare_parameters, *case.cls.layout_parameters} - set(
        signature(case.cls).parameters
    )
    require(
        not unknown,
        f"prepare_parameters or layout_parameters name {unknown}, which the constructor has not.",
    )


def scores_and_predictions_have_their_form(case: MethodCase, samples: Samples) -> None:
    """Scores are finite and not negative, predictions are labels of the training set."""
    model = fitted(case, samples)
    if hasattr(model, "scores_"):
        d = samples.X.shape[1]
        require(
            model.scores_.shape == (d,), f"scores_ has shape {model.scores_.shape}, not ({d},)."
        )
        require(np.isfinite(model.scores_).all(), "scores_ holds NaN or infinity.")
        require((model.scores_ >= 0).all(), "scores_ holds negative numbers.")
        require_equal(
            np.sort(model.ranking_),
            np.arange(1, d + 1),
            "ranking_ is no permutation of 1, ..., n_features",
        )
    if hasattr(model, "predict"):
        predicted = model.predict(samples.X)
        require(
            predicted.shape == samples.y.shape,
            f"predict gives shape {predicted.shape}, not {samples.y.shape}.",
        )
        if samples.of_quantities:
            require(np.isfinite(predicted).all(), "predict gives NaN or infinity.")
        else:
            known = set(np.unique(samples.y).tolist())
            require(
                set(np.unique(predicted).tolist()) <= known,
                f"predict gives labels beyond {sorted(known)}.",
            )
    if hasattr(model, "get_feature_names_out"):
        shape, names = model.transform(samples.X).shape, model.get_feature_names_out()
        require(
            shape == (len(samples.X), len(names)),
            f"transform gives shape {shape} for {len(names)} names.",
        )
    if isinstance(model, SelectorMixin) and "n_features_to_select" in model.get_params():
        few = fitted(case, samples, n_features_to_select=2)
        kept = np.flatnonzero(few.get_support())
        best = np.flatnonzero((few.ranking_ <= 2) & (few.scores_ > 0))
        require_equal(
            kept, best, "get_support does not keep the best n_features_to_select features"
        )


def iterates_as_declared(case: MethodCase, samples: Samples) -> None:
    """A method yields once, or has ``max_iter`` and ``tol``, as it declares."""
    model = case.build(samples.layout)
    if case.capabilities.iterates:
        lacking = {"max_iter", "tol"} - set(signature(case.cls).parameters)
        require(
            not lacking,
            f"capabilities.iterates is True, but the constructor lacks {sorted(lacking)}.",
        )
        first = case.build(samples.layout, max_iter=1)
        n_yields = sum(1 for _ in first.iterate(samples.X, samples.y))
        require(
            n_yields == first.max_steps == 1,
            f"max_iter=1 yields {n_yields} times, max_steps={first.max_steps}.",
        )
        return
    n_yields = sum(1 for _ in model.iterate(samples.X, samples.y))
    require(
        n_yields == model.max_steps == 1,
        f"capabilities.iterates is False, but iterate yields {n_yields} times.",
    )


def each_sample_by_itself(case: MethodCase, samples: Samples) -> None:
    """The prediction for a sample depends on no other, unless the method is transductive."""
    model = fitted(case, samples)
    if not hasattr(model, "predict"):
        return
    whole = model.predict(samples.X)
    alone = np.concatenate(
        [model.predict(samples.X[i : i + 1]) for i in range(0, len(samples.X), 4)]
    )
    if samples.of_quantities:  # a product with one sample rounds otherwise than one with many
        same = np.allclose(whole[::4], alone, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    else:
        same = np.array_equal(whole[::4], alone)
    independent = case.capabilities.transductive or same
    require(
        independent,
        "predictions depend on the other samples, but capabilities.transductive is False.",
    )


def paths_as_declared(case: MethodCase, samples: Samples) -> None:
    """``fit_path`` fits every configuration as ``fit`` does; others do not declare it."""
    if case.wrapped:
        return
    changes = [
        dict(c) for c in ({}, *case.varied) if not set(c) & case.capabilities.prepare_parameters
    ]
    models = [case.build(samples.layout, **c) for c in changes]
    prepared = models[0].prepare(samples.X, samples.y)
    if not case.capabilities.path:
        try:
            next(iter(case.cls.fit_path(models, samples.X, prepared)))
        except NotImplementedError:
            return
        raise AssertionError("fit_path fits, but capabilities.path is False.")
    positions = sorted(position for position, _ in case.cls.fit_path(models, samples.X, prepared))
    require(
        positions == list(range(len(models))),
        f"fit_path of {len(models)} models gave the positions {positions}.",
    )
    for model, change in zip(models, changes, strict=True):
        alone = fitted(case, samples, **change)
        tolerance = 100 * getattr(alone, "tol", 1e-6)
        require_close(
            model.objective_path_[-1:],
            alone.objective_path_[-1:],
            tolerance,
            f"fit_path and fit: {change}",
        )
        require(model.converged_, f"fit_path left {change} unfinished.")


def several_labels_as_declared(case: MethodCase, samples: Samples) -> None:
    """A method that does not declare ``multilabel`` refuses an indicator."""
    if (
        case.wrapped
        or samples.of_quantities
        or case.capabilities.multilabel
        or samples.layout.is_multitask
    ):
        return
    if QUANTITIES in case.capabilities.targets:  # to whom an indicator is two numbers
        return
    y = np.stack([samples.y == samples.y[0], samples.X[:, 0] > 0], axis=1).astype(np.int64)
    try:
        fit(case.build(samples.layout), samples.X, y)
    except ValueError:
        return
    raise AssertionError("an indicator is fitted, but capabilities.multilabel is False.")


def quantities_as_declared(case: MethodCase, samples: Samples) -> None:
    """A method that does not declare quantities refuses numbers that are no classes."""
    if case.wrapped or QUANTITIES in case.capabilities.targets or samples.layout.is_multitask:
        return
    try:
        fit(case.build(samples.layout), samples.X, samples.X[:, 0])
    except ValueError:
        return
    raise AssertionError("a quantity is fitted, but capabilities.targets does not hold it.")


CHECKS: tuple[SamplesCheck, ...] = (
    declares_what_it_has,
    scores_and_predictions_have_their_form,
    iterates_as_declared,
    each_sample_by_itself,
    paths_as_declared,
    several_labels_as_declared,
    quantities_as_declared,
)
