"""Time, memory and files of a search of very many trials whose fits do nothing, and how they grow.

python experiments/benchmarks/search-overhead/many_trials.py --executor serial --trials 1000 10000
100000 python experiments/benchmarks/search-overhead/many_trials.py --executor ray --trials 1000
10000 100000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from study_runs import PhaseTimes

from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.launch import make_executor
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records


class NoFit(ClassifierMixin, BaseEstimator):
    """Method whose fit and prediction compute nothing.

    Parameters
    ----------
    number : float, default=0.0
        Tells configurations apart.
    """

    def __init__(self, number: float = 0.0) -> None:
        self.number = number

    def fit(self, X, y):
        """Give every feature the same score."""
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.coef_ = np.ones((1, X.shape[1]))
        return self

    def predict(self, X):
        """Predict the first class."""
        return np.repeat(self.classes_[:1], len(X))


def settings(folder: Path, trials: int, executor: str) -> dict:
    """Return a configuration of so many trials of six fits, two outer folds and the final one
    with two inner folds.
    """
    rng = np.random.default_rng(0)
    np.savez(folder / "noise.npz", X=rng.normal(size=(40, 5)), y=np.arange(40) % 2)
    return {
        "name": "many-trials",
        "dataset": {"path": str(folder / "noise.npz")},
        "solver": {"name": "many_trials.NoFit", "space": {"number": {"uniform": [0.0, 1.0]}}},
        "evaluation": {"estimator": "native"},
        "cv": {"outer": 2, "inner": 2},
        "search": {"method": "random", "num_samples": trials, "executor": executor},
        "pictures": [],
    }


def run(folder: Path, trials: int, executor: str, *, resumed: bool) -> dict[str, float]:
    """Run or resume a study in this process, without MLflow."""
    phases, started = PhaseTimes(), time.time()
    study = prepare_study(settings(folder, trials, executor))
    used = make_executor(study)
    if resumed:
        course.resume(study, StudyDirectory(folder / "study"), used, [phases], start_upload=None)
    else:
        course.run(study, folder / "study", used, [phases], start_upload=None)
    ended = phases.began["refitting the winners"]
    return {
        "search": ended - phases.began.get("", started),
        "cpu": phases.cpu["refitting the winners"] - phases.cpu.get("", 0.0),
        "all": time.time() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_process(
    folder: Path, trials: int, executor: str, *, kill_at: int | None = None, resumed: bool = False
) -> dict:
    """Run a study in a process of its own, which is killed once its journal has so many lines."""
    command = [
        sys.executable,
        __file__,
        "--one",
        str(folder),
        "--executor",
        executor,
        "--trials",
        str(trials),
    ]
    environment = os.environ | {
        "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    }
    child = subprocess.Popen(
        [*command, *(["--resumed"] if resumed else [])], env=environment, start_new_session=True
    )
    journal = folder / "study" / "journal.jsonl"
    while child.poll() is None:
        time.sleep(0.2)
        if kill_at is not None and journal.exists() and _n_lines(journal) >= kill_at:
            os.killpg(child.pid, signal.SIGKILL)
    if kill_at is None and child.wait():
        raise SystemExit(f"the study of {trials} trials failed")
    return json.loads((folder / "took.json").read_text()) if kill_at is None else {}


def _n_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b""))


def measure(trials: int, executor: str) -> dict[str, float]:
    """Run a study whole, then another that is killed in the middle and resumed, and read the
    journal.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        whole, halved = Path(name, "whole"), Path(name, "halved")
        whole.mkdir()
        halved.mkdir()
        took = in_process(whole, trials, executor)
        journal = StudyDirectory(whole / "study").journal
        started = time.process_time()
        n_records = sum(1 for _ in read_records(journal))
        took |= {"journal": journal.stat().st_size / 2**20, "read": time.process_time() - started}
        if n_records < trials:
            raise SystemExit(f"the journal of {trials} trials has {n_records} records")
        in_process(halved, trials, executor, kill_at=trials // 2)
        took["resumed"] = in_process(halved, trials, executor, resumed=True)["all"]
        ranks = [
            (folder / "study" / "ranking" / "manifest.json").read_bytes()
            for folder in (whole, halved)
        ]
        if json.loads(ranks[0])["scores"] != json.loads(ranks[1])["scores"]:
            raise SystemExit("the resumed study has other scores")
        return took


def main() -> None:
    """Print a line for each number of trials, and the exponents of growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--executor", choices=["serial", "ray"], default="serial")
    parser.add_argument(
        "--one", type=Path, help="run in this process, in a folder, and write there what it took"
    )
    parser.add_argument("--resumed", action="store_true", help="resume the study in that folder")
    arguments = parser.parse_args()
    if arguments.one:
        took = run(
            arguments.one, arguments.trials[0], arguments.executor, resumed=arguments.resumed
        )
        (arguments.one / "took.json").write_text(json.dumps(took))
        return
    rows = []
    for n in arguments.trials:
        took = measure(n, arguments.executor)
        rows.append(took)
        print(
            f"{n} trials: {n / took['search']:.0f} a second, search {took['search']:.1f} s (CPU of"
            f" the study's process {took['cpu']:.1f} s), from start to end {took['all']:.1f} s;"
            f" {took['memory']:.0f} MB; journal {took['journal']:.1f} MiB, read in"
            f" {took['read']:.1f} CPU s; resumed from the middle in {took['resumed']:.1f} s",
            flush=True,
        )
    for key in ("search", "cpu", "journal", "read") if len(rows) > 1 else ():
        exponent = np.polyfit(np.log(arguments.trials), np.log([row[key] for row in rows]), 1)[0]
        print(f"{key} grows as n^{exponent:.2f}")


if __name__ == "__main__":
    main()
