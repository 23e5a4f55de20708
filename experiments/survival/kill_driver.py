"""Kill a study's driver again and again, resume it each time, and compare the end with that of an undisturbed run.

The long form, on ORL (see README.md):  python experiments/survival/kill_driver.py --kills 20
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pyarrow.parquet

#: Sixty trials of a few seconds, so that the kills find some ended, some running and some to come.
ORL = [
    *("orl-smr", "--set", "cv.outer=3", "--set", "solver.params.max_iter=4"),
    *("--set", "solver.space={alpha: {logspace: [0.003, 0.3, 12]}, rank: [1, 2, 4, 6, 8]}"),
]
TIMES = ("started", "ended")


def tune(folder: Path, *arguments: str) -> subprocess.Popen:
    """The command, its MLflow store in the folder."""
    command = [sys.executable, "-m", "raysel.tune", *arguments, "--quiet"]
    store = ["--set", f"tracking.uri=sqlite:///{folder.absolute()}/mlflow.db"]
    return subprocess.Popen([*command, *store], stdin=subprocess.DEVNULL)


def entries(study: Path) -> list[dict]:
    """The journal's whole lines."""
    path = study / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def runs(folder: Path) -> dict[str, tuple[str, str, int | None]]:
    """MLflow's runs by key: id, status, end; complains of one that is there twice.

    Read by SQL: MLflow itself would make the tables while the study's own process makes them.
    """
    query = (
        "SELECT t.value, r.run_uuid, r.status, r.end_time FROM runs r JOIN tags t USING (run_uuid) "
        "WHERE t.key = 'raysel.key' AND r.lifecycle_stage = 'active'"
    )
    try:
        with closing(sqlite3.connect(f"file:{folder.absolute()}/mlflow.db?mode=ro", uri=True, timeout=60)) as store:
            found = store.execute(query).fetchall()
    except sqlite3.OperationalError:  # not made yet
        return {}
    twice = [key for key, n in Counter(key for key, *_ in found).items() if n > 1]
    if twice:
        raise SystemExit(f"MLflow holds twice: {twice}")
    return {key: tuple(run) for key, *run in found}


def same_runs_as(before: dict, after: dict) -> None:
    """What was finished keeps its run and the time of its end."""
    for key, run in before.items():
        if run[1] in ("FINISHED", "FAILED") and key != "study" and after.get(key) != run:
            raise SystemExit(f"MLflow's run of {key} changed: {run} -> {after.get(key)}")


def result(study: Path) -> dict:
    """All that a study found, but for when and by which driver."""
    journal = entries(study)
    trials = [e for e in journal if e["kind"] in ("trial", "path")]
    refits = {e["fold"]: e for e in journal if e["kind"] == "refit"}

    def timeless(entry: dict) -> dict:
        return {key: value for key, value in entry.items() if key not in TIMES}

    twice = [k for k, n in Counter((e.get("id"), e.get("fold"), e.get("inner")) for e in trials).items() if n > 1]
    if twice:
        raise SystemExit(f"{study}: the journal holds twice: {twice}")
    manifest = json.loads((study / "ranking" / "manifest.json").read_text())
    return {
        "trials": sorted((timeless(e) for e in trials), key=lambda e: json.dumps(e, sort_keys=True)),
        "refits": {fold: timeless(e) for fold, e in refits.items()},
        "scores": manifest["scores"],
        "winners": manifest["winners"],
        "ranking.csv": (study / "ranking" / "ranking.csv").read_bytes(),
        "ranking.png": (study / "ranking" / "ranking.png").read_bytes(),
        "traces": pyarrow.parquet.read_table(study / "traces.parquet").to_pydict(),
        "plan": (study / "plan.json").read_bytes(),
    }


def main() -> None:
    """Print what was killed when, and whether the ends are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--longest", type=float, default=25.0, help="seconds a driver lives at most before it is killed"
    )
    parser.add_argument("study", nargs=argparse.REMAINDER, help="arguments of raysel.tune (default: a small ORL study)")
    arguments = parser.parse_args()
    asked = arguments.study or ORL
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        calm, wild = Path(name, "calm"), Path(name, "wild")
        calm.mkdir(), wild.mkdir()
        begun = time.monotonic()
        if tune(calm, *asked, "--output", str(calm / "study")).wait():
            raise SystemExit("the undisturbed study failed")
        print(f"undisturbed: {time.monotonic() - begun:.0f} s", flush=True)
        study, killed, last = wild / "study", 0, {}
        while True:
            resumed = bool(entries(study))
            process = tune(wild, *(["--resume", str(study)] if resumed else [*asked, "--output", str(study)]))
            if killed < arguments.kills:
                try:
                    process.wait(draw.uniform(1.0, arguments.longest))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    killed += 1
                    there = Counter(entry["kind"] for entry in entries(study))
                    now = runs(wild)
                    print(f"kill {killed}: the journal holds {dict(there)}, MLflow {len(now)} runs", flush=True)
                    same_runs_as(last, now)
                    last = now
                    continue
            if process.wait():
                raise SystemExit(f"the study ended with {process.returncode}")
            if killed >= arguments.kills:
                break
            print("it came to its end; resumed once more", flush=True)
        after = runs(wild)
        same_runs_as(last, after)
        one, other = result(calm / "study"), result(study)
        different = [key for key in one if one[key] != other[key]]
        expected = set(runs(calm))
        if different or set(after) != expected:
            raise SystemExit(f"different: {different}, runs missing or too many: {set(after) ^ expected}")
        print(
            f"{killed} kills: the same trials, refits, scores, ranking and picture to the last bit, {len(after)} runs"
        )


if __name__ == "__main__":
    main()
