"""Base class of methods that are solved in one step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raysel.arrays import FloatArray
from raysel.base.estimator import Estimator


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
