"""Data sets that come with scikit-learn, by name."""

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

#: The names that `load_dataset` knows without a file.
BUILTIN_NAMES = tuple(_LOADERS)


def load_builtin(name: str) -> RawData:
    """One of scikit-learn's built-in sets: images as (n, h, w), tables with their feature names.

    Parameters
    ----------
    name : str
        One of ``BUILTIN_NAMES``.

    Returns
    -------
    RawData
    """
    bunch = _LOADERS[name]()
    if "images" in bunch:
        return RawData(X=bunch.images, y=bunch.target, name=name)
    return RawData(X=bunch.data, y=bunch.target, feature_names=tuple(bunch.feature_names), name=name)
