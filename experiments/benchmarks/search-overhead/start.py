"""A study on Ray as raysel starts it, on Ray as it comes, and in one process: CPU of all processes,
and wall time.

python experiments/benchmarks/search-overhead/start.py --repeats 3
python experiments/benchmarks/search-overhead/start.py --repeats 1 digits-smr --set cv.outer=2   # a
quick look
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from unittest.mock import patch

from comparison import SUBREAPER, numbers, timed

from raysel.tune import main as tune

#: Of each way the program, and what is set beside the study's own keys.
WAYS = {
    "raysel": (["-m", "raysel.tune"], []),
    "Ray as it comes": ([__file__, "--as-it-comes"], []),
    "serial": (["-m", "raysel.tune"], ["--set", "search.executor=serial"]),
}


def as_it_comes(arguments: list[str]) -> int:
    """Run a study on a Ray that starts all its servers, whose actors have environments of their
    own.
    """
    from raysel.execution.ray import session  # noqa: PLC0415 - sets Ray's environment

    with (
        patch.object(session, "without_unused_servers", nullcontext),
        patch.object(session, "waiting_workers_used", nullcontext),
    ):
        return tune(arguments)


def run_once(asked: list[str], folder: Path) -> dict[str, tuple[float, float]]:
    """CPU and wall seconds of each way, in a new folder; stops unless all found the same
    numbers.
    """
    found, of_each = {}, []
    for way, (program, changes) in WAYS.items():
        store = [
            "--quiet",
            "--set",
            f"tracking.uri=sqlite:///{folder}/{way}.db",
            "--output",
            str(folder / way),
        ]
        found[way] = timed([*program, *asked, *changes, *store])
        of_each.append(numbers(folder / way))
    if any(one != of_each[0] for one in of_each):
        raise SystemExit("the ways found different numbers")
    return found


def main() -> None:
    """Print CPU and wall seconds of each way, and the medians of raysel's ratios to the others."""
    if sys.argv[1:2] == ["--as-it-comes"]:
        sys.exit(as_it_comes(sys.argv[2:]))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "study", nargs=argparse.REMAINDER, help="study, and --set KEY=VALUE (default: digits-smr)"
    )
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    repeats = []
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory(prefix="start-", ignore_cleanup_errors=True) as name:
            repeats.append(run_once(arguments.study or ["digits-smr"], Path(name)))
        told = [
            f"{way} {cpu:.1f} s CPU, {wall:.1f} s wall" for way, (cpu, wall) in repeats[-1].items()
        ]
        print("; ".join(told), flush=True)
    for i, what in enumerate(("CPU", "wall")):
        for other in list(WAYS)[1:]:
            ratios = [found["raysel"][i] / found[other][i] for found in repeats]
            print(
                f"{what}: raysel / {other}: median {median(ratios):.2f},"
                f" {min(ratios):.2f}-{max(ratios):.2f}"
            )


if __name__ == "__main__":
    main()
