"""Real signals and real full disks: the short forms of experiments/survival."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_studies import ENDLESS, write_digits, write_yaml

from raysel.tracking.journal import read_journal
from raysel.tune import main

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "survival"
TUNE = (sys.executable, "-m", "raysel.tune")

pytestmark = pytest.mark.slow


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_driver_killed_at_random_moments_comes_to_the_same_end(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", solver__params={"max_iter": 60, "tol": 0.0}, search={}, pictures=["png"])
    done = run(
        tmp_path, sys.executable, str(EXPERIMENTS / "kill_driver.py"), "--kills", "1", "--longest", "15", "few.yaml"
    )
    assert done.returncode == 0, done.stderr
    assert "1 kills: the same trials, refits, scores, ranking and picture to the last bit" in done.stdout


@pytest.mark.slow
def test_ten_seconds_of_grace_are_enough(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "long.yaml", solver=ENDLESS, search={})
    study = tmp_path / "study"
    process = subprocess.Popen(
        [*TUNE, "long.yaml", "--output", str(study)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None:
        there = (study / "progress.json").exists() and json.loads((study / "progress.json").read_text())
        if there and there["finished"] and there["running"]:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    try:
        _, err = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:  # as a scheduler would
        process.kill()
        process.communicate()
    else:
        assert process.returncode == 143
        assert f"1 trial had ended and is kept; resume with: python -m raysel.tune --resume {study}" in err
    kinds = [(record["kind"], record.get("status")) for record in read_journal(study / "journal.jsonl")]
    assert kinds == [("study", None), ("trial", "null"), ("end", "interrupted")]


@pytest.mark.slow
def test_two_studies_at_once_do_not_disturb_each_other(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    both = [subprocess.Popen([*TUNE, "few.yaml", "--output", f"study{i}", "--quiet"], cwd=tmp_path) for i in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    one, other = ((tmp_path / f"study{i}" / "ranking" / "ranking.csv").read_bytes() for i in range(2))
    assert one == other
    found = run(tmp_path, sys.executable, "-c", RUNS)
    assert found.stdout.split() == ["20", "20", "FINISHED"], found.stderr


RUNS = """
from mlflow.tracking import MlflowClient
client = MlflowClient("sqlite:///mlflow.db")
found = client.search_runs([e.experiment_id for e in client.search_experiments()])
keys = {(run.data.tags["raysel.study"], run.data.tags["raysel.key"]) for run in found}
print(len(found), len(keys), *{run.info.status for run in found})
"""


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_full_disk_stops_a_study_that_goes_on_when_there_is_room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    if run(tmp_path, "mount", "-t", "tmpfs", "-o", "size=4m", "none", str(small)).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        write_digits(tmp_path / "few.npz")
        space = {"alpha": [0.01, 0.02, 0.05, 0.1], "rank": [1, 2, 3]}
        write_yaml(tmp_path / "few.yaml", solver__params={"max_iter": 200, "tol": 0.0}, solver__space=space)
        study, filler = small / "study", small / "filler"
        process = subprocess.Popen(
            [*TUNE, "few.yaml", "--output", str(study)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        while process.poll() is None and not trials(study):
            time.sleep(0.02)
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 512)
        _, err = process.communicate()
        assert process.returncode == 1
        assert f"the journal {study}/journal.jsonl cannot be written: No space left on device" in err
        assert "Traceback" not in err
        before = trials(study)
        assert 1 <= len(before) < 12

        filler.unlink()
        assert main(["--resume", str(study)]) == 0
        assert trials(study)[: len(before)] == before
        assert len(trials(study)) == 12
        assert (study / "ranking" / "ranking.csv").exists()
    finally:
        run(tmp_path, "umount", "--lazy", str(small))  # whatever still looks at it


def trials(study: Path) -> list[dict]:
    path = study / "journal.jsonl"
    return [record for record in read_journal(path) if record["kind"] == "trial"] if path.exists() else []
