"""A solution and a lower bound, and the relative duality gap between the best of each.

Both are kept in parts that do not depend on the gammas, so what was found for one pair of gammas may certify another:
the same W along a diagonal, or the solution without a term that has become negligible.
"""

from __future__ import annotations

import numpy as np

from raysel.solvers.smml.problem import DualPoint, MultimodalProblem, Solution


def relative_gap(objective: float, bound: float) -> float:
    """(objective - bound) / bound, never below the true (objective - optimum) / optimum; 0 where both are 0."""
    if objective <= bound:
        return 0.0
    return (objective - bound) / bound if bound > 0 else np.inf


class Certificate:
    """The best solution and the best lower bound that a solver has found so far.

    Attributes
    ----------
    problem : MultimodalProblem
    solution : Solution
        The one of lowest objective; at first W = 0.
    dual : DualPoint
        The one of highest bound; at first that of W = 0.
    """

    def __init__(self, problem: MultimodalProblem) -> None:
        self.problem = problem
        self.solution = problem.solution(np.zeros_like(problem.prepared.gradient))
        self.dual = problem.null_dual_point()

    @property
    def objective(self) -> float:
        """P of the best solution."""
        return self.solution.objective(self.problem.gamma1, self.problem.gamma2)

    @property
    def bound(self) -> float:
        """The best lower bound."""
        return self.dual.bound(self.problem.gamma1, self.problem.gamma2)

    @property
    def gap(self) -> float:
        """The relative duality gap, an upper bound of (P - P*) / P*."""
        return relative_gap(self.objective, self.bound)

    def offer(self, solution: Solution) -> None:
        """Keep the solution if it is better."""
        if solution.objective(self.problem.gamma1, self.problem.gamma2) < self.objective:
            self.solution = solution

    def offer_dual(self, dual: DualPoint) -> None:
        """Keep the dual point if its bound is higher."""
        if dual.bound(self.problem.gamma1, self.problem.gamma2) > self.bound:
            self.dual = dual
