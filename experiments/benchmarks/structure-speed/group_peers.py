"""Coefficients of a stored problem by skglm or adelie, and the median CPU seconds of three fits.

Run by an interpreter that has the package: python group_peers.py skglm PROBLEM.npz FOUND.npz
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import numpy as np


def by_skglm(problem: dict[str, Any]) -> np.ndarray:
    """Fit by block coordinate descent."""
    from skglm.datafits import QuadraticGroup  # noqa: PLC0415 - of another environment
    from skglm.penalties import WeightedGroupL2, WeightedL1GroupL2  # noqa: PLC0415
    from skglm.solvers import GroupBCD  # noqa: PLC0415

    d, size, share = problem["X"].shape[1], int(problem["size"]), float(problem["share"])
    bounds, columns = np.arange(0, d + 1, size, dtype=np.int32), np.arange(d, dtype=np.int32)
    weights = np.full(d // size, (1 - share) * np.sqrt(size))
    alpha = float(problem["alpha"])
    penalty, strategy = WeightedGroupL2(alpha, weights, bounds, columns), "subdiff"
    if share > 0:
        singles = np.full(d, share)
        penalty = WeightedL1GroupL2(alpha, weights, singles, bounds, columns)
        strategy = "fixpoint"
    solver = GroupBCD(fit_intercept=False, tol=1e-5, max_iter=1000, ws_strategy=strategy)
    return solver.solve(problem["X"], problem["y"], QuadraticGroup(bounds, columns), penalty)[0]


def by_adelie(problem: dict[str, Any]) -> np.ndarray:
    """Fit the group lasso, of one alpha."""
    import adelie  # noqa: PLC0415 - of another environment

    state = adelie.grpnet(
        np.asfortranarray(problem["X"]),
        adelie.glm.gaussian(problem["y"]),
        groups=np.arange(0, problem["X"].shape[1], int(problem["size"])),
        lmda_path=[float(problem["alpha"])],
        early_exit=False,
        progress_bar=False,
        tol=1e-9,
    )
    return np.asarray(state.betas.todense())[-1]


def main() -> None:
    """Store the coefficients and the seconds; the first fit compiles."""
    name, path, found = sys.argv[1:]
    with np.load(path) as file:
        problem = dict(file)
    fit = {"skglm": by_skglm, "adelie": by_adelie}[name]
    fit(problem)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        w = fit(problem)
        seconds.append(time.process_time() - begun)
    np.savez(found, w=w, seconds=median(seconds))


if __name__ == "__main__":
    main()
