"""CPU seconds of the sparse group lasso of a quantity, beside skglm and adelie.

OPENBLAS_NUM_THREADS=1 python -m experiments.benchmarks.structure-speed.groups --peer PYTHON

PYTHON is an interpreter that has skglm and adelie; without it raysel alone is timed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from raysel.solvers.grouped.sparse_group_lasso import SparseGroupLassoRegressor

FOLDER = Path(__file__).parent
#: Samples, columns, columns of a group, and their correlation within a group.
TABLES = [(200, 2000, 10, 0.0), (200, 2000, 10, 0.8)]
#: Shares of alpha_max, and of the penalty of single features.
ALPHAS, SHARES = (0.3, 0.1), (0.0, 0.3)
TOL = 1e-6


def draw(n: int, d: int, size: int, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw centred columns and a standardised quantity that half of five groups' columns make."""
    rng = np.random.default_rng(0)
    common = np.repeat(rng.normal(size=(n, d // size)), size, axis=1)
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(n, d))
    weights = np.zeros((d // size, size))
    weights[:5, : size // 2] = rng.normal(size=(5, size // 2))
    signal = X @ weights.ravel()
    y = signal / signal.std() + rng.normal(size=n)
    return np.asfortranarray(X - X.mean(axis=0)), (y - y.mean()) / y.std()


def objective(
    X: np.ndarray, y: np.ndarray, w: np.ndarray, *, alpha: float, share: float, size: int
) -> float:
    """Return the objective of coefficients of centred samples."""
    groups = np.linalg.norm(w.reshape(-1, size), axis=1).sum()
    penalty = share * np.abs(w).sum() + (1 - share) * np.sqrt(size) * groups
    return float(((y - X @ w) ** 2).mean() / 2 + alpha * penalty)


def by_peer(peer: str, *command: str, problem: dict[str, object]) -> tuple[np.ndarray, float]:
    """Return the coefficients of another package, and its median CPU seconds."""
    with TemporaryDirectory() as folder:
        path, found = Path(folder, "problem.npz"), Path(folder, "found.npz")
        np.savez(path, **problem)
        subprocess.run([peer, FOLDER / "group_peers.py", *command, path, found], check=True)
        with np.load(found) as file:
            return file["w"], float(file["seconds"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row of the table for each problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="interpreter that has skglm and adelie")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args(arguments)
    for table, share, fraction in product(TABLES, SHARES, ALPHAS):
        X, y = draw(*table)
        d, size = table[1:3]
        groups = {str(g): range(g * size, (g + 1) * size) for g in range(d // size)}
        given = {"alpha": fraction, "l1_ratio": share, "tol": TOL}
        seconds = []
        for _ in range(chosen.repeats):
            begun = time.process_time()
            model = SparseGroupLassoRegressor(groups, **given).fit(X, y)
            seconds.append(time.process_time() - begun)
        own, prepared = median(seconds), model.prepare(X, y)
        slopes = np.abs(prepared.penalty(share).dual_norms(prepared.slopes)).max()
        problem = {"alpha": fraction * float(slopes) * prepared.scale, "share": share, "size": size}
        least = objective(X, y, model.coef_, **problem)
        cells = [f"{table[0]} x {d}", str(size), str(table[3]), str(share), str(fraction)]
        cells.append(f"{own:.3f}")
        for name in ("skglm", "adelie"):
            if chosen.peer is None or (name == "adelie" and share > 0):
                cells.append("")
                continue
            w, taken = by_peer(chosen.peer, name, problem={"X": X, "y": y, **problem})
            above = objective(X, y, w, **problem) / least - 1
            cells.append(f"{taken / own:.2f} ({above:.0e})")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
