"""Workers that Ray ends for want of memory: fewer trials at once, and no other number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from cluster_studies import bare_commands
from small_studies import raw_config, run_offline, write_digits

pytestmark = pytest.mark.slow

#: A method for which memory runs short while two fits wait, of which the second asked for it, and
#: then whenever C = 3.
HUNGRY = """
import os, sys, time
from pathlib import Path
from sklearn.svm import LinearSVC
class Hungry(LinearSVC):
    def fit(self, X, y):
        if "default_worker" in sys.argv[0]:
            asked = Path(os.environ["ASKED"])
            role = next((name for name in ("first", "second") if takes(asked / name)), None)
            while role == "first" and runs(asked / "second"):
                time.sleep(0.05)
            if role == "second" or self.C == 3:
                (asked / f"{os.getpid()}.pid").touch()
                time.sleep(120)
        return super().fit(X, y)
def takes(file):
    try:
        with file.open("x") as new:
            new.write(str(os.getpid()))
    except FileExistsError:
        return file.read_text() == str(os.getpid())
    return True
def runs(file):
    return not file.exists() or Path("/proc", file.read_text()).exists()
"""
#: Ray reads how much memory is left from this file, here one that the test writes; of a container
#: with a limit of its own it reads these.
READ = Path("/proc/meminfo")
LIMITS = [Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory/memory.limit_in_bytes")]


def need_own_file() -> None:
    """Skip the test, and say what is missing, where a file cannot be put in place of another for
    one process.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip(
            "needs root and unshare, to give Ray a file of its own in place of /proc/meminfo"
        )
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs permission to make a mount namespace, to give Ray its own /proc/meminfo")
    total = int(READ.read_text(encoding="ascii").split()[1]) * 1024
    for limit in filter(Path.exists, LIMITS):
        if (number := limit.read_text(encoding="ascii").strip()).isdecimal() and int(
            number
        ) < total:
            pytest.skip(
                f"needs a machine without a limit of memory in {limit}, which Ray would read"
                " instead"
            )


def memory_text(available: int) -> bytes:
    """The machine's memory, of which so many kB are left; as long for any number."""
    lines = READ.read_text(encoding="ascii").splitlines()
    kept = [
        f"MemAvailable: {available:>12} kB" if line.startswith("MemAvailable") else line
        for line in lines
    ]
    return "\n".join(kept).encode("ascii") + b"\n"


def serve_memory(path: Path, asked: Path, process: subprocess.Popen[str]) -> None:
    """Let memory run short whenever a fit has asked for it, until Ray has ended the fit's
    process.
    """
    much, little, short = path.read_bytes(), memory_text(50_000), False
    assert len(little) == len(much)
    with path.open("r+b", buffering=0) as file:
        while process.poll() is None:
            waiting = any(Path("/proc", asks.stem).exists() for asks in asked.glob("*.pid"))
            if waiting != short:
                os.pwrite(
                    file.fileno(), little if waiting else much, 0
                )  # whole: Ray reads it at any time
                short = waiting
            time.sleep(0.1)


def records(folder: Path) -> tuple[dict, dict]:
    """Trials by their C and refits by their fold, without times and the trials' numbers."""
    lines = [
        json.loads(line)
        for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    free = ("id", "name", "trial", "started", "ended", "cpu_seconds")
    trials = {line["params"]["C"]: line for line in lines if line["kind"] == "trial"}
    refits = {line["fold"]: line for line in lines if line["kind"] == "refit"}
    return tuple(
        {key: {k: v for k, v in line.items() if k not in free} for key, line in actual.items()}
        for actual in (trials, refits)
    )


@pytest.mark.usefixtures("without_report")
def test_trials_for_which_memory_ran_short_run_again_with_fewer_at_once(tmp_path):
    need_own_file()
    write_digits(tmp_path / "few.npz")
    (tmp_path / "hungry_code.py").write_text(HUNGRY, encoding="utf-8")
    raw = raw_config(
        tmp_path / "few.npz",
        solver={"name": "hungry_code.Hungry", "space": {"C": [1.0, 2.0, 3.0, 4.0]}},
        evaluation={"classifier": "native"},
        search={"executor": "ray", "max_concurrent": 2},
    )
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    memory, asked = tmp_path / "meminfo", tmp_path / "asked"
    asked.mkdir()
    memory.write_bytes(memory_text(20_000_000))
    tune = [sys.executable, "-m", "raysel.tune", "few.yaml", "--output", "study"]
    with (tmp_path / "terminal.txt").open("w", encoding="utf-8") as terminal:
        process = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                f'mount --bind "{memory}" {READ} && exec "$@"',
                "sh",
                *tune,
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": bare_commands(tmp_path), "ASKED": str(asked)},
            stdout=terminal,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            serve_memory(memory, asked, process)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
    seen = (tmp_path / "terminal.txt").read_text(encoding="utf-8")
    assert process.wait() == 0, seen
    assert "and Ray ended a trial, which runs again: at most 1 at once there from now on" in seen
    assert "1 of 4 trials failed" in seen
    assert len(list(asked.glob("*.pid"))) >= 4  # beside another one, and three times alone

    raw["solver"]["space"]["C"].remove(3.0)
    sys.path.insert(0, str(tmp_path))
    try:
        run_offline({**raw, "search": {"executor": "serial"}}, tmp_path / "calm")
    finally:
        sys.path.remove(str(tmp_path))
    trials, refits = records(tmp_path / "study")
    failed = trials.pop(3.0)
    assert (failed["status"], failed["error"]) == (
        "failed",
        "the worker process died 3 times (memory ran short)",
    )
    assert (trials, refits) == records(tmp_path / "calm")
