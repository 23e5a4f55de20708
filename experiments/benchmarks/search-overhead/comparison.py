"""A comparison against its members run one by one: CPU time of all processes, and wall time, on two
cores.

python experiments/benchmarks/search-overhead/comparison.py --repeats 3
python experiments/benchmarks/search-overhead/comparison.py --repeats 1 digits-compare --set
cv.outer=2   # a quick look
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from processes import below

from raysel import run_study
from raysel.config import dump_config, load_comparison, load_config, member_folders
from raysel.testing.checks import timeless
from raysel.tracking.journal import read_journal

_TICKS = os.sysconf("SC_CLK_TCK")
SUBREAPER = 36  # prctl: a process whose parent has ended comes below this one


class Cpu:
    """CPU seconds of all processes below this one while the context is open, looked at ten times
    a second.
    """

    def __enter__(self) -> Cpu:
        self._spent: dict[tuple[int, str], int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        while any("raysel" in command or "ray/core" in command for command in below().values()):
            time.sleep(0.2)  # the upload, and Ray's servers, may end later than the command
        self._ended.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """CPU seconds so far."""
        return sum(self._spent.values()) / _TICKS

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            for pid in below():
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has just ended
                    continue
                self._spent[pid, fields[19]] = int(fields[11]) + int(
                    fields[12]
                )  # its start tells it from a later one


def timed(*commands: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of commands run one after the other."""
    begun = time.monotonic()
    with Cpu() as cpu:
        for command in commands:
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - begun
    return cpu.seconds, wall


def numbers(study: Path) -> list[str]:
    """All trials and refits of a study, but for times."""
    lines = [
        line for line in read_journal(study / "journal.jsonl") if line["kind"] in ("trial", "refit")
    ]
    return sorted(json.dumps(timeless(line), sort_keys=True) for line in lines)


def in_one_session(folder: Path) -> None:
    """Run the members in one process with one session of Ray: what a comparison can spare at
    most.
    """
    members = sorted(folder.glob("*.yaml"))
    with ExitStack() as session:
        if any(load_config(member).search.executor == "ray" for member in members):
            from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - sets Ray's environment

            session.enter_context(ray_session(None))
        for member in members:
            run_study(member, output=folder / "session" / member.stem, progress=False)


def run_once(asked: str, overrides: list[str], folder: Path) -> Mapping[str, tuple[float, float]]:
    """CPU and wall seconds of each way, in a new folder; stops unless all found the same
    numbers.
    """
    config = load_comparison(asked, overrides)
    folders = member_folders(list(config.members))
    for label, name in folders.items():
        tracking = config.study(label, name).tracking.model_copy(
            update={"uri": f"sqlite:///{folder}/session.db"}
        )
        member = config.study(label, name).model_copy(update={"tracking": tracking})
        (folder / f"{name}.yaml").write_text(dump_config(member), encoding="utf-8")
    sets = [word for text in overrides for word in ("--set", text)]
    store = ["--set", f"tracking.uri=sqlite:///{folder}/compare.db", "--quiet"]
    compare = ["-m", "raysel.tune", asked, *sets, *store, "--output", str(folder / "compare")]
    other = ["--quiet", "--set", f"tracking.uri=sqlite:///{folder}/alone.db", "--output"]
    alone = [
        ["-m", "raysel.tune", str(folder / f"{name}.yaml"), *other, str(folder / "alone" / name)]
        for name in folders.values()
    ]
    found = {"compare": timed(compare)}
    found["one by one"] = timed(*alone)
    found["in one session"] = timed([__file__, "--session", str(folder)])
    for name in folders.values():
        one, *others = [numbers(folder / way / name) for way in ("compare", "alone", "session")]
        if any(way != one for way in others):
            raise SystemExit(f"{name}: the ways found different numbers")
    return found


def main() -> None:
    """Print CPU and wall seconds of each way, their medians and the comparison's ratios to the
    others.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--session", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "study",
        nargs=argparse.REMAINDER,
        help="comparison, and --set KEY=VALUE (default: digits-compare)",
    )
    arguments = parser.parse_args()
    if arguments.session:
        in_one_session(arguments.session)
        return
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    asked, *rest = arguments.study or ["digits-compare"]
    overrides = [word for word in rest if word != "--set"]
    repeats: list[Mapping[str, tuple[float, float]]] = []
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory(prefix="overhead-", ignore_cleanup_errors=True) as name:
            repeats.append(run_once(asked, overrides, Path(name)))
        told = [
            f"{way} {cpu:.1f} s CPU, {wall:.1f} s wall" for way, (cpu, wall) in repeats[-1].items()
        ]
        print("; ".join(told), flush=True)
    for i, what in enumerate(("CPU", "wall")):
        for other in ("one by one", "in one session"):
            ratios = [found["compare"][i] / found[other][i] for found in repeats]
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
            print(f"{what}: compare / members {other}: median {median(ratios):.2f}, {spread}")


if __name__ == "__main__":
    main()
