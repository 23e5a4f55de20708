"""Models as files, read back without running anything that the file brings along."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from functools import cache
from inspect import isclass
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import raysel.baselines
import raysel.data
import raysel.solvers
from raysel.errors import DataError
from raysel.files import write_result


@cache
def trusted_types() -> frozenset[str]:
    """The classes of raysel's own that a model file may name: the estimators of its solvers, baselines and data.

    Whatever else a file holds must be among what skops trusts by itself: scikit-learn's estimators,
    arrays, numbers and strings.

    Returns
    -------
    frozenset of str
        Dotted names.

    Examples
    --------
    >>> "raysel.data.scaling.UnitScaler" in trusted_types()
    True
    """
    names = [
        found.name
        for package in (raysel.solvers, raysel.baselines, raysel.data)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    classes = [value for name in names for value in vars(importlib.import_module(name)).values() if isclass(value)]
    own = [cls for cls in classes if issubclass(cls, BaseEstimator) and cls.__module__ in names]
    return frozenset(f"{cls.__module__}.{cls.__qualname__}" for cls in own)


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model in skops' format, without its callbacks.

    Parameters
    ----------
    model : estimator
        One of raysel's, or a scikit-learn pipeline of such; left as it is.
    path : str or Path
        E.g. ``model.skops``.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        If `load_model` would refuse the file.
    StudyError
        If the file cannot be written.
    """
    import skops.io  # noqa: PLC0415 - takes a second, and most commands need it late or never

    content = skops.io.dumps(_without_callbacks(model))
    _refuse_strangers(content, "the model")
    return write_result(path, content)


def load_model(path: str | Path) -> Any:
    """Read a model that `save_model` wrote; nothing is unpickled.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    DataError
        If there is no such file, it is cut short or no model at all, or it names a type that is
        neither raysel's nor one that skops trusts.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.scaling import UnitScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(UnitScaler().fit([[0], [4]]), Path(folder, "scaler.skops"))).range_
    4.0
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"the model {path} cannot be read: {error.strerror}.") from error
    _refuse_strangers(content, str(path))
    import skops.io  # noqa: PLC0415

    try:
        model = skops.io.loads(content, trusted=sorted(trusted_types()))
    except Exception as error:  # a damaged array may raise anything
        raise DataError(_damaged(str(path), error)) from error
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{path} holds a {type(model).__name__}, not a model.")
    return model


def _refuse_strangers(content: bytes, what: str) -> None:
    import skops.io  # noqa: PLC0415

    try:
        named = skops.io.get_untrusted_types(data=content)
    except Exception as error:  # what is no skops file may raise anything
        raise DataError(_damaged(what, error)) from error
    if strangers := sorted(set(named) - trusted_types()):
        raise DataError(
            f"{what} names {', '.join(strangers)}: neither raysel's nor what skops trusts, so it may run code of its"
            " own. Only models of raysel's and scikit-learn's classes are read."
        )


def _damaged(what: str, error: Exception) -> str:
    return f"{what} is no skops file, or it is cut short or damaged ({type(error).__name__}); export the model again."


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """A copy of a model and of the estimators within it, without scikit-learn's callbacks."""
    attached = [vars(part)["_skl_callbacks"] for part in _parts(model) if "_skl_callbacks" in vars(part)]
    # What stands in the memo is taken for the copy: callbacks hold locks and handles that cannot be copied.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in _parts(copied):
        vars(part).pop("_skl_callbacks", None)
    return copied


def _parts(model: BaseEstimator) -> list[BaseEstimator]:
    return [model, *(value for value in model.get_params().values() if isinstance(value, BaseEstimator))]
