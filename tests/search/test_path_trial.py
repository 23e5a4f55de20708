"""A path gives each configuration the scores that its own trial would, and says how it was found."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from raysel.cv.records import InnerTrace, PathRecord
from raysel.search.path_trial import trial_records
from raysel.search.space import Configuration
from raysel.tracking.journal import read_journal
from raysel.tune import main

STUDY = """
name: path
dataset: {{path: {path}, scaling: zscore_sqrt_width}}
solver:
  name: smml
  params: {{tol: 1e-7}}
  space: {{gamma1: [0.02, 0.1, 2.0], gamma2: [0.02, 0.2]}}
evaluation: {{classifier: native}}
cv: {{outer: 2, inner: 2}}
search: {{method: {method}}}
tracking: {{uri: "sqlite:///{folder}/mlflow.db"}}
"""


@pytest.fixture
def views(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    first, second = rng.normal(size=(60, 5)), rng.normal(size=(60, 4))
    first[:, 0] += 2.0 * y
    second[:, 1] -= 1.5 * (y == 1)
    path = tmp_path / "views.npz"
    np.savez(path, view_0=first, view_1=second, view_names=["a", "b"], y=y)
    return path


def trials(folder, views, method):
    (folder / f"{method}.yaml").write_text(STUDY.format(path=views, method=method, folder=folder))
    command = [sys.executable, "-m", "raysel.tune", f"{method}.yaml", "--output", method]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    records = list(read_journal(folder / method / "journal.jsonl"))
    refits = [record["trial"] for record in records if record["kind"] == "refit"]
    return {r["id"]: r for r in records if r["kind"] == "trial"}, refits


@pytest.mark.slow
def test_a_path_tells_what_single_trials_tell(tmp_path, views):
    grid, grid_winners = trials(tmp_path, views, "grid")
    path, path_winners = trials(tmp_path, views, "path")
    assert set(path) == set(grid)
    for key, record in path.items():
        assert record["status"] == grid[key]["status"]
        for fold, trace in record["folds"].items():
            alone = grid[key]["folds"][fold]
            assert trace["null"] == alone["null"]
            for one, other in zip(trace["inner"], alone["inner"], strict=True):
                # Both are within the same relative gap of the optimum.
                assert one["objective"][-1] == pytest.approx(other["objective"][-1], rel=1e-6)
                assert one["scores"][-1] == other["scores"][-1]
    assert path_winners == grid_winners
    assert {r["status"] for r in path.values() if r["params"]["gamma1"] == 2.0} == {"null"}
    progress = json.loads((tmp_path / "path" / "progress.json").read_text())
    assert progress == {"finished": 6, "running": 0, "failed": 0, "total": 6}  # training sets, not configurations


@pytest.mark.usefixtures("ray_here")
def test_a_grown_grid_solves_only_what_is_new(tmp_path, views, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "path.yaml").write_text(STUDY.format(path=views, method="path", folder=tmp_path))
    space = "solver.space={gamma1: [0.02, 0.1, 2.0], gamma2: [0.02, 0.2]}"
    assert main(["path.yaml", "--output", "study", "--set", space.replace(", 2.0", "")]) == 0
    before = list(read_journal(tmp_path / "study" / "journal.jsonl"))
    assert main(["--resume", "study", "--set", space]) == 0
    after = list(read_journal(tmp_path / "study" / "journal.jsonl"))
    assert after[: len(before)] == before
    new = after[len(before) :]
    assert {r["params"]["gamma1"] for r in new if r["kind"] == "trial"} == {2.0}
    known = {r["id"] for r in before if r["kind"] == "trial"}
    paths = [r for r in new if r["kind"] == "path"]
    assert len(paths) == 6
    assert all(len(r["fits"]) == 2 and not known & r["fits"].keys() for r in paths)
    progress = json.loads((tmp_path / "study" / "progress.json").read_text())
    assert progress == {"finished": 6, "running": 0, "failed": 0, "total": 6}
    assert main(["--resume", "study"]) == 0
    assert len(list(read_journal(tmp_path / "study" / "journal.jsonl"))) == len(after) + 2  # begun and ended, no more


class _Plan:
    def __init__(self, **folds):
        self.folds = [type("Fold", (), {"name": name, "inner": range(n)}) for name, n in folds.items()]


class _Study:
    """As much of a study as the records are put together from."""

    def __init__(self, ids):
        self.plan = _Plan(outer0=2, final=1)
        self.configurations = [Configuration({"alpha": i}, ("alpha",)) for i in ids]


A, B = (Configuration({"alpha": i}, ("alpha",)).id for i in (1, 2))


def fit(source):
    return InnerTrace([1.0], [[0.5]], source)


def test_records_are_put_together_whatever_the_order():
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved"), B: fit("zero")}, started=2.0, ended=3.0),
        PathRecord("outer0", 1, fits={A: fit("diagonal"), B: fit("zero")}, started=1.0, ended=5.0),
        PathRecord("final", 0, fits={A: fit("zero"), B: fit("zero")}, started=4.0, ended=4.5),
    ]
    for order in (paths, paths[::-1]):
        a, b = trial_records(_Study([1, 2]), order)
        assert (a.status, a.folds["outer0"].null, a.folds["final"].null) == ("finished", False, True)
        assert (b.status, b.inferred) == ("null", "")
        assert a.inferred == "1 solved, 1 diagonal"
        assert (a.started, a.ended) == (1.0, 5.0)


def test_one_failed_training_set_fails_what_needs_it():
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved")}),
        PathRecord("outer0", 1, status="failed", error="Traceback: singular"),
        PathRecord("final", 0, fits={A: fit("solved")}),
    ]
    (record,) = trial_records(_Study([1]), paths)
    assert record.status == "failed"
    assert "outer0, inner fold 1" in record.error
    assert "singular" in record.error


def test_a_path_that_fails_when_the_grid_has_grown_takes_nothing_back():
    grown = PathRecord("outer0", 0, status="failed", error="Traceback: singular")
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved")}, started=1.0, ended=2.0).joined(grown),
        PathRecord("outer0", 1, fits={A: fit("solved"), B: fit("solved")}),
        PathRecord("final", 0, fits={A: fit("solved"), B: fit("solved")}),
    ]
    a, b = trial_records(_Study([1, 2]), paths)
    assert (a.status, b.status) == ("finished", "failed")
    assert "singular" in b.error
