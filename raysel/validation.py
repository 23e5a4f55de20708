"""What raysel takes from scikit-learn's private modules and experimental API, in one place.

A new version of scikit-learn may move these names; then this module alone has to follow.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["CallbackSupportMixin", "Interval", "StrOptions", "fit_context", "with_callbacks"]
