"""Memory of the process that runs a study, by the number of trials."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from raysel import run_study
from raysel.data.synthetic import make_matrix_classification


def peak_memory(trials: int, megabytes: float) -> float:
    """Run a study of short trials in this process and return its peak memory in MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        side = max(8, round((megabytes * 2**20 / 8 / 60) ** 0.5))
        dataset, _ = make_matrix_classification(60, (side, side), random_state=0)
        np.savez(folder / "planted.npz", X=dataset.X, y=dataset.y)
        config = {
            "name": "short-trials",
            "dataset": {"path": str(folder / "planted.npz"), "shape": [side, side]},
            "solver": {
                "name": "smr",
                "params": {"tol": 0.0, "max_iter": 2},
                "space": {"alpha": {"loguniform": [0.01, 0.5]}},
            },
            "evaluation": {"classifier": "knn", "n_features": [4, 16]},
            "cv": {"outer": 2, "inner": 2},
            "search": {"method": "random", "num_samples": trials},
            "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
        }
        run_study(config, output=folder / "study", progress=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print a line for each number of trials, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[50, 200, 800])
    parser.add_argument("--megabytes", type=float, default=0.0, help="of data")
    parser.add_argument("--one", action="store_true", help="run in this process and print the peak only")
    arguments = parser.parse_args()
    if arguments.one:
        print(peak_memory(arguments.trials[0], arguments.megabytes))
        return
    for trials in arguments.trials:
        command = [sys.executable, __file__, "--one", "--trials", str(trials), "--megabytes", str(arguments.megabytes)]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{trials} trials: {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
