"""A path gives each configuration the scores that its own trial would, and says how it was found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raysel.evaluation.configurations import Configuration
from raysel.evaluation.records import InnerTrace, PathRecord
from raysel.evaluation.scoring import Evaluation
from raysel.execution.trials import trial_records
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


WHOLE = "solver.space={gamma1: [0.02, 0.1, 2.0], gamma2: [0.02, 0.2]}"


def tune(folder, views, method, *arguments):
    (folder / f"{method}.yaml").write_text(STUDY.format(path=views, method=method, folder=folder))
    assert main([str(folder / f"{method}.yaml"), *arguments]) == 0
    return list(read_journal(folder / method / "journal.jsonl"))


def trials(records):
    return {r["id"]: r for r in records if r["kind"] == "trial"}


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_path_tells_what_single_trials_tell_and_grows_by_what_is_new(tmp_path, views):
    small = tune(tmp_path, views, "path", "--output", f"{tmp_path}/path", "--set", WHOLE.replace(", 2.0", ""))
    grown = tune(tmp_path, views, "path", "--resume", f"{tmp_path}/path", "--set", WHOLE)
    assert grown[: len(small)] == small
    new, known, path = grown[len(small) :], trials(small), trials(grown)
    assert {record["params"]["gamma1"] for record in trials(new).values()} == {2.0}
    solved = [record for record in new if record["kind"] == "path"]
    assert len(solved) == 6
    assert all(len(record["fits"]) == 2 and not known.keys() & record["fits"].keys() for record in solved)
    progress = json.loads((tmp_path / "path" / "progress.json").read_text())
    assert progress == {"finished": 6, "running": 0, "failed": 0, "total": 6}  # training sets, not configurations

    alone = tune(tmp_path, views, "grid", "--output", f"{tmp_path}/grid")
    grid = trials(alone)
    assert set(path) == set(grid)
    for key, record in path.items():
        assert record["status"] == grid[key]["status"]
        for fold, trace in record["folds"].items():
            assert trace["null"] == grid[key]["folds"][fold]["null"]
            for one, other in zip(trace["inner"], grid[key]["folds"][fold]["inner"], strict=True):
                # Both are within the same relative gap of the optimum.
                assert one["objective"][-1] == pytest.approx(other["objective"][-1], rel=1e-6)
                assert one["scores"][-1] == other["scores"][-1]
    winners = [{r["fold"]: r["trial"] for r in records if r["kind"] == "refit"} for records in (grown, alone)]
    assert winners[0] == winners[1]
    assert {r["status"] for r in path.values() if r["params"]["gamma1"] == 2.0} == {"null"}


class _Plan:
    def __init__(self, **folds):
        self.folds = [type("Fold", (), {"name": name, "inner": range(n)}) for name, n in folds.items()]


class _Study:
    """As much of a study as the records are put together from."""

    def __init__(self, ids):
        self.plan, self.evaluation = _Plan(outer0=2, final=1), Evaluation("native")
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
        assert (b.status, b.inferred) == ("null", "3 zero")
        assert a.inferred == "1 solved, 1 diagonal, 1 zero"
        assert (a.started, a.ended) == (1.0, 5.0)


def test_one_failed_training_set_fails_what_needs_it():
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved")}),
        PathRecord("outer0", 1, status="failed", error="Traceback: singular"),
        PathRecord("final", 0, fits={A: fit("solved")}),
    ]
    (record,) = trial_records(_Study([1]), paths)
    assert record.status == "failed"
    assert record.failed_folds == ["outer0"]
    assert "inner fold 1" in record.failure
    assert "singular" in record.failure
    assert record.folds["final"].score("mean") == 0.5


def test_a_path_that_fails_when_the_grid_has_grown_takes_nothing_back():
    grown = PathRecord("outer0", 0, status="failed", error="Traceback: singular")
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved")}, started=1.0, ended=2.0).joined(grown),
        PathRecord("outer0", 1, fits={A: fit("solved"), B: fit("solved")}),
        PathRecord("final", 0, fits={A: fit("solved"), B: fit("solved")}),
    ]
    a, b = trial_records(_Study([1, 2]), paths)
    assert (a.status, b.status) == ("finished", "failed")
    assert b.failed_folds == ["outer0"]
    assert "singular" in b.failure
