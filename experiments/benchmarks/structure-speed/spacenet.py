"""CPU seconds in which a solver of nilearn's SpaceNet reaches objectives of a stored problem.

Run by an interpreter that has nilearn: python spacenet.py PROBLEM.npz
"""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np


class Reached:
    """Callback of nilearn's FISTA that stops at the last level."""

    def __init__(self, levels: list[float]) -> None:
        self.levels = levels
        self.begun = time.process_time()
        self.seconds: list[float] = []
        self.lowest = np.inf

    def __call__(self, state: dict[str, Any]) -> bool:
        """Note the time at which each level was reached, of the objective before the iteration."""
        seconds = time.process_time() - self.begun
        self.lowest = min(self.lowest, state["old_energy"])
        while self.waiting and self.lowest <= self.waiting[0]:
            self.seconds.append(seconds)
        return not self.waiting

    @property
    def waiting(self) -> list[float]:
        """Levels that are not reached yet, the highest first."""
        return self.levels[len(self.seconds) :]


def end(*_: Any) -> None:
    """Stop the solver at the limit of CPU seconds."""
    raise TimeoutError


def main() -> None:
    """Print the seconds of the levels that were reached, and the lowest objective."""
    from nilearn.decoding import space_net_solvers  # noqa: PLC0415 - of another environment

    with np.load(sys.argv[1]) as file:
        problem = dict(file)
    n = len(problem["X"])
    loss, penalty = str(problem["loss"]), str(problem["penalty"])
    # Sums over the samples, where raysel has means; a volume has three axes.
    reached = Reached((n * problem["levels"]).tolist())
    solver, named = space_net_solvers.tvl1_solver, {"loss": loss}
    if penalty == "graph_net":
        named = {}
        solver = space_net_solvers.graph_net_logistic
        if loss == "mse":
            solver = space_net_solvers.graph_net_squared_loss
    signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, float(problem["limit"]))
    with suppress(TimeoutError):
        solver(
            problem["X"],
            problem["y"],
            n * float(problem["alpha"]),
            float(problem["l1_ratio"]),
            np.ones(problem["sides"], dtype=bool),
            tol=0.0,
            max_iter=10**7,
            callback=reached,
            **named,
        )
    print(json.dumps([reached.seconds, reached.lowest / n]))


if __name__ == "__main__":
    main()
