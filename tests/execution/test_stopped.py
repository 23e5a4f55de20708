"""A study whose process was stopped ends as one that was not: the time in which it was stopped breaks no limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_studies import raw_config, run_offline, write_digits

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
from small_studies import run_offline
run_offline(json.loads(Path("study.json").read_text()), Path("study"))
"""


@pytest.mark.slow
def test_a_stopped_driver_fails_no_trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("slow_solver.py").write_text(SOLVER)
    write_digits(tmp_path / "few.npz")
    solver = {"name": "slow_solver.Slow", "space": {"C": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}}
    raw = raw_config(tmp_path / "few.npz", solver=solver, search__trial_timeout=5)
    Path("study.json").write_text(json.dumps(raw))
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    Path("stop").touch()
    with subprocess.Popen([sys.executable, "-c", DRIVER], env={**os.environ, "PYTHONPATH": path}) as driver:
        until = time.monotonic() + 300
        while driver.poll() is None and not Path("stopped").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(7)
        driver.send_signal(signal.SIGCONT)
        assert driver.wait(300) == 0
    trials = records("trial")
    assert [trial["status"] for trial in trials] == ["finished"] * 6
    assert max(trial["ended"] - trial["started"] for trial in trials) > 7  # it was stopped during one
    raw["search"].pop("trial_timeout")
    run_offline(raw, tmp_path / "undisturbed")
    monkeypatch.chdir(tmp_path / "undisturbed")
    sys.modules.pop("slow_solver", None)
    assert [trial["folds"] for trial in trials] == [trial["folds"] for trial in records("trial", Path())]


def records(kind: str, folder: Path = Path("study")) -> list[dict]:
    """The journal's records of a kind."""
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in found if record["kind"] == kind]
