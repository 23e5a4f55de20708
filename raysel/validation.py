"""Imports from scikit-learn's private modules and experimental API.

They are collected here because a new version of scikit-learn may move or rename them.
"""

from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

__all__ = [
    "CallbackSupportMixin",
    "Interval",
    "StrOptions",
    "fit_context",
    "validate_params",
    "validate_samples",
    "with_callbacks",
]


def validate_samples(estimator: Any, *arrays: Any, **checks: Any) -> Any:
    """Validate the input of an estimator by scikit-learn's ``validate_data``.

    Parameters
    ----------
    estimator : estimator
        Estimator whose input it is.
    *arrays
        X, and y if it is needed.
    **checks
        Checks as for ``validate_data``.

    Returns
    -------
    ndarray, or tuple of ndarray
        The validated X, and y if it is given.

    Raises
    ------
    ValueError
        If the input is invalid; for samples that are images it also says how to pass them.
    """
    try:
        return validate_data(estimator, *arrays, **checks)
    except ValueError as error:
        sides = np.shape(arrays[0])[1:] if hasattr(arrays[0], "shape") else ()
        if len(sides) < 2 or "Found array with dim" not in str(error):
            raise
        shape = "" if not hasattr(estimator, "shape") or len(sides) > 2 else f", and set shape={sides}"
        raise ValueError(
            f"{error} Samples of shape {sides} are passed as rows, by X.reshape(len(X), -1){shape}."
        ) from error


def validate_params(estimator: Any) -> None:
    """Validate the parameters of a scikit-learn estimator against its own constraints.

    Parameters
    ----------
    estimator : estimator
        Estimator to validate. One that declares no constraints is not checked.

    Raises
    ------
    ValueError
        If a parameter is invalid; the message names the parameter, its value and the valid values.
    """
    if hasattr(estimator, "_parameter_constraints") and hasattr(estimator, "_validate_params"):
        estimator._validate_params()  # noqa: SLF001 - scikit-learn has no public name for it
