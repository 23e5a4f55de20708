"""What SMR's starts cost: the default against its first start alone, by iterations, CPU time and
final objective.

Run: RAYSEL_DATA=<folder> python experiments/benchmarks/smr-speed/starts.py
"""

import os
import statistics
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from raysel.solvers.smr import updates
from raysel.solvers.smr.smr import SMR

#: The studies orl-smr, umist-smr and usps-smr: alphas; ranks but the largest, which has one start;
#: inner training sets.
ALPHAS = {"ORL": (0.003, 0.3, 5), "UMIST": (0.003, 0.3, 5), "USPS": (0.001, 0.3, 6)}
RANKS, FOLDS = (2, 4, 8), (0, 3)


def training_sets(name):
    """Two of the fifteen inner training sets of a study, and the shape of the images."""
    with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
    flat = (X.reshape(len(y), -1) - X.min()) / (X.max() - X.min())
    outer = [train for train, _ in StratifiedKFold(5, shuffle=True, random_state=0).split(flat, y)]
    for fold in FOLDS:
        inner, _ = next(
            StratifiedKFold(3, shuffle=True, random_state=fold).split(
                flat[outer[fold]], y[outer[fold]]
            )
        )
        yield flat[outer[fold][inner]], y[outer[fold][inner]], X.shape[1:]


@contextmanager
def first_start_alone():
    """SMR without the comparison of starts."""
    with mock.patch.object(updates, "_opened_by", lambda first, *_: first):
        yield


def fitted(X, y, shape, prepared, alpha, rank):
    """Objective, iterations counted, all iterations run, and CPU seconds of a fit."""
    with mock.patch.object(updates, "_iteration", wraps=updates._iteration) as run:  # noqa: SLF001 - what is counted
        started = time.thread_time()
        smr = SMR(shape, alpha, rank, max_iter=30, tol=1e-4)
        for _ in smr.iterate(X, y, prepared):
            pass
        return smr.objective_path_[-1], smr.n_iter_, run.call_count, time.thread_time() - started


def main():
    """Print a row a data set, and one of all."""
    rows = []
    for name, alphas in ALPHAS.items():
        for X, y, shape in training_sets(name):
            prepared = SMR(shape).prepare(X, y)
            for alpha in np.geomspace(*alphas):
                for rank in RANKS:
                    prepared.kept.clear()
                    both = [fitted(X, y, shape, prepared, alpha, rank)]
                    with first_start_alone():
                        prepared.kept.clear()
                        both.append(fitted(X, y, shape, prepared, alpha, rank))
                    rows.append((name, *both))
    for name in (*ALPHAS, "all"):
        chosen = [row[1:] for row in rows if name in ("all", row[0])]
        ratios = [one[0] / default[0] for default, one in chosen]
        median = [
            statistics.median(values)
            for values in zip(*(d[1:] + o[1:] for d, o in chosen), strict=True)
        ]
        costs = [statistics.median(d[k] / o[k] for d, o in chosen) for k in (2, 3)]
        print(
            f"| {name}, {len(chosen)} | {median[0]:.0f}, {median[1]:.0f} | {median[4]:.0f} |"
            f" {costs[0]:.2f}, {costs[1]:.2f} | {statistics.median(ratios):.4f}, {max(ratios):.4f}"
            f" | {sum(ratio <= 1.01 for ratio in ratios)} |"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
