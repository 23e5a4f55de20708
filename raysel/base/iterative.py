"""Base class of methods that iterate until ``tol`` or ``max_iter`` is reached."""

from __future__ import annotations

from raysel.arrays import FloatArray
from raysel.base.estimator import Estimator


class IterativeEstimator(Estimator):
    """Base class of methods with the parameters ``max_iter`` and ``tol``.

    ``fit`` warns if ``max_iter`` iterations did not reach ``tol``, the relative decrease of the objective.
    """

    # Set by the constructors of the subclasses.
    max_iter: int
    tol: float

    @property
    def max_steps(self) -> int:
        """Maximum number of iterations, ``max_iter``."""
        return self.max_iter

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the relative change of the objective in the last iteration was at most ``tol``."""
        return len(path) > 1 and bool(abs(path[-2] - path[-1]) <= self.tol * abs(path[-2]))

    def _not_converged(self) -> str:
        return (
            f"{type(self).__name__} did not reach tol={self.tol:g} in {self.n_iter_} iterations"
            f"{self._shortfall()}: increase max_iter or tol."
        )

    def _shortfall(self) -> str:
        """Describe the relative change of the last iteration for the warning."""
        if len(self.objective_path_) < 2:
            return ""
        before, last = self.objective_path_[-2:]
        change = abs(before - last) / max(abs(before), 1e-300)
        return f" (the last changed the objective by {change:.1e}, relative)"
