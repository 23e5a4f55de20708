"""Private memory of each worker of a study beside the size of its data."""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from processes import below
from study_runs import run_raysel

from raysel.execution.ray.session import ray_session
from raysel.run.api import prepare_study

SHAPE, N_CLASSES, N_PROCESSES = (128, 100), 4, 2
MIB = 2**20
ROLES = {
    "driver": "driver",
    "ray::StudyTrainable": "runs trials",
    "ray::ResourceTrainable": "runs trials",
    "ray::_prepare": "prepares folds",
    "ray::_refit": "refits",
}


class Watch(threading.Thread):
    """The most memory of its own, and of shared memory that it has touched, of each process of a
    study.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[tuple[str, int], tuple[int, int]] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        """Look ten times a second."""
        while not self.ended.wait(0.1):
            for pid, command in {**below(), os.getpid(): "driver"}.items():
                role = next(
                    (role for title, role in ROLES.items() if command.startswith(title)), None
                )
                if role and (memory := memory_of(pid)):
                    before = self.peaks.get((role, pid), (0, 0))
                    self.peaks[role, pid] = (max(memory[0], before[0]), max(memory[1], before[1]))


def memory_of(pid: int) -> tuple[int, int] | None:
    """Bytes of anonymous memory, which no other process sees, and of shared memory that the
    process has touched.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return None
    sizes = {
        line.split()[0]: 1024 * int(line.split()[1])
        for line in (*rollup[1:], *status)
        if line.endswith("kB")
    }
    return sizes.get("Anonymous:", 0), sizes.get("RssShmem:", 0)


def study_of(folder: Path, n_samples: int, iterations: int):
    """A study of classes that differ in their means, in single numbers a cell and sample of 8
    bytes.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % N_CLASSES
    X = rng.standard_normal((N_CLASSES, SHAPE[0] * SHAPE[1]))[y]
    X += rng.standard_normal(X.shape)
    path = folder / f"data{n_samples}.npz"
    np.savez(path, X=X, y=y)
    return prepare_study(
        {
            "name": "memory",
            "dataset": {"path": str(path), "shape": list(SHAPE)},
            "solver": {
                "name": "smr",
                "params": {"max_iter": iterations, "tol": 0.0},
                "space": {"alpha": {"logspace": [0.01, 0.3, 4]}},
            },
            "evaluation": {"classifier": "knn", "n_features": [20, 100]},
            "cv": {"outer": 2, "inner": 2},
            "search": {"executor": "ray", "max_concurrent": N_PROCESSES},
        }
    )


def main() -> None:
    """Print what each worker has of its own, once with hardly any data and once with all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2048, help="each takes 100 KiB")
    parser.add_argument("--iterations", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ray_session(None):
        least: dict[str, int] = {}
        for n_samples in (16, arguments.samples):
            study = study_of(Path(name), n_samples, arguments.iterations)
            folds = (
                study.n_inner
                * study.trial_split(study.plan.final, 0, study.examples[0].params).nbytes
            )
            data, largest = (
                study.dataset.X.nbytes,
                max(len(i.train) for f in study.plan.folds for i in f.inner),
            )
            watch = Watch()
            watch.start()
            started = time.time()
            run_raysel(study, Path(name) / f"study{n_samples}")
            watch.ended.set()
            watch.join()
            print(
                f"data {data / MIB:.0f} MiB, largest inner training set"
                f" {data / MIB * largest / n_samples:.0f} MiB, prepared folds at most"
                f" {folds / MIB:.0f} MiB; {time.time() - started:.0f} s"
            )
            for (role, pid), (own, shared) in sorted(watch.peaks.items()):
                least[role] = min(own, least.get(role, own))
                print(
                    f"  {role:16} {pid:7}  own at its peak {own / MIB:5.0f} MiB,"
                    f" {(own - least[role]) / data:.2f} times the data more than with hardly any;"
                    f" shared {shared / MIB:5.0f} MiB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
