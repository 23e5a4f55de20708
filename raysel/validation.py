"""What raysel takes from scikit-learn's private modules and experimental API, in one place.

A new version of scikit-learn may move these names; then this module alone has to follow.
"""

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["CallbackSupportMixin", "Interval", "StrOptions", "fit_context", "validate_params", "with_callbacks"]


def validate_params(estimator: Any) -> None:
    """Check the parameters of an estimator of scikit-learn's by its own constraints; without effect where it has none.

    Parameters
    ----------
    estimator : estimator

    Raises
    ------
    ValueError
        Naming the parameter, its value and what would do.
    """
    if hasattr(estimator, "_parameter_constraints") and hasattr(estimator, "_validate_params"):
        estimator._validate_params()  # noqa: SLF001 - scikit-learn has no public name for it
