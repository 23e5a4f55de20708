"""Whether fits met their ``tol``: of one fitted solver, and counted over many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from raysel.base.estimator import Estimator


@dataclass(frozen=True)
class Convergence:
    """How many fits met their ``tol``.

    Parameters
    ----------
    n_fits : int
        Fits that ended.
    n_converged : int
    gap : float, optional
        The largest relative duality gap; None where the solver has none.
    """

    n_fits: int
    n_converged: int
    gap: float | None

    @classmethod
    def of(cls, fits: Iterable[Any]) -> Convergence:
        """Count fits.

        Parameters
        ----------
        fits : iterable of InnerTrace or RefitRecord

        Returns
        -------
        Convergence
        """
        ended = [fit for fit in fits if fit.converged is not None]
        gaps = [fit.gap for fit in ended if fit.gap is not None]
        return cls(len(ended), sum(fit.converged for fit in ended), max(gaps, default=None))


def convergence_of(solver: Estimator) -> tuple[bool, float | None]:
    """Whether a fitted solver met its ``tol``, and its relative duality gap.

    Parameters
    ----------
    solver : Estimator

    Returns
    -------
    converged : bool
    gap : float or None
        None where the solver certifies none, or the gap is not finite.
    """
    gap = getattr(solver, "dual_gap_", None)
    return bool(solver.converged_), float(gap) if gap is not None and math.isfinite(gap) else None
