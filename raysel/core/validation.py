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
    """Validate the input of an estimator by scikit-learn's ``validate_data``."""
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
    """Validate the parameters of a scikit-learn estimator against its own constraints."""
    if hasattr(estimator, "_parameter_constraints") and hasattr(estimator, "_validate_params"):
        estimator._validate_params()  # noqa: SLF001 - scikit-learn has no public name for it
