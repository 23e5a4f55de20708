"""Methods that are solved in one step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from raysel.arrays import FloatArray
from raysel.base.estimator import Estimator


class OneShotEstimator(Estimator):
    """A method whose ``iterate`` yields once, when it is fitted; ``_updates`` yields its objective.

    Where a library iterates within that step, the method overrides ``_has_converged`` and ``_not_converged`` to tell
    whether that came to its end.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.capabilities = replace(cls.capabilities, iterates=False)

    @property
    def max_steps(self) -> int:
        """One."""
        return 1

    def _has_converged(self, path: FloatArray) -> bool:
        """Whether the step came to its end: it did."""
        return True

    def _not_converged(self) -> str:
        return f"{type(self).__name__} did not converge."
