"""SMR as the paper prints it: its start, its 30 iterations, and no proof that the solution is
zero.
"""

from __future__ import annotations

from raysel import SMR


class PrintedSMR(SMR):
    """SMR that is iterated even where zero is the optimum, and ranks by what is left."""

    def is_zero_solution(self, prepared: object) -> bool:
        """Return False: the paper's algorithm does not ask."""
        return False


def printed_smr(shape: tuple[int, int], alpha: float, rank: int) -> PrintedSMR:
    """Return SMR with the settings of the paper: absolute alpha, V = [I; 0], D = 1, 30
    iterations or change < 1e-6.
    """
    return PrintedSMR(
        shape, alpha, rank, alpha_scale="absolute", init="identity", max_iter=30, tol=1e-6
    )
