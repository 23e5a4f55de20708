"""Checks of clones, copies and model files, and of the names of features."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin

from raysel.base.estimator import Estimator
from raysel.base.models import load_model, save_model, trusted_types, untrusted_types
from raysel.testing.checks import require, require_equal
from raysel.testing.estimators.samples import MethodCase, Samples, SamplesCheck, fit, fitted, require_same_bits


def clone_is_unfitted(case: MethodCase, samples: Samples) -> None:
    """A clone has the same parameters, no fitted attribute, and fits to the same bits."""
    model = fitted(case, samples)
    copy = clone(model)
    require(repr(copy.get_params(deep=False)) == repr(model.get_params(deep=False)), "a clone has other parameters.")
    left = [name for name in vars(copy) if name.endswith("_")]
    require(not left, f"a clone has the fitted attributes {left}.")
    require_same_bits(fit(copy, samples.X, samples.y), model, samples.X, "a clone and its original")


def pickle_is_the_same(case: MethodCase, samples: Samples) -> None:
    """A pickled model predicts and scores to the same bits."""
    model = fitted(case, samples)
    require_same_bits(pickle.loads(pickle.dumps(model)), model, samples.X, "a pickled model")  # noqa: S301 - just made


def model_file_is_the_same(case: MethodCase, samples: Samples) -> None:
    """A model read from a file predicts and scores to the same bits, and the file contains trusted types only."""
    model = fitted(case, samples)
    with tempfile.TemporaryDirectory() as folder:
        again = _read_back(case, model, Path(folder))
    require(type(again) is type(model), f"a {type(model).__name__} comes back as a {type(again).__name__}.")
    require(repr(again.get_params(deep=False)) == repr(model.get_params(deep=False)), "it has other parameters.")
    require_same_bits(again, model, samples.X, "a model from a file")
    if hasattr(model, "transform"):
        require_equal(again.transform(samples.X), model.transform(samples.X), "transform differs")


def _read_back(case: MethodCase, model: Estimator, folder: Path) -> Any:
    untrusted = set(untrusted_types(model))
    class_name = f"{case.cls.__module__}.{case.cls.__qualname__}"
    others = sorted(untrusted - {class_name})
    require(not others, f"a model file names {others}, which load_model does not trust.")
    if not untrusted:
        return load_model(save_model(model, folder / "model.skops"))
    import skops.io  # noqa: PLC0415 - a class that is not registered is trusted here alone

    return skops.io.loads(skops.io.dumps(model), trusted=[class_name, *trusted_types()])


def frames_keep_their_names(case: MethodCase, samples: Samples) -> None:
    """A method fitted to a table stores its column names, refuses other columns, and names those of ``transform``."""
    columns = [f"column {i}" for i in range(samples.X.shape[1])]
    frame = pd.DataFrame(samples.X, columns=columns)
    model = fit(case.build(samples.layout), frame, samples.y)
    require(list(model.feature_names_in_) == columns, "feature_names_in_ are not the table's columns.")
    if hasattr(model, "scores_"):
        require_equal(model.scores_, fitted(case, samples).scores_, "a table and its array")
    if hasattr(model, "get_feature_names_out"):
        names = list(model.get_feature_names_out())
        table = model.set_output(transform="pandas").transform(frame)
        require(list(table.columns) == names, "transform's columns are not get_feature_names_out().")
        if isinstance(model, SelectorMixin):
            kept = [columns[i] for i in np.flatnonzero(model.get_support())]
            require(names == kept, "other names than the support's.")
    if hasattr(model, "predict") and not samples.layout.is_multitask:
        try:
            model.predict(frame[columns[::-1]])
        except ValueError:
            return
        raise AssertionError("predict takes a table whose columns stand in another order.")


CHECKS: tuple[SamplesCheck, ...] = (
    clone_is_unfitted,
    pickle_is_the_same,
    model_file_is_the_same,
    frames_keep_their_names,
)
