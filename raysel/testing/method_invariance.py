"""Checks that order, names, copies and model files do not matter."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin

from raysel.base.estimator import Estimator
from raysel.base.model_types import trusted_types
from raysel.base.models import load_model, save_model, untrusted_types
from raysel.core.arrays import LabelArray
from raysel.data.layouts import SEPARATOR
from raysel.data.targets import find_target
from raysel.testing.checks import require, require_close, require_equal
from raysel.testing.method_cases import (
    MethodCase,
    Samples,
    SamplesCheck,
    fit,
    fitted,
    require_same_bits,
)

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
        require_equal(
            turned.scores_, straight.scores_, "scores_ depend on the names of the classes"
        )
    if hasattr(straight, "predict"):
        names = dict(zip(samples.y.tolist(), renamed.tolist(), strict=True))
        expected = np.array([names[label] for label in straight.predict(samples.X).tolist()])
        require_equal(
            turned.predict(samples.X), expected, "predictions depend on the names of the classes"
        )


def class_order(case: MethodCase, samples: Samples) -> None:
    """Classes, labels or quantities in another order give the same scores and predictions."""
    straight, what = fitted(case, samples), "classes in another order"
    if samples.of_quantities:
        _other_quantities(case, samples, straight)
        return
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
    """Features in another order, as the layout allows, give their scores in that order."""
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


CHECKS: tuple[SamplesCheck, ...] = (
    sample_order,
    class_names,
    class_order,
    feature_order,
    constant_features,
)


def _renamed(samples: Samples, letters: str) -> LabelArray:
    """The labels under other names in the same order, after the name of their task."""
    labels = np.unique(samples.y)
    if not samples.layout.is_multitask:
        return np.array(list(letters))[np.searchsorted(labels, samples.y)]
    parts = np.char.partition(labels, SEPARATOR)
    names = {}
    for task in samples.layout.task_names:
        for letter, label in zip(letters, labels[parts[:, 0] == task], strict=False):
            names[label] = f"{task}{SEPARATOR}{letter}"
    return np.array([names[label] for label in samples.y])


def _other_quantities(case: MethodCase, samples: Samples, straight: Estimator) -> None:
    """Compare with a fit to quantities in another order and other units."""
    one = len(find_target(samples.y).columns(samples.y)) == 1

    def changed(y: LabelArray) -> LabelArray:
        return 5.0 - 2.0 * y if one else 5.0 + 2.0 * y[:, ::-1]

    turned = fit(case.build(samples.layout), samples.X, changed(samples.y))
    own_unit = case.wrapped  # whose penalties may be in units of y
    if not own_unit:
        _compare(case, straight, turned, "quantities in another order and unit")
        if hasattr(straight, "predict"):
            _compare_predictions(
                case, changed(straight.predict(samples.X)), turned.predict(samples.X), "the same"
            )


def _compare(
    case: MethodCase, straight: Estimator, turned: Estimator, what: str, order: Any = slice(None)
) -> None:
    if hasattr(straight, "scores_"):
        require_close(
            turned.scores_, straight.scores_[order], case.tolerance, f"{what}: scores_ differ"
        )


def _compare_predictions(
    case: MethodCase, expected: LabelArray, predicted: LabelArray, what: str
) -> None:
    if predicted.dtype.kind == "f":
        off = np.abs(predicted - expected).max() / np.abs(expected).max()
        require(off <= case.tolerance, f"{what}: predictions differ by {off:.1e} of the largest.")
        return
    same = float((predicted == expected).mean())
    require(same >= case.agreement, f"{what}: {same:.0%} of the predictions are the same.")


def clone_is_unfitted(case: MethodCase, samples: Samples) -> None:
    """A clone has the same parameters, no fitted attribute, and fits to the same bits."""
    model = fitted(case, samples)
    copy = clone(model)
    require(
        repr(copy.get_params(deep=False)) == repr(model.get_params(deep=False)),
        "a clone has other parameters.",
    )
    left = [name for name in vars(copy) if name.endswith("_")]
    require(not left, f"a clone has the fitted attributes {left}.")
    require_same_bits(fit(copy, samples.X, samples.y), model, samples.X, "a clone and its original")


def pickle_is_the_same(case: MethodCase, samples: Samples) -> None:
    """A pickled model predicts and scores to the same bits."""
    model = fitted(case, samples)
    require_same_bits(pickle.loads(pickle.dumps(model)), model, samples.X, "a pickled model")  # noqa: S301 - just made


def model_file_is_the_same(case: MethodCase, samples: Samples) -> None:
    """A model read from a file predicts to the same bits, and holds trusted types only."""
    model = fitted(case, samples)
    with tempfile.TemporaryDirectory() as folder:
        again = _read_back(case, model, Path(folder))
    require(
        type(again) is type(model),
        f"a {type(model).__name__} comes back as a {type(again).__name__}.",
    )
    require(
        repr(again.get_params(deep=False)) == repr(model.get_params(deep=False)),
        "it has other parameters.",
    )
    require_same_bits(again, model, samples.X, "a model from a file")
    if hasattr(model, "transform"):
        require_equal(again.transform(samples.X), model.transform(samples.X), "transform differs")


def _read_back(case: MethodCase, model: Estimator, folder: Path) -> Any:
    untrusted = set(untrusted_types(model))
    class_name = f"{case.cls.__module__}.{case.cls.__qualname__}"
    others = sorted(untrusted - {class_name})
    require(not others, f"a model file names {others}, which load_model does not trust.")
    if not untrusted:
        return load_model(save_model(model, folder / "model.skops"), trust=True)
    import skops.io  # noqa: PLC0415 - a class that is not registered is trusted here alone

    return skops.io.loads(skops.io.dumps(model), trusted=[class_name, *trusted_types()])


def frames_keep_their_names(case: MethodCase, samples: Samples) -> None:
    """A method fitted to a table stores the names of its columns and refuses others."""
    columns = [f"column {i}" for i in range(samples.X.shape[1])]
    frame = pd.DataFrame(samples.X, columns=columns)
    model = fit(case.build(samples.layout), frame, samples.y)
    require(
        list(model.feature_names_in_) == columns, "feature_names_in_ are not the table's columns."
    )
    if hasattr(model, "scores_"):
        require_equal(model.scores_, fitted(case, samples).scores_, "a table and its array")
    if hasattr(model, "get_feature_names_out"):
        names = list(model.get_feature_names_out())
        table = model.set_output(transform="pandas").transform(frame)
        require(
            list(table.columns) == names, "transform's columns are not get_feature_names_out()."
        )
        if isinstance(model, SelectorMixin):
            kept = [columns[i] for i in np.flatnonzero(model.get_support())]
            require(names == kept, "other names than the support's.")
    if hasattr(model, "predict") and not samples.layout.is_multitask:
        try:
            model.predict(frame[columns[::-1]])
        except ValueError:
            return
        raise AssertionError("predict takes a table whose columns stand in another order.")


STORAGE_CHECKS: tuple[SamplesCheck, ...] = (
    clone_is_unfitted,
    pickle_is_the_same,
    model_file_is_the_same,
    frames_keep_their_names,
)
