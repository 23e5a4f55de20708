"""CPU seconds of graph net and TV-l1 to an objective, beside nilearn's SpaceNet.

RAYSEL_DATA=<folder> python -m experiments.benchmarks.structure-speed.run --peer PYTHON

PYTHON is an interpreter that has nilearn; without it raysel alone is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from scipy.ndimage import gaussian_filter

from raysel.base.registry import build_solver
from raysel.data.layouts import Tensor

ALPHA, L1_RATIO = 0.05, 0.5
#: How far above the optimum an objective is at most, relative.
LEVELS = (1e-4, 1e-6)
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Problem:
    """Samples of an array, and a quantity or the signs of two classes."""

    name: str
    penalty: str
    loss: str
    sides: tuple[int, ...]
    X: np.ndarray
    y: np.ndarray


def draw(sides: tuple[int, ...], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw smooth noise, and a quantity that two regions of it make, with as much noise again."""
    rng = np.random.default_rng(0)
    X = gaussian_filter(rng.standard_normal((n, *sides)), (0, *[1.0] * len(sides)))
    weights = np.zeros(sides)
    weights[tuple(slice(side // 5, side // 2 + 1) for side in sides)] = 1.0
    weights[tuple(slice(3 * side // 5, 4 * side // 5 + 1) for side in sides)] = -1.0
    scores = X.reshape(n, -1) @ weights.ravel()
    return X.reshape(n, -1) / X.std(), scores + scores.std() * rng.standard_normal(n)


def faces() -> tuple[np.ndarray, np.ndarray]:
    """Load ORL's images, in [0, 1], with 1 for the first 20 persons and 0 for the others."""
    with np.load(Path(os.environ["RAYSEL_DATA"]) / "ORL.npz") as file:
        X, y = file["X"].reshape(len(file["y"]), -1) / 255.0, file["y"]
    return X, (y < 20).astype(float)


DATA: dict[str, tuple[tuple[int, ...], Callable[[], tuple[np.ndarray, np.ndarray]]]] = {
    "signal": ((1000, 1, 1), lambda: draw((1000, 1, 1), 100)),
    "faces": ((32, 32, 1), faces),
    "volume": ((20, 20, 20), lambda: draw((20, 20, 20), 100)),
}


def problems(names: Sequence[str]) -> Iterator[Problem]:
    """Yield data sets with each penalty and loss."""
    for name, penalty in product(names, ["graph_net", "tv_l1"]):
        sides, load = DATA[name]
        X, y = load()
        X = X - X.mean(axis=0)
        above = np.where(y > np.median(y), 1.0, -1.0)
        yield Problem(name, penalty, "mse", sides, X, (y - y.mean()) / y.std())
        yield Problem(name, penalty, "logistic", sides, X, above)


@dataclass(frozen=True)
class Solved:
    """The course of a fit."""

    seconds: np.ndarray
    objectives: np.ndarray
    gaps: np.ndarray
    alpha: float

    def until(self, level: float) -> float:
        """CPU seconds until the objective is at most so high."""
        return float(self.seconds[self.objectives <= level][0])

    def proved(self, gap: float) -> float:
        """CPU seconds until the duality gap is at most so large."""
        return float(self.seconds[self.gaps <= gap][0])


def solve(problem: Problem, enough: float = -np.inf) -> Solved:
    """Fit by raysel until half of the last level is proved, or the objective is low enough."""
    method, y = problem.penalty, problem.y
    if problem.loss == "mse":
        method = f"{method}_regressor"
    given = {"alpha": ALPHA, "l1_ratio": L1_RATIO, "tol": LEVELS[-1] / 2, "max_iter": 10**5}
    model = build_solver(method, Tensor(problem.sides), given)
    course = []
    begun = time.process_time()
    prepared = model.prepare(problem.X, y)
    for objective in model.iterate(problem.X, y, prepared):
        course += [(time.process_time() - begun, objective, model.dual_gap_)]
        if objective <= enough:
            break
    alpha = ALPHA * prepared.largest_slope * prepared.scale / L1_RATIO
    return Solved(*np.array(course).T, alpha)


def by_nilearn(
    peer: str, problem: Problem, alpha: float, levels: Sequence[float], limit: float
) -> tuple[list[float], float]:
    """Return nilearn's seconds to the levels that it reached, and its lowest objective."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        values = {"X": problem.X, "y": problem.y, "sides": problem.sides, "alpha": alpha}
        values |= {"loss": problem.loss, "penalty": problem.penalty, "levels": levels}
        np.savez(path, l1_ratio=L1_RATIO, limit=limit, **values)
        command = [peer, FOLDER / "spacenet.py", path]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, lowest = json.loads(done.stdout)
    return seconds, lowest


def ratios(reached: Sequence[list[float]], ours: Sequence[float], limit: float) -> str:
    """Write the peer's median seconds as ratios to ours."""
    shown = []
    for place, seconds in enumerate(ours):
        runs = [run[place] if place < len(run) else np.inf for run in reached]
        found = median(runs)
        sign = ""
        if np.isinf(found):
            found, sign = limit, "> "
        shown.append(f"{sign}{found / seconds:.0f}")
    return " / ".join(shown)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row of the table for each problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="interpreter that has nilearn")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of the peer, at most")
    chosen = parser.parse_args(arguments)
    for problem in problems(chosen.data):
        whole = solve(problem)
        least = float(whole.objectives[-1])
        levels = [least * (1 + level) for level in LEVELS]
        runs = [solve(problem, enough=levels[-1]) for _ in range(chosen.repeats)]
        ours = [median(run.until(level) for run in runs) for level in levels]
        proofs = [whole.proved(level) for level in LEVELS]
        cells = [problem.name, problem.penalty, problem.loss]
        cells += [" / ".join(f"{s:.2f}" for s in times) for times in (ours, proofs)]
        if chosen.peer:
            found = [
                by_nilearn(chosen.peer, problem, whole.alpha, levels=levels, limit=chosen.limit)
                for _ in range(chosen.repeats)
            ]
            lowest = min(objective for _, objective in found)
            cells += [ratios([seconds for seconds, _ in found], ours, chosen.limit)]
            cells += [f"{lowest / least - 1:.1e}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
