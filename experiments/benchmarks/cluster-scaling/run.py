"""Efficiency of a study of 0.5 s fits on 1, 2 and 4 workers, beside joblib and a plain loop of
Ray tasks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import ray
from joblib import Parallel, delayed, parallel_config
from timed_solvers import ComputingFit, SleepingFit

from raysel import run_study
from raysel.data.synthetic import make_matrix_classification
from raysel.execution.ray import session  # noqa: F401 - sets Ray's variables before it starts
from raysel.run.api import prepare_study
from raysel.study.definition import Study
from raysel.tracking.log import Progress

#: Fits of a trial: 2 outer folds and the final one, 2 inner folds each.
FITS = 6
METHODS = {"sleeping": SleepingFit, "computing": ComputingFit}


class Phases:
    """Listener that notes when each phase of a study began, and its first trial."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.first_trial = 0.0

    def __enter__(self) -> Phases:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: Progress) -> None:
        """Note the time where the phase has changed."""
        self.began.setdefault(progress.phase, time.monotonic())
        if progress.running and not self.first_trial:
            self.first_trial = time.time()

    def message(self, text: str) -> None:
        """Show nothing."""


def trial(study: Study, number: int) -> float:
    """Compute the fits of one trial, as a plain loop does; return the seconds that it took where
    it ran.
    """
    started = time.monotonic()
    configuration = study.configurations[number]
    for fold in study.plan.folds:
        for inner in range(len(fold.inner)):
            split = study.trial_split(fold, inner, configuration.params)
            solver = study.solver(configuration.params, split.random_state)
            solver.fit(split.X_train, split.y_train)
    return time.monotonic() - started


def work_of(study: Study) -> float:
    """Return the seconds of all fits, which nobody can do without."""
    return len(study.configurations) * FITS * study.config.solver.params["seconds"]


def search_seconds(study: Study, folder: Path) -> tuple[float, float, float]:
    """Run the study on the Ray that is up.

    Returns
    -------
    search, trials, busy : float
        Seconds from the end of the folds' preparation to the end of the search; from the start of
        the first trial to the end of the last; and of all trials in sum.
    """
    phases = Phases()
    result = run_study(study, output=folder, progress=phases)
    trials = result.records
    last = max(record.ended for record in trials)
    search = phases.began["refitting the winners"] - phases.began[""]
    return (
        search,
        last - phases.first_trial,
        sum(record.ended - record.started for record in trials),
    )


def stored_bytes(folder: Path, megabytes: int) -> tuple[int, int, int]:
    """Run a study of data of this size and return the bytes of the data, of the prepared folds,
    and stored at most.
    """
    from ray._private.internal_api import memory_summary  # noqa: PLC0415 - for this measurement only

    side = round((megabytes * 2**20 / 8 / 60) ** 0.5)
    study = make_study(folder, "sleeping", 8, 0.2, side)
    largest, number = study.largest
    n_prepared = (
        study.trial_split(largest, number, study.examples[0].params).nbytes * study.n_largest
    )
    most = 0

    class Watch(Phases):
        def show(self, progress: Progress) -> None:
            nonlocal most
            if progress.running:
                text = memory_summary(ray.get_runtime_context().gcs_address, stats_only=True)
                used = float(text.split("Plasma memory usage ")[1].split(" MiB")[0]) * 2**20
                most = max(most, int(used))

    run_study(study, output=folder / "stored", progress=Watch())
    return study.dataset.X.nbytes, n_prepared, most


def make_study(folder: Path, method: str, trials: int, seconds: float, side: int = 8) -> Study:
    """Return a study of so many configurations."""
    path = folder / f"planted{side}.npz"
    if not path.exists():
        data, _ = make_matrix_classification(60, (side, side), random_state=0)
        np.savez(path, X=data.X, y=data.y)
    kind = METHODS[method]
    return prepare_study(
        {
            "name": f"scaling-{method}",
            "dataset": {"path": str(path), "shape": [side, side]},
            "solver": {
                "name": f"{kind.__module__}.{kind.__name__}",
                "params": {"seconds": seconds},
                "space": {"number": list(range(trials))},
            },
            "evaluation": {"classifier": "knn", "n_features": [4, 16]},
            "cv": {"outer": 2, "inner": 2},
            "pictures": [],
            "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
        }
    )


def main() -> None:
    """Print a line for each repeat, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--trials", type=int, default=10, help="a worker")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--megabytes", type=int, default=64, help="of data whose stored bytes are counted"
    )
    arguments = parser.parse_args()
    # The workers of Ray and of joblib import the methods from here.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workers in arguments.workers:
            ray.init(
                address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False
            )
            remote = ray.remote(num_cpus=1)(trial)
            for method in arguments.methods:
                if method == "computing" and workers > len(os.sched_getaffinity(0)):
                    continue
                study = make_study(folder, method, arguments.trials * workers, arguments.seconds)
                measure(study, method, workers, remote, folder, arguments.repeats)
            if workers == arguments.workers[-1]:
                data, prepared, most = stored_bytes(folder, arguments.megabytes)
                print(
                    f"object store with {workers} workers: at most {most / 2**20:.0f} MiB; data"
                    f" {data / 2**20:.0f} MiB and prepared folds {prepared / 2**20:.0f} MiB, each"
                    f" once: {(data + prepared) / 2**20:.0f}"
                )
            ray.shutdown()


def measure(study: Study, method: str, workers: int, remote, folder: Path, repeats: int) -> None:
    """Print the efficiencies of one method on so many workers."""
    numbers, work = range(len(study.configurations)), work_of(study)
    found: dict[str, list[float]] = {
        "raysel": [],
        "with the start": [],
        "joblib": [],
        "Ray tasks": [],
    }
    reference = ray.put(study)
    with parallel_config("loky", inner_max_num_threads=1), Parallel(workers) as pool:
        pool(delayed(trial)(study, 0) for _ in range(workers))  # starts and imports
        ray.get([remote.remote(reference, 0) for _ in range(workers)])
        for repeat in range(repeats):
            path = folder / f"{method}{workers}-{repeat}"
            search, alone, busy = search_seconds(study, path)
            found["raysel"].append(work / (workers * alone))
            found["with the start"].append(work / (workers * search))
            started = time.monotonic()
            pool(delayed(trial)(study, number) for number in numbers)
            found["joblib"].append(work / (workers * (time.monotonic() - started)))
            started = time.monotonic()
            ray.get([remote.remote(reference, number) for number in numbers])
            found["Ray tasks"].append(work / (workers * (time.monotonic() - started)))
            shown = ", ".join(f"{who} {values[-1]:.3f}" for who, values in found.items())
            idle = workers * alone - busy
            print(
                f"{method}, {workers} workers: {shown}; a trial's work is {work / busy:.3f} of its"
                f" time; workers were idle for {idle:.2f} s in sum",
                flush=True,
            )
    medians = ", ".join(f"{who} {statistics.median(values):.3f}" for who, values in found.items())
    reached = statistics.median(found["raysel"]) > 0.9
    print(
        f"median, {method}, {workers} workers: {medians} (raysel above 0.9:"
        f" {'yes' if reached else 'NO'})",
        flush=True,
    )


if __name__ == "__main__":
    main()
