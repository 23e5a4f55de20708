"""The best solution and the best lower bound of a problem, and the relative duality gap between them.

Both are kept in parts that do not depend on the gammas, so that those of one pair of gammas may certify another: the
same W along a diagonal, or the solution without a term that is negligible.
"""

from __future__ import annotations

import numpy as np

from raysel.solvers.smml.problem import DualPoint, MultimodalProblem, Solution


def relative_gap(objective: float, bound: float) -> float:
    """Relative duality gap (objective - bound) / bound, never below the true (objective - optimum) / optimum.

    Parameters
    ----------
    objective : float
        Objective of a solution, not negative.
    bound : float
        Lower bound of the optimum, not negative.

    Returns
    -------
    float
        The gap; 0 where rounding puts the bound above the objective, infinite where only the bound is 0.

    Examples
    --------
    >>> relative_gap(3.0, 2.0)
    0.5
    """
    if objective <= bound:
        return 0.0
    return (objective - bound) / bound if bound > 0 else np.inf


class Certificate:
    """The best solution and the best lower bound that a solver has found so far.

    Parameters
    ----------
    problem : MultimodalProblem
        The problem that is certified.

    Attributes
    ----------
    problem : MultimodalProblem
        The problem that is certified.
    solution : Solution
        The solution of the lowest objective offered; at first W = 0.
    dual : DualPoint
        The dual point of the highest bound offered; at first that of W = 0.
    """

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
