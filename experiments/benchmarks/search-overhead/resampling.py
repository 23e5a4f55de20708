"""Permutation test and stability selection of a study: CPU of all processes beside that of the
study's own fits.

python experiments/benchmarks/search-overhead/resampling.py --repeats 3
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from comparison import SUBREAPER, timed

from raysel.run.api import prepare_study
from raysel.tune import main as tune

SERIAL = ["--set", "search.executor=serial", "--set", "pictures=[]"]


def solver_seconds(asked: str, overrides: list[str]) -> float:
    """CPU seconds of the solver alone in the inner fits of all configurations."""
    study, spent = prepare_study(asked, overrides), 0.0
    for fold in study.plan.folds:
        for number in range(len(fold.inner)):
            split = study.trial_split(fold, number, study.examples[0].params)
            for configuration in study.configurations:
                solver = study.solver(configuration.params, split.random_state)
                begun = time.process_time()
                for _ in solver.iterate(split.X_train, split.y_train, split.prepared):
                    pass
                spent += time.process_time() - begun
    return spent


def main() -> None:
    """Print CPU seconds of the commands, and their ratios to those of the study's solver."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--permutations", type=int, default=200)
    parser.add_argument("--subsamples", type=int, default=100)
    parser.add_argument(
        "study", nargs=argparse.REMAINDER, help="study, and --set KEY=VALUE (default: digits-smr)"
    )
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    asked, *rest = arguments.study or ["digits-smr"]
    own, ratios = [], {"permute": [], "stability": []}
    with tempfile.TemporaryDirectory() as name:
        store = [*SERIAL, "--set", f"tracking.uri=sqlite:///{name}/mlflow.db", "--quiet"]
        if status := tune([asked, *rest, *store, "--output", f"{name}/study"]):
            sys.exit(status)
        for _ in range(arguments.repeats):
            own.append(solver_seconds(asked, [word for word in rest if word != "--set"]))
            for command, number in (("permute", "--permutations"), ("stability", "--subsamples")):
                amount = str(vars(arguments)[number.removeprefix("--")])
                copy = Path(name, command)
                shutil.copytree(f"{name}/study", copy)
                cpu, wall = timed(["-m", "raysel", command, str(copy), number, amount, "--quiet"])
                shutil.rmtree(copy)
                ratios[command].append(cpu / own[-1])
                print(
                    f"{command} {number} {amount}: {cpu:.1f} s CPU, {wall:.1f} s wall; solver"
                    f" {own[-1]:.1f} s CPU"
                )
    for command, found in ratios.items():
        print(
            f"CPU: {command} / the study's solver: median {median(found):.1f},"
            f" {min(found):.1f}-{max(found):.1f}"
        )


if __name__ == "__main__":
    main()
