"""The nested search of an l1 linear SVM by raysel and by what a user would pick: CPU of all
processes, and wall time.

python experiments/benchmarks/search-overhead/peers.py --repeats 3
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from comparison import SUBREAPER, Cpu

FOLDER = Path(__file__).parent / "peers"
#: Values of C.
VALUES = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
#: Program and arguments of each way; the first four are the peers.
WAYS = {
    "scikit-learn": ["scikit_learn.py"],
    "nestedcv": ["forked.py"],
    "optuna": ["optuna_joblib.py"],
    "tune": ["tune_functions.py"],
    "raysel-memory": ["raysel_nested.py", "memory"],
    "raysel-directory": ["raysel_nested.py", "directory"],
    "raysel-ray": ["raysel_nested.py", "ray"],
}
#: Of the peers, without the warnings of liblinear, which stops after 1000 iterations.
ENVIRONMENT = os.environ | {"C_VALUES": json.dumps(VALUES), "PYTHONWARNINGS": "ignore"}
#: What raysel promises: way, peer, and at most how many times the peer's CPU time.
BOUNDS = (
    ("raysel-memory", "scikit-learn", 1.5),
    ("raysel-directory", "scikit-learn", 1.5),
    ("raysel-ray", "tune", 0.5),
)


def run(program: str, *arguments: str) -> tuple[str, float, float]:
    """Scores that a way prints, its CPU and its wall seconds."""
    begun = time.monotonic()
    with Cpu() as cpu:
        command = [sys.executable, str(FOLDER / program), *arguments]
        scores = subprocess.run(
            command, check=True, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        ).stdout.splitlines()[-1]
        wall = time.monotonic() - begun
    return scores, cpu.seconds, wall


def main() -> None:
    """Print a table of the ways, and raysel's ratios to the peers; stops unless all found the
    same scores.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS, metavar="WAY")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    spent: dict[str, list[tuple[float, float]]] = {way: [] for way in arguments.ways}
    found = set()
    for _ in range(arguments.repeats):
        for way, times in spent.items():
            scores, *seconds = run(*WAYS[way])
            found.add(scores)
            times.append((seconds[0], seconds[1]))
    if len(found) > 1:
        raise SystemExit(f"the ways found different scores: {found}")
    print(f"test accuracies of all: {found.pop()}\n\n| way | CPU s | wall s |\n|---|---|---|")
    for way, times in spent.items():
        print(
            f"| {way} |"
            f" {' | '.join(f'{median(column):.1f}' for column in zip(*times, strict=True))} |"
        )
    for way, peer, most in BOUNDS:
        if {way, peer} <= spent.keys():
            ratios = [
                ours[0] / theirs[0] for ours, theirs in zip(spent[way], spent[peer], strict=True)
            ]
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
            print(f"CPU: {way} / {peer}: median {median(ratios):.2f}, {spread} (at most {most})")


if __name__ == "__main__":
    main()
