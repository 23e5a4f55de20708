"""Checks of the fitted attributes of a model from a file: their kinds, and their shapes against each other.

A class declares the shapes in ``fitted_shapes``, beside those of its base classes: ``"n_problems n_features"`` for an
array, alternatives separated by ``|``. Equal names stand for equal sizes within an estimator, and ``n_features`` is
``n_features_in_``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from raysel.base.model_files.classes import SKLEARN
from raysel.core.errors import DataError

#: Attributes of labels or names, which may hold texts.
_TEXTS = ("classes_", "labels_", "embedded_labels_", "y_train_", "feature_names_in_", "_names_")
#: Sizes that follow from the number of classes.
_OF_CLASSES: Mapping[str, Callable[[int], tuple[int, ...]]] = {
    "n_problems": lambda n: (1, 2) if n == 2 else (n,),
    "n_pairs": lambda n: (n * (n - 1) // 2,),
    "n_others": lambda n: (n - 1,),
}


def check_shapes(part: Any, what: str) -> None:
    """Raise a DataError if a part of a model is no plain array, or an estimator with attributes that do not agree."""
    if isinstance(part, np.ndarray):
        plain = part.dtype.kind in "biufU" or all(isinstance(item, str | Real | None) for item in part.ravel())
        if type(part) is not np.ndarray or not plain:
            raise DataError(f"{what} holds an array of {part.dtype}: only numbers and texts are read.")
    elif isinstance(part, np.random.RandomState):
        state: Any = part.get_state(legacy=False)
        if not 0 <= state["state"]["pos"] <= len(state["state"]["key"]):
            raise DataError(f"{what} holds an invalid state of a random number generator; export the model again.")
    elif isinstance(part, BaseEstimator):
        name = _wrong_attribute(part)
        if name:
            raise DataError(
                f"{what}: `{name}` of {type(part).__name__} is not what a fit leaves, or disagrees with the shapes of "
                "other attributes: the file is damaged or forged; export the model again."
            )


def shapes_of(cls: type) -> dict[str, str]:
    """Return the declared shapes of the fitted attributes of a class."""
    declared = {"feature_names_in_": "n_features"}
    for base in reversed(cls.__mro__):
        declared |= vars(base).get("fitted_shapes", {})
    return {**declared, **SKLEARN.get(f"{cls.__module__}.{cls.__qualname__}", {})}


def _wrong_attribute(estimator: BaseEstimator) -> str:
    """Return the name of an attribute that does not fit the others or hides a method; empty if there is none."""
    cls, state = type(estimator), vars(estimator)
    settable = estimator.get_params(deep=False)
    for name in state:
        hidden = getattr(cls, name, None)
        if name not in settable and (callable(hidden) or isinstance(hidden, property)):
            return name
    sizes: dict[str, int] = {}
    if "n_features_in_" in state and not _unified(state["n_features_in_"], "n_features", sizes):
        return "n_features_in_"
    for name, declared in shapes_of(cls).items():
        if name not in state:
            continue
        for shape in declared.split(" | "):
            tried = sizes.copy()
            if _has_shape(state[name], shape, name.endswith(_TEXTS), tried) and _agree(tried):
                sizes = tried
                break
        else:
            return name
    return "n_features_in_" if "n_features" in sizes and "n_features_in_" not in state else ""


def _has_shape(value: Any, shape: str, text: bool, sizes: dict[str, int]) -> bool:
    """Return whether a value has a declared shape, given and completing the sizes that are known."""
    if shape == "none":
        return value is None
    if shape == "scalar":
        return isinstance(value, Real)
    if shape.startswith("= "):
        return _unified(value, shape[2:], sizes)
    number, listed, items = shape.rpartition(":")
    if listed:
        return (
            isinstance(value, list | tuple)
            and _unified(len(value), number, sizes)
            and all(_has_shape(item, items.replace("_i", f"_{i}").strip(), text, sizes) for i, item in enumerate(value))
        )
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = np.array(value)
    if not isinstance(value, np.ndarray) or not (text or value.dtype.kind in "biuf"):
        return False
    names = shape.split()
    return value.ndim == len(names) and all(map(_unified, value.shape, names, [sizes] * value.ndim))


def _unified(size: Any, name: str, sizes: dict[str, int]) -> bool:
    """Return whether a size is that of its name; a new name gets it."""
    if not isinstance(size, Integral) or isinstance(size, bool):
        return False
    return int(size) == (int(name) if name.isdigit() else sizes.setdefault(name, int(size)))


def _agree(sizes: Mapping[str, int]) -> bool:
    """Return whether the sizes that follow from the number of classes do so."""
    n = sizes.get("n_classes")
    return n is None or all(sizes[name] in follow(n) for name, follow in _OF_CLASSES.items() if name in sizes)
