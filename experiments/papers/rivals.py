"""The selectors of SMR's paper by the names that it gives them, and the training sets that it
draws.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from experiments.experiment import Row
from experiments.papers.printed import printed_smr
from raysel import Dataset
from raysel.base.registry import build_solver

#: Method of raysel, and the parameters that are fixed.
SOLVERS: dict[str, tuple[str, Row]] = {
    "IG": ("information_gain", {}),
    "ReliefF": ("relieff", {}),
    "Fisher": ("fisher_score", {}),
    "RFS": ("rfs", {"alpha_scale": "absolute"}),
    "GLSPFS": ("glspfs", {}),
    "DFS": ("dfs", {}),
    "2DLDA": ("two_dimensional_lda", {}),
}
#: Training images of each class.
PER_CLASS = {"ORL": 5, "PIE": 6, "UMIST": 4, "USPS": 4}
#: The paper's grid of alpha.
ALPHAS = tuple(10.0**exponent for exponent in range(-3, 4))


def selector(method: str, params: Row, data: Dataset) -> Any:
    """Return a method with its parameters; ``SMR`` is the printed one."""
    if method == "SMR":
        return printed_smr(data.layout.shape, **params)
    name, fixed = SOLVERS[method]
    return build_solver(name, data.layout, fixed | params)


def fitted(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit without the warnings of methods that end by their number of iterations, as printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def order_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Features of a fit, the best first."""
    return np.argsort(-fitted(model, X, y).scores_, kind="stable")
