"""Kill a study's driver again and again, resume it each time, and compare the end with that of an
undisturbed run.

A driver is killed within the time that the undisturbed run took; where one ends before, the study
is begun again.

The long form, on ORL (see README.md):  python experiments/claims/survival/kill_driver.py --kills 20
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

import pandas as pd
from command import start_command

from raysel import open_study
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal

#: Sixty trials of a few seconds, so that the kills find some ended, some running and some to come.
ORL = [
    *("orl-smr", "--set", "cv.outer=3", "--set", "solver.params.max_iter=4"),
    *("--set", "solver.space={alpha: {logspace: [0.003, 0.3, 12]}, rank: [1, 2, 4, 6, 8]}"),
]
TIMES = ("started", "ended", "cpu_seconds")


def kinds(study: Path) -> Counter[str]:
    """Number of the journal's lines of each kind."""
    journal = StudyDirectory(study).journal
    return (
        Counter(line["kind"] for line in read_journal(journal)) if journal.exists() else Counter()
    )


def runs(folder: Path) -> dict[str, tuple[str, str, int | None]]:
    """MLflow's runs by key: id, status, end; stops where one is there twice.

    Read by SQL: MLflow itself would make the tables while the study's own process makes them.
    """
    query = (
        "SELECT t.value, r.run_uuid, r.status, r.end_time FROM runs r JOIN tags t USING (run_uuid) "
        "WHERE t.key = 'raysel.key' AND r.lifecycle_stage = 'active'"
    )
    try:
        with closing(
            sqlite3.connect(f"file:{folder.absolute()}/mlflow.db?mode=ro", uri=True, timeout=60)
        ) as store:
            found = store.execute(query).fetchall()
    except sqlite3.OperationalError:  # not made yet
        return {}
    twice = [key for key, n in Counter(key for key, *_ in found).items() if n > 1]
    if twice:
        raise SystemExit(f"MLflow holds twice: {twice}")
    return {key: tuple(run) for key, *run in found}


def same_runs_as(before: dict, after: dict) -> None:
    """Stop unless each finished run is there with the id and the end that it had."""
    for key, run in before.items():
        if run[1] in ("FINISHED", "FAILED") and key != "study" and after.get(key) != run:
            raise SystemExit(f"MLflow's run of {key} changed: {run} -> {after.get(key)}")


def timeless(record: TrialRecord | PathRecord | RefitRecord) -> dict:
    """A record without the times of its start and end."""
    return {key: value for key, value in record.to_json().items() if key not in TIMES}


def result(path: Path) -> dict:
    """All that a study found, but for the times and the driver that found it."""
    study = open_study(path)
    trials = [timeless(record) for record in [*study.records, *study.stored.paths]]
    twice = [
        k
        for k, n in Counter((t.get("id"), t.get("fold"), t.get("inner")) for t in trials).items()
        if n > 1
    ]
    if twice:
        raise SystemExit(f"{path}: the journal holds twice: {twice}")
    return {
        "trials": sorted(trials, key=lambda trial: json.dumps(trial, sort_keys=True)),
        "refits": [timeless(refit) for refit in study.refits],
        "scores": (study.inner_scores, study.test_scores),
        "ranking": study.ranking().to_frame().to_dict(),
        "traces": pd.read_parquet(study.directory.traces).to_csv(),
        "ranking.csv": (study.directory.ranking / "ranking.csv").read_bytes(),
        "plan": study.directory.plan.read_bytes(),
    }


def main() -> None:
    """Print what was killed when, and whether the ends are the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "study",
        nargs=argparse.REMAINDER,
        help="arguments of raysel.tune (default: a small ORL study)",
    )
    arguments = parser.parse_args()
    asked = arguments.study or ORL
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        calm, wild = Path(name, "calm"), Path(name, "wild")
        calm.mkdir(), wild.mkdir()
        begun = time.monotonic()
        if start_command(*asked, "--output", str(calm / "study"), store=calm / "mlflow.db").wait():
            raise SystemExit("the undisturbed study failed")
        longest = time.monotonic() - begun
        print(f"undisturbed: {longest:.0f} s", flush=True)
        study, killed, last = wild / "study", 0, {}
        while True:
            how = ["--resume", str(study)] if kinds(study) else [*asked, "--output", str(study)]
            process = start_command(*how, store=wild / "mlflow.db")
            if killed < arguments.kills:
                try:
                    process.wait(draw.uniform(0.1, 1.0) * longest)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    killed += 1
                    now = runs(wild)
                    print(
                        f"kill {killed}: the journal holds {dict(kinds(study))}, MLflow {len(now)}"
                        " runs",
                        flush=True,
                    )
                    same_runs_as(last, now)
                    last = now
                    continue
            if process.wait():
                raise SystemExit(f"the study ended with {process.returncode}")
            if killed >= arguments.kills:
                break
            print("it came to its end; begun again", flush=True)
            shutil.rmtree(wild)
            wild.mkdir()
            last = {}
        after = runs(wild)
        same_runs_as(last, after)
        one, other = result(calm / "study"), result(study)
        different = [key for key in one if one[key] != other[key]]
        states, expected = (
            {(key, run[1]) for key, run in of.items()} for of in (after, runs(calm))
        )
        if different or states != expected:
            raise SystemExit(
                f"different: {different}, runs missing, too many or of another state:"
                f" {states ^ expected}"
            )
        print(
            f"{killed} kills: the same trials, refits, scores, ranking and picture to the last bit,"
            f" {len(after)} runs"
        )


if __name__ == "__main__":
    main()
