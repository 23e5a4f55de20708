"""Checks of fitted attributes by which the compiled code of scikit-learn reads and writes without looking."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, NuSVC

from raysel.errors import DataError

_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_METRICS = ("euclidean", "sqeuclidean", "manhattan", "cityblock", "l1", "l2", "chebyshev", "cosine", "minkowski")


def check_compiled(part: Any, what: str) -> None:
    """Raise a DataError if a support vector machine or a nearest-neighbour classifier would leave its arrays."""
    known = {SVC: _machine, NuSVC: _machine, KNeighborsClassifier: _neighbours}.get(type(part))
    if known is not None and "classes_" in vars(part) and not known(vars(part)):
        raise DataError(
            f"{what} holds a {type(part).__name__} that raysel does not read: it is damaged or forged, or its kernel or"
            " metric is no plain one."
        )


def _machine(state: dict[str, Any]) -> bool:
    """Return whether the numbers of support vectors of the classes sum to their number."""
    counts = state["_n_support"]
    return bool(
        state["kernel"] in _KERNELS
        and "_impl" not in state
        and state["_sparse"] is False
        and (counts >= 0).all()
        and counts.sum(dtype=object) == len(state["support_vectors_"])
        and len(state["support_"]) == len(state["_dual_coef_"].T) == len(state["support_vectors_"])
        and len(state["_probA"]) == len(state["_probB"])
        and len(state["_intercept_"]) == len(counts) * (len(counts) - 1) // 2
    )


def _neighbours(state: dict[str, Any]) -> bool:
    """Return whether the neighbours are found by plain distances, and the codes of their classes exist."""
    codes, classes = state["_y"], state["classes_"]
    n_classes = [len(own) for own in (classes if isinstance(classes, list) else [classes])]
    return bool(
        state["_fit_method"] == "brute"
        and state["_tree"] is None
        and state["effective_metric_"] in _METRICS
        and all(key == "p" and isinstance(p, Real) for key, p in state["effective_metric_params_"].items())
        and state["n_samples_fit_"] == len(state["_fit_X"]) == len(codes)
        and state["outputs_2d_"] is isinstance(classes, list)
        and codes.dtype.kind == "i"
        and (codes >= 0).all()
        and (codes.reshape(len(codes), -1) < np.array(n_classes)).all()
    )
