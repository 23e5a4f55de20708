"""Convergence of fits: of one fitted solver, and counted over many."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from raysel.arrays import FloatArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.metrics.ranks import descending_order


@dataclass(frozen=True)
class Convergence:
    """Number of fits that met their ``tol``."""

    n_fits: int
    n_converged: int
    gap: float | None

    @classmethod
    def of(cls, fits: Iterable[Any]) -> Convergence:
        """Count the fits that ended and those that converged."""
        ended = [fit for fit in fits if fit.converged is not None]
        gaps = [fit.gap for fit in ended if fit.gap is not None]
        return cls(len(ended), sum(fit.converged for fit in ended), max(gaps, default=None))


def convergence_of(solver: Estimator) -> tuple[bool, float | None]:
    """Return whether a fitted solver met its ``tol``, and its relative duality gap."""
    gap = getattr(solver, "dual_gap_", None)
    return bool(solver.converged_), float(gap) if gap is not None and math.isfinite(gap) else None


def other_start(
    solver: Estimator, X: FloatArray, y: LabelArray, scores: FloatArray | None, n: int
) -> dict[str, float] | None:
    """Fit from another start, and compare the best features; None if the optimum depends on no start.

    `scores` is (n_features,).
    """
    other = solver.another_start()
    if other is None or scores is None or not scores.any():
        return None
    n = min(n, int(np.count_nonzero(scores)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other.fit(X, y)
    shared = np.intersect1d(descending_order(scores)[:n], descending_order(other.scores_)[:n])
    own = float(solver.objective_path_[-1])
    excess = (float(other.objective_path_[-1]) - own) / abs(own) if own else 0.0
    return {"n": n, "shared": len(shared), "excess": excess, "n_iter": int(other.n_iter_)}
