"""Kill a comparison at random moments, resume it each time, and compare the end with that of an
undisturbed run.

A driver is killed within the time that the undisturbed run took after its first record; where one
ends before, the comparison is begun again in an empty folder.

python experiments/claims/survival/kill_comparison.py                                          # on
Ray python experiments/claims/survival/kill_comparison.py digits-compare --set
search.executor=serial
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from command import start_command

from raysel import open_comparison
from raysel.testing.checks import timeless
from raysel.tracking.journal import read_journal

_RUNS = (
    "SELECT r.run_uuid, r.name, r.status, r.end_time, k.value, s.value, c.value FROM runs r "
    "LEFT JOIN tags k ON k.run_uuid = r.run_uuid AND k.key = 'raysel.key' "
    "LEFT JOIN tags s ON s.run_uuid = r.run_uuid AND s.key = 'raysel.study' "
    "LEFT JOIN tags c ON c.run_uuid = r.run_uuid AND c.key = 'raysel.comparison' "
    "WHERE r.lifecycle_stage = 'active'"
)


def runs(store: Path) -> dict[str, tuple[str, str, int | None]]:
    """MLflow's runs by member and key: id, status, end; stops where one is there twice.

    Read by SQL: MLflow itself would make the tables while the comparison's own process makes them.
    """
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=60)) as opened:
            found = opened.execute(_RUNS).fetchall()
    except sqlite3.OperationalError:  # not made yet
        return {}
    members = {study: name for _, name, _, _, key, study, _ in found if key == "study"}
    named = [
        ("comparison" if comparison else f"{members.get(study, study)} {key}", (id_, status, end))
        for id_, _, status, end, key, study, comparison in found
    ]
    if twice := [key for key, n in Counter(key for key, _ in named).items() if n > 1]:
        raise SystemExit(f"MLflow holds twice: {twice}")
    return dict(named)


def check_kept(before: dict, after: dict) -> None:
    """Stop unless each run of a trial or refit that had ended is there with the id and the end
    that it had.
    """
    for key, run in before.items():
        kept = (
            run[1] in ("FINISHED", "FAILED") and key != "comparison" and not key.endswith(" study")
        )
        if kept and after.get(key) != run:
            raise SystemExit(f"MLflow's run of {key} changed: {run} -> {after.get(key)}")


def result(path: Path) -> dict:
    """All that a comparison found, but for times: its files as bytes, its table, and the
    members' records.
    """
    found = open_comparison(path)
    records = {}
    for member in found.members:
        lines = [
            line
            for line in read_journal(member.path / "journal.jsonl")
            if line["kind"] in ("trial", "refit")
        ]
        keys = [(line["kind"], line.get("id"), line["fold"]) for line in lines]
        if twice := [key for key, n in Counter(keys).items() if n > 1]:
            raise SystemExit(f"{member.path}: the journal holds twice: {twice}")
        records[member.label] = sorted(json.dumps(timeless(line), sort_keys=True) for line in lines)
    return {
        "comparison.csv": (path / "comparison" / "comparison.csv").read_bytes(),
        "tests.csv": (path / "comparison" / "tests.csv").read_bytes(),
        "plan.json": (path / "plan.json").read_bytes(),
        "table": found.table().drop(columns="cpu_seconds").to_csv(),
        "records": records,
    }


def main() -> None:
    """Print what was killed when, and whether the ends are the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "study", nargs=argparse.REMAINDER, help="arguments of raysel.tune (default: digits-compare)"
    )
    arguments = parser.parse_args()
    asked = arguments.study or ["digits-compare", "--set", "search.max_concurrent=2"]
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        calm, wild = Path(name, "calm"), Path(name, "wild")
        longest = _run_undisturbed(
            calm, start_command(*asked, "--output", str(calm), store=Path(name, "calm.db"))
        )
        killed, last, n_members = 0, {}, len(open_comparison(calm).members)
        while True:
            how = (
                ["--resume", str(wild)]
                if (wild / "members.json").exists()
                else [*asked, "--output", str(wild)]
            )
            process = start_command(*how, store=Path(name, "wild.db"))
            if killed < arguments.kills:
                _wait_for_a_record(wild, process)
                try:
                    process.wait(draw.uniform(0.0, longest))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    killed += 1
                    now = runs(Path(name, "wild.db"))
                    started = len(list(wild.glob("*/journal.jsonl")))
                    print(
                        f"kill {killed}: {started} of {n_members} members begun, {len(now)} runs",
                        flush=True,
                    )
                    check_kept(last, now)
                    last = now
                    continue
            if process.wait():
                raise SystemExit(f"the comparison ended with {process.returncode}")
            if killed >= arguments.kills:
                break
            print("it came to its end; begun again", flush=True)
            shutil.rmtree(wild)
            Path(name, "wild.db").unlink()
            last = {}
        after = runs(Path(name, "wild.db"))
        check_kept(last, after)
        one, other = result(calm), result(wild)
        different = [key for key in one if one[key] != other[key]]
        expected = set(runs(Path(name, "calm.db")))
        if different or set(after) != expected:
            raise SystemExit(
                f"different: {different}, runs missing or too many: {set(after) ^ expected}"
            )
        print(
            f"{killed} kills: the same tables, tests, trials and refits to the last bit,"
            f" {len(after)} runs, each once"
        )


def _run_undisturbed(path: Path, process: subprocess.Popen[bytes]) -> float:
    """Wait for the end, and return the seconds from the first record on."""
    _wait_for_a_record(path, process)
    first = time.monotonic()
    if process.wait():
        raise SystemExit("the undisturbed comparison failed")
    seconds = time.monotonic() - first
    print(f"undisturbed: {seconds:.0f} s after its first record", flush=True)
    return seconds


def _wait_for_a_record(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until this driver has written to a member's journal, so that a slow start is not all
    that is killed.
    """
    before = {journal: journal.stat().st_size for journal in path.glob("*/journal.jsonl")}
    while process.poll() is None:
        if any(
            journal.stat().st_size > before.get(journal, 0)
            for journal in path.glob("*/journal.jsonl")
        ):
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main()
