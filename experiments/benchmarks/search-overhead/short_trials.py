"""Wall time that Ray, journal, progress and MLflow add to a trial of 30 ms, on 2 processes."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
from joblib import Parallel, parallel_config
from study_runs import check_same_work, run_joblib, run_raysel

from raysel.data.synthetic import make_matrix_classification
from raysel.execution.ray.session import ray_session
from raysel.run.api import prepare_study

N_PROCESSES = 2


def main() -> None:
    """Print a line a repeat, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument(
        "--iterations", type=int, default=5, help="of each fit: sets how long a trial takes"
    )
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ray_session(None):
        folder = Path(name)
        dataset, _ = make_matrix_classification(60, (8, 8), random_state=0)
        np.savez(folder / "planted.npz", X=dataset.X, y=dataset.y)
        study = prepare_study(
            {
                "name": "short-trials",
                "dataset": {"path": str(folder / "planted.npz"), "shape": [8, 8]},
                "solver": {
                    "name": "smr",
                    "params": {"tol": 0.0, "max_iter": arguments.iterations},
                    "space": {"alpha": {"loguniform": [0.01, 0.5]}},
                },
                "evaluation": {"classifier": "knn", "n_features": [4, 16]},
                "cv": {"outer": 2, "inner": 2},
                "search": {"method": "random", "num_samples": arguments.trials},
            }
        )
        added, told, took = [], [], []
        with parallel_config("loky", inner_max_num_threads=1), Parallel(N_PROCESSES) as pool:
            run_joblib(study, pool)  # starts the processes, imports and caches
            for repeat in range(arguments.repeats):
                ours = run_raysel(study, folder / f"study{repeat}")
                plain = run_joblib(study, pool)
                check_same_work(ours, plain)
                wall, ideal = (
                    ours["refit"] - ours["first trial"],
                    plain["refit"] - plain["first trial"],
                )
                rest = ours["end"] - ours["MLflow"]
                added.append(1e3 * (wall - ideal) / arguments.trials)
                told.append(1e3 * (wall + rest - ideal) / arguments.trials)
                took.append(1e3 * plain["busy"] / arguments.trials)
                print(
                    f"{arguments.trials} trials of {took[-1]:.0f} ms"
                    f" (in raysel's workers {1e3 * ours['busy'] / arguments.trials:.0f} ms):"
                    f" raysel {wall:.1f} s, joblib {ideal:.1f} s, added to each {added[-1]:.1f} ms,"
                    f" {told[-1]:.1f} ms with the wait for MLflow after the study"
                    f" | before: first actor {ours['first trial'] - ours['prepare']:.1f} s"
                    f" | after: refits {ours['export'] - ours['refit']:.1f} s,"
                    f" ranking {ours['MLflow'] - ours['export']:.1f} s, MLflow {rest:.1f} s"
                    f" | driver CPU {1e3 * ours['driver CPU'] / arguments.trials:.1f} ms a trial",
                    flush=True,
                )
        figure = statistics.median(added)
        print(
            f"median: {figure:.1f} ms of wall added to each trial of {statistics.median(took):.0f}"
            f" ms (at most 40: {'yes' if figure <= 40 else 'NO'}), {statistics.median(told):.1f} ms"
            " with the wait for MLflow"
        )


if __name__ == "__main__":
    main()
