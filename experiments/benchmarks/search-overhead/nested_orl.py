"""The whole nested study of ORL against the same work in a plain joblib loop, on 2 processes."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from joblib import Parallel, delayed, parallel_config
from study_runs import check_same_work, run_joblib, run_raysel

from raysel.execution.ray.session import ray_session
from raysel.run.api import prepare_study

N_PROCESSES = 2


def main() -> None:
    """Print a line a repeat, and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--configurations", type=int, help="try only so many of the grid, a seeded sample"
    )
    parser.add_argument("--iterations", type=int, help="of each fit at most, for a quick look")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    changes = {
        "search.max_concurrent": N_PROCESSES,
        "solver.space.rank": [2, 4, 8],
    }  # of the committed figures
    if arguments.configurations:
        changes["search.num_samples"] = arguments.configurations
    if arguments.iterations:
        changes["solver.params.max_iter"] = arguments.iterations
    study = prepare_study("orl-smr", changes)
    ratios, wholes = [], []
    with (
        tempfile.TemporaryDirectory() as name,
        ray_session(None),
        parallel_config("loky", inner_max_num_threads=1),
        Parallel(N_PROCESSES) as pool,
    ):
        params = study.examples[0].params
        pool(
            delayed(study.trial_split)(*each, params) for each in study.training_sets[-N_PROCESSES:]
        )  # starts and imports
        for repeat in range(arguments.repeats):
            ours = run_raysel(study, Path(name) / f"study{repeat}")
            plain = run_joblib(study, pool)
            check_same_work(ours, plain)
            wall = plain["end"] - plain["prepare"]
            ratios.append((ours["export"] - ours["prepare"]) / wall)
            wholes.append((ours["end"] - ours["prepare"]) / wall)
            print(
                f"{len(study.configurations)} configurations: raysel folds"
                f" {ours['actors'] - ours['prepare']:.1f} + actors"
                f" {ours['first trial'] - ours['actors']:.1f} + trials"
                f" {ours['refit'] - ours['first trial']:.1f} + refits"
                f" {ours['export'] - ours['refit']:.1f} s (then ranking"
                f" {ours['MLflow'] - ours['export']:.1f}, MLflow {ours['end'] - ours['MLflow']:.1f}"
                f" s) | joblib folds {plain['first trial'] - plain['prepare']:.1f} + trials"
                f" {plain['refit'] - plain['first trial']:.1f} + refits"
                f" {plain['end'] - plain['refit']:.1f} s | a trial takes"
                f" {ours['busy'] / plain['busy']:.3f} times as long | ratio {ratios[-1]:.3f},"
                f" ranking and MLflow included {wholes[-1]:.3f}",
                flush=True,
            )
    figure = statistics.median(ratios)
    print(
        f"median ratio {figure:.3f} (at most 1.15: {'yes' if figure <= 1.15 else 'NO'});"
        f" ranking and MLflow included {statistics.median(wholes):.3f}"
    )


if __name__ == "__main__":
    main()
