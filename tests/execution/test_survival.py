"""Real signals and full disks; studies that are killed are those of experiments/claims/survival."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster_studies import bare_commands
from small_studies import ENDLESS, raw_config, run_offline, write_digits, write_yaml

from raysel.tracking.journal import read_journal
from raysel.tracking.journal_upload import tracking_status
from raysel.tune import main

TUNE = (sys.executable, "-m", "raysel.tune")

pytestmark = pytest.mark.slow


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_ten_seconds_of_grace_are_enough(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "long.yaml", solver=ENDLESS, tracking={"mlflow": False})
    study = tmp_path / "study"
    process = subprocess.Popen(
        [*TUNE, "long.yaml", "--output", str(study)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        there = (study / "progress.json").exists() and json.loads(
            (study / "progress.json").read_text()
        )
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
        assert f"1 trial had ended and is kept; resume with: raysel tune --resume {study}" in err
    kinds = [
        (record["kind"], record.get("status")) for record in read_journal(study / "journal.jsonl")
    ]
    assert kinds == [("study", None), ("trial", "null"), ("end", "interrupted")]


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_termination_in_the_last_wait_for_mlflow_is_no_success(
    tmp_path, monkeypatch, capsys, number, status
):
    """Ctrl-C there only ends the wait; a scheduler that ends the command must see that it was."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    answers = iter([number])

    def interrupted_status(directory):
        for signal_number in answers:
            signal.raise_signal(signal_number)
        return tracking_status(directory)

    monkeypatch.setattr("raysel.tracking.upload_process.tracking_status", interrupted_status)
    store = f"tracking.uri=sqlite:///{tmp_path}/mlflow.db"
    assert main(["few.yaml", "--output", "study", "--set", store]) == status
    ends = [r for r in read_journal(tmp_path / "study/journal.jsonl") if r["kind"] == "end"]
    assert [end["status"] for end in ends] == ["finished"]
    assert "--replay study" in capsys.readouterr().out
    assert next(answers, None) is None


@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_full_disk_stops_a_study_that_goes_on_when_there_is_room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    if run(tmp_path, "mount", "-t", "tmpfs", "-o", "size=4m", "none", str(small)).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        write_digits(tmp_path / "few.npz")
        space = {"alpha": [0.01, 0.02, 0.05], "rank": [1, 2]}
        write_yaml(
            tmp_path / "few.yaml", solver__params={"max_iter": 200, "tol": 0.0}, solver__space=space
        )
        study, filler = small / "study", small / "filler"
        environment = {**os.environ, "PYTHONPATH": bare_commands(tmp_path / "bare")}
        command = [*TUNE, "few.yaml", "--output", str(study)]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )
        while process.poll() is None and not trials(study):
            time.sleep(0.02)
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 512)
        _, err = process.communicate()
        assert process.returncode == 1
        assert (
            f"the journal {study}/journal.jsonl cannot be written: No space left on device" in err
        )
        assert "Traceback" not in err
        before = trials(study)
        assert 1 <= len(before) < 6

        filler.unlink()
        assert main(["--resume", str(study)]) == 0
        assert trials(study)[: len(before)] == before
        assert len(trials(study)) == 6
        assert (study / "ranking" / "ranking.csv").exists()
    finally:
        run(tmp_path, "umount", "--lazy", str(small))  # whatever still looks at it


def trials(study: Path) -> list[dict]:
    path = study / "journal.jsonl"
    return (
        [record for record in read_journal(path) if record["kind"] == "trial"]
        if path.exists()
        else []
    )


SOLVER = """
import os, signal
from pathlib import Path
from sklearn.svm import LinearSVC
class Slow(LinearSVC):
    def fit(self, X, y):
        if self.C == 0.05 and Path("stop").exists():
            Path("stop").rename("stopped")
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().fit(X, y)
"""
DRIVER = """
import json, sys
from pathlib import Path
import bare_process
from small_studies import run_offline
run_offline(json.loads(Path("study.json").read_text()), Path("study"))
"""


@pytest.mark.usefixtures("without_report")
def test_a_stopped_driver_fails_no_trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("slow_solver.py").write_text(SOLVER)
    write_digits(tmp_path / "few.npz")
    solver = {"name": "slow_solver.Slow", "space": {"C": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}}
    raw = raw_config(tmp_path / "few.npz", solver=solver, search__trial_timeout=2)
    Path("study.json").write_text(json.dumps(raw))
    path = os.pathsep.join(
        [str(tmp_path), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    Path("stop").touch()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], env={**os.environ, "PYTHONPATH": path}
    ) as driver:
        until = time.monotonic() + 300
        while driver.poll() is None and not Path("stopped").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(3)
        driver.send_signal(signal.SIGCONT)
        assert driver.wait(300) == 0
    trials = records("trial")
    assert [trial["status"] for trial in trials] == ["finished"] * 6
    assert (
        max(trial["ended"] - trial["started"] for trial in trials) > 3
    )  # it was stopped during one
    raw["search"].pop("trial_timeout")
    run_offline(raw, tmp_path / "undisturbed")
    monkeypatch.chdir(tmp_path / "undisturbed")
    sys.modules.pop("slow_solver", None)
    assert [trial["folds"] for trial in trials] == [
        trial["folds"] for trial in records("trial", Path())
    ]


def records(kind: str, folder: Path = Path("study")) -> list[dict]:
    """The journal's records of a kind."""
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    actual = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in actual if record["kind"] == kind]
