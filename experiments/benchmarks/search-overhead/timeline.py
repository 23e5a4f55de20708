"""Time line of a study, process by process: when each lives, when it computes, and when trials end.

python experiments/benchmarks/search-overhead/timeline.py timeline.png
python experiments/benchmarks/search-overhead/timeline.py serial.png digits-smr --set
search.executor=serial
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from comparison import SUBREAPER
from matplotlib.figure import Figure

from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records

_PERIOD = 0.1  # seconds between two looks
_TICK = os.sysconf("SC_CLK_TCK")
#: What a process is, by a part of its command line.
_KINDS = {
    "raysel.tracking.upload_process": "upload to MLflow",
    "raysel.tune": "the study's process",
    "ray::": "worker of Ray",
    "gcs_server": "server of Ray",
    "raylet/raylet": "raylet of Ray",
    "dashboard": "agent of Ray",
    "agent": "agent of Ray",
    "default_worker": "worker of Ray",
}


@dataclass
class Process:
    """CPU seconds of one process at each look."""

    kind: str
    times: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def look(processes: dict[int, Process], now: float) -> None:
    """Note the CPU time of all processes below this one."""
    stats, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        stats[int(folder.name)], parents[int(folder.name)] = fields, int(fields[1])

    def is_below(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    for pid, fields in stats.items():
        if pid == os.getpid() or not is_below(pid):
            continue
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        kind = next((kind for part, kind in _KINDS.items() if part in command), "other")
        process = processes.setdefault(pid, Process(kind))
        process.kind = kind if kind != "other" else process.kind
        process.times.append(now)
        process.cpu.append((int(fields[11]) + int(fields[12])) / _TICK)


def draw(
    processes: list[Process], marks: dict[str, float], trials: list[float], path: Path
) -> None:
    """Draw a row for each process, dark where it computes."""
    figure = Figure(figsize=(9, 0.9 + 0.32 * len(processes)), layout="constrained")
    axes = figure.subplots()
    for row, process in enumerate(processes):
        used = np.diff(process.cpu, prepend=0.0) / np.diff(
            process.times, prepend=process.times[0] - _PERIOD
        )
        for at, share in zip(process.times, used, strict=True):
            axes.barh(
                row,
                _PERIOD * 1.3,
                left=at - _PERIOD,
                height=0.7,
                color=str(0.92 - 0.8 * min(1.0, share)),
                lw=0,
            )
    axes.set_yticks(
        range(len(processes)), [f"{p.kind}, {p.cpu[-1]:.1f} s of CPU" for p in processes]
    )
    axes.invert_yaxis()
    axes.plot(trials, [-0.7] * len(trials), "|", color="C0", label="end of a trial")
    for name, at in marks.items():
        axes.axvline(at, color="C1", lw=1)
        axes.text(at, len(processes) - 0.3, f" {name}", color="C1", fontsize=8, va="top")
    last = max(marks.values())
    axes.set(
        xlabel="seconds since the command (black: a processor in full use)", xlim=(0, 1.12 * last)
    )
    axes.set_ylim(len(processes) + 0.4, -1.2)
    axes.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run a study, draw its time line and print CPU seconds by kind of process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    parser.add_argument(
        "study",
        nargs=argparse.REMAINDER,
        help="study, and --set KEY=VALUE (default: digits-smr on Ray)",
    )
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    processes: dict[int, Process] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        study = arguments.study or ["digits-smr", "--set", "search.executor=ray"]
        output = [
            "--quiet",
            "--output",
            f"{name}/study",
            "--set",
            f"tracking.uri=sqlite:///{name}/mlflow.db",
        ]
        started = time.time()
        child = subprocess.Popen([sys.executable, "-m", "raysel.tune", *study, *output])
        while child.poll() is None:
            look(processes, time.time() - started)
            time.sleep(_PERIOD)
        if child.returncode:
            raise SystemExit("the study failed")
        ended = time.time() - started
        records = list(read_records(StudyDirectory(Path(name, "study")).journal))
    trials = [record.ended - started for record in records if isinstance(record, TrialRecord)]
    first = min(record.started for record in records if isinstance(record, TrialRecord)) - started
    refits = max(record.ended for record in records if isinstance(record, RefitRecord)) - started
    marks = {
        f"first trial {first:.1f} s": first,
        f"refits end {refits:.1f} s": refits,
        f"end {ended:.1f} s": ended,
    }
    shown = sorted(
        (p for p in processes.values() if p.cpu[-1] >= 0.1), key=lambda p: (p.times[0], p.kind)
    )
    draw(shown, marks, trials, arguments.picture)
    total = sum(process.cpu[-1] for process in processes.values())
    print(f"{total:.1f} s of CPU in {len(processes)} processes; {'; '.join(marks)}")


if __name__ == "__main__":
    main()
