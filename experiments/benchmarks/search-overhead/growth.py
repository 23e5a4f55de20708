"""Memory of the process that runs a study and CPU time of all processes, by the number of short
trials.

python experiments/benchmarks/search-overhead/growth.py
python experiments/benchmarks/search-overhead/growth.py --trials 10 50 --megabytes 32    # large
data: memory only
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import tempfile
import time
from pathlib import Path
from statistics import fmean

import numpy as np
from comparison import SUBREAPER, timed
from joblib import Parallel, delayed, parallel_config
from study_runs import PhaseTimes

from raysel.data.synthetic import make_matrix_classification
from raysel.execution.serial import PreparedFolds
from raysel.execution.trials import ConfigurationTrial
from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.launch import make_executor
from raysel.study.definition import Study


def make_study(folder: Path, trials: int, megabytes: float) -> Study:
    """Return a study of so many trials of about 30 ms, if the data are small."""
    side = max(8, round((megabytes * 2**20 / 8 / 60) ** 0.5))
    dataset, _ = make_matrix_classification(60, (side, side), random_state=0)
    np.savez(folder / "planted.npz", X=dataset.X, y=dataset.y)
    return prepare_study(
        {
            "name": "short-trials",
            "dataset": {"path": str(folder / "planted.npz"), "shape": [side, side]},
            "solver": {
                "name": "smr",
                "params": {"tol": 0.0, "max_iter": 5},
                "space": {"alpha": {"loguniform": [0.01, 0.5]}},
            },
            "evaluation": {"classifier": "knn", "n_features": [4, 16]},
            "cv": {"outer": 2, "inner": 2},
            "search": {"method": "random", "num_samples": trials},
            "pictures": [],
        }
    )


def run(study: Study, folder: Path) -> dict[str, float]:
    """Run a study in this process, without MLflow; return its peak memory in MB and its CPU
    seconds in the search.
    """
    phases = PhaseTimes()
    course.run(study, folder / "study", make_executor(study), [phases], start_upload=None)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"memory": memory, "search": phases.cpu["refitting the winners"] - phases.cpu[""]}


def run_plainly(study: Study) -> dict[str, float]:
    """Run the trials of a study and nothing else, on 2 processes; return the CPU seconds of one."""
    with parallel_config("loky", inner_max_num_threads=1):
        return {"trial": fmean(Parallel(2)(delayed(_plain_trial)(study) for _ in range(2)))}


def _plain_trial(study: Study) -> float:
    folds, ends = PreparedFolds(study, 1.0), []
    for number in range(len(study.configurations)):
        for _ in ConfigurationTrial(study, {"configuration": number}, folds).steps():
            pass
        ends.append(time.process_time())
    return (ends[-1] - ends[0]) / max(1, len(ends) - 1)  # the first one prepares the folds


def main() -> None:
    """Print a line for each number of trials, each in a process of its own, and what a trial
    adds.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[200, 600, 2000])
    parser.add_argument("--megabytes", type=float, default=0.0, help="of data")
    parser.add_argument(
        "--one", type=Path, help="run in this process and write to a file what it took"
    )
    parser.add_argument("--plain", action="store_true", help="the trials alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if arguments.one:
            study = make_study(folder, arguments.trials[0], arguments.megabytes)
            took = run_plainly(study) if arguments.plain else run(study, folder)
            arguments.one.write_text(json.dumps(took))
        else:
            compare(arguments.trials, arguments.megabytes, folder / "took.json")


def compare(trials: list[int], megabytes: float, file: Path) -> None:
    """Print the figures of each number of trials, and how they grow."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    own = [__file__, "--one", str(file), "--megabytes", str(megabytes), "--trials"]
    all_cpu, search = [], []
    for n in trials:
        cpu, wall = timed([*own, str(n)])
        took = json.loads(file.read_text())
        all_cpu.append(cpu)
        search.append(took["search"])
        print(
            f"{n} trials: {took['memory']:.0f} MB; CPU of the study's process in the search"
            f" {took['search']:.1f} s, of all processes from start to end {cpu:.1f} s; wall"
            f" {wall:.1f} s",
            flush=True,
        )
    if len(trials) < 2:
        return
    timed([*own, str(min(trials[-1], 500)), "--plain"])
    trial = 1e3 * json.loads(file.read_text())["trial"]
    each = 1e3 * (all_cpu[-1] - all_cpu[0]) / (trials[-1] - trials[0])
    exponent = np.polyfit(np.log(trials), np.log(search), 1)[0]
    print(
        f"the search's CPU in the study's process grows as n^{exponent:.2f}; a further trial takes"
        f" {each:.1f} ms of CPU in all processes, {each - trial:.1f} ms more than its fits and"
        f" scores alone ({trial:.1f} ms)"
    )


if __name__ == "__main__":
    main()
