"""The best solution and the best lower bound of a problem, and the relative duality gap between them.

Both are kept in parts that do not depend on the gammas, so that those of one pair of gammas may certify another: the
same W along a diagonal, or the solution without a term that is negligible.
"""

from __future__ import annotations

import numpy as np

from raysel.solvers.smml.problem import DualPoint, MultimodalProblem, Solution


def relative_gap(objective: float, bound: float) -> float:
    """Relative duality gap (objective - bound) / bound, never below the true (objective - optimum) / optimum."""
    if objective <= bound:
        return 0.0
    return (objective - bound) / bound if bound > 0 else np.inf


class Certificate:
    """The best solution and the best lower bound that a solver has found so far."""

    def __init__(self, problem: MultimodalProblem) -> None:
        self.problem = problem
        self.solution = problem.solution(np.zeros_like(problem.prepared.gradient))
        self.dual = problem.null_dual_point()

    @property
    def objective(self) -> float:
        """Objective P of the best solution."""
        return self.solution.objective(self.problem.gamma1, self.problem.gamma2)

    @property
    def bound(self) -> float:
        """Best lower bound of P."""
        return self.dual.bound(self.problem.gamma1, self.problem.gamma2)

    @property
    def gap(self) -> float:
        """Relative duality gap, an upper bound of (P - P*) / P*."""
        return relative_gap(self.objective, self.bound)

    def offer(self, solution: Solution) -> None:
        """Keep the solution if its objective is lower."""
        if solution.objective(self.problem.gamma1, self.problem.gamma2) < self.objective:
            self.solution = solution

    def offer_dual(self, dual: DualPoint) -> None:
        """Keep the dual point if its bound is higher."""
        if dual.bound(self.problem.gamma1, self.problem.gamma2) > self.bound:
            self.dual = dual
