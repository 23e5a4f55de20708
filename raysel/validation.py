"""Imports from scikit-learn's private modules and experimental API.

They are collected here because a new version of scikit-learn may move or rename them.
"""

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["CallbackSupportMixin", "Interval", "StrOptions", "fit_context", "validate_params", "with_callbacks"]


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
