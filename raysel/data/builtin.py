"""Data sets that are included in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn import datasets

from raysel.data.formats.files import RawData

_LOADERS: dict[str, Callable[[], Any]] = {
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
}

#: Names that `load_dataset` accepts in place of a file.
BUILTIN_NAMES = tuple(_LOADERS)


def load_builtin(name: str) -> RawData:
    """Load one of the data sets that are included in scikit-learn."""
    bunch = _LOADERS[name]()
    if "images" in bunch:
        return RawData(X=bunch.images, y=bunch.target, name=name)
    return RawData(X=bunch.data, y=bunch.target, feature_names=tuple(bunch.feature_names), name=name)
