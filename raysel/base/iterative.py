"""Methods that approach their solution in iterations, until ``tol`` or ``max_iter``."""

from __future__ import annotations

from raysel.arrays import FloatArray
from raysel.base.estimator import Estimator


class IterativeEstimator(Estimator):
    """A method with the parameters ``max_iter`` and ``tol``.

    ``fit`` warns where ``max_iter`` iterations did not reach ``tol``.
    """

    # Declared, not assigned: each method's constructor sets them.
    max_iter: int
    tol: float

    @property
    def max_steps(self) -> int:
        """The most iterations: ``max_iter``."""
        return self.max_iter

    def _has_converged(self, path: FloatArray) -> bool:
        """Whether the last iteration lowered the objective by less than ``tol``, relative."""
        return len(path) > 1 and bool(abs(path[-2] - path[-1]) <= self.tol * abs(path[-2]))

    def _not_converged(self) -> str:
        return (
            f"{type(self).__name__} did not reach tol={self.tol:g} in {self.n_iter_} iterations"
            f"{self._shortfall()}: raise max_iter or tol."
        )

    def _shortfall(self) -> str:
        """How far the last iteration was from ``tol``, for the warning."""
        if len(self.objective_path_) < 2:
            return ""
        before, last = self.objective_path_[-2:]
        return f" (the last lowered the objective by {abs(before - last) / max(abs(before), 1e-300):.1e}, relative)"
