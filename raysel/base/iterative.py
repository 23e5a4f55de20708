"""Base classes of methods that iterate until ``tol`` or ``max_iter`` is reached, and of those solved in one step."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

from raysel.base.estimator import Estimator
from raysel.core.arrays import FloatArray, Interval


class IterativeEstimator(Estimator):
    """Base class of methods with the parameters ``max_iter`` and ``tol``.

    A method that sets ``dual_gap_`` in each iteration ends where the objective is proved to be within ``tol`` of the
    optimum, relative; others where an iteration lowers it by at most ``tol``. ``fit`` warns if ``max_iter`` iterations
    did not reach that.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    # Set by the constructors of the subclasses.
    max_iter: int
    tol: float

    #: Upper bound of how far the objective is above the optimum, relative; None where no bound is known.
    dual_gap_: float | None = None

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, ``max_iter``."""
        return self.max_iter

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the duality gap or, without one, the last change of the objective was at most ``tol``."""
        if self.dual_gap_ is not None:
            return self.dual_gap_ <= self.tol
        return len(path) > 1 and bool(abs(path[-2] - path[-1]) <= self.tol * abs(path[-2]))

    def _not_converged(self) -> str:
        return (
            f"{type(self).__name__} did not reach tol={self.tol:g} in {self.n_iter_} iterations"
            f"{self._shortfall()}: increase max_iter or tol."
        )

    def _shortfall(self) -> str:
        """Describe the duality gap or the relative change of the last iteration for the warning."""
        if self.dual_gap_ is not None:
            return f" (relative duality gap {self.dual_gap_:.1e})"
        if len(self.objective_path_) < 2:
            return ""
        before, last = self.objective_path_[-2:]
        change = abs(before - last) / max(abs(before), 1e-300)
        return f" (the last changed the objective by {change:.1e}, relative)"


class OneShotEstimator(Estimator):
    """Base class of methods whose ``_updates`` yields once, the objective of the fitted estimator.

    A method that calls an iterative solver of a library overrides ``_has_converged`` and ``_not_converged`` to report
    its convergence.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.capabilities = replace(cls.capabilities, iterates=False)

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, 1."""
        return 1

    def _has_converged(self, path: FloatArray) -> bool:
        """Return True: a direct solution needs no convergence test."""
        return True

    def _not_converged(self) -> str:
        return f"{type(self).__name__} did not converge."
