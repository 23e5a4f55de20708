"""Convergence of fits: of one fitted solver, and counted over many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from raysel.base.estimator import Estimator


@dataclass(frozen=True)
class Convergence:
    """Number of fits that met their ``tol``.

    Parameters
    ----------
    n_fits : int
        Number of fits that ended.
    n_converged : int
        Number of those that met their ``tol``.
    gap : float or None
        Largest relative duality gap of the fits; None if the solver computes none.
    """

    n_fits: int
    n_converged: int
    gap: float | None

    @classmethod
    def of(cls, fits: Iterable[Any]) -> Convergence:
        """Count the fits that ended and those that converged.

        Parameters
        ----------
        fits : iterable of InnerTrace or RefitRecord
            Fits to count; those without a recorded end are ignored.

        Returns
        -------
        Convergence
            Counts and the largest gap of the fits that ended.
        """
        ended = [fit for fit in fits if fit.converged is not None]
        gaps = [fit.gap for fit in ended if fit.gap is not None]
        return cls(len(ended), sum(fit.converged for fit in ended), max(gaps, default=None))


def convergence_of(solver: Estimator) -> tuple[bool, float | None]:
    """Return whether a fitted solver met its ``tol``, and its relative duality gap.

    Parameters
    ----------
    solver : Estimator
        Fitted solver.

    Returns
    -------
    converged : bool
        Whether the solver met its ``tol``.
    gap : float or None
        Relative duality gap; None if the solver computes none or it is not finite.
    """
    gap = getattr(solver, "dual_gap_", None)
    return bool(solver.converged_), float(gap) if gap is not None and math.isfinite(gap) else None
