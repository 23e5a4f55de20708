"""One trial: the same numbers as a plain loop, null and failed configurations, workers that die."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from small_studies import make_study, run_on_ray, timeless, write_digits
from threadpoolctl import threadpool_limits

from raysel.core.errors import StudyError
from raysel.data.scaling import make_scaler
from raysel.evaluation.records import FoldTrace
from raysel.tracking.journal import read_journal

pytestmark = pytest.mark.usefixtures("ray_here")


@pytest.fixture
def digits(tmp_path) -> Path:
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def plain_trace(study, params, fold):
    """Each inner fit from nothing, one after the other, without shared preparation, lock step or Ray."""
    X, y = study.dataset.X, study.dataset.y
    inners = []
    for number, inner in enumerate(fold.inner):
        scaler = make_scaler(study.config.dataset.scaling).fit(X[inner.train])
        train, held_out = (np.ascontiguousarray(scaler.transform(X[i])) for i in (inner.train, inner.validation))
        state = fold.random_state(study.config.seed, number)
        sets = train, y[inner.train], held_out, y[inner.validation]
        by_c = [study.evaluation.scorer(*sets, state, C=C) for C in study.evaluation.C]
        score = by_c[0]
        solver = study.solver(params, state)
        objective, scores = [], []
        for value in solver.iterate(train, y[inner.train]):
            objective.append(value)
            if study.evaluation.every_iteration:
                scores.append(score(solver).tolist())
        if not study.evaluation.every_iteration:
            scores = [score(solver).tolist() for score in by_c]
        met = {"source": "solved", "converged": solver.converged_, "gap": None}
        inners.append({"objective": objective, "scores": scores, **met})
    chosen = []
    if not study.evaluation.every_iteration:
        for position, _ in enumerate(study.evaluation.n_features):
            means = [np.mean([inner["scores"][c][position] for inner in inners]) for c, _ in enumerate(by_c)]
            chosen.append(int(np.argmax(np.round(means, 12))))
        for inner in inners:
            inner["scores"] = [[inner["scores"][c][position] for position, c in enumerate(chosen)]]
    return {"null": False, "inner": inners, "error": "", "C": [study.evaluation.C[c] for c in chosen]}


@pytest.mark.parametrize(
    "changes",
    [
        {"solver__params": {"max_iter": 6, "tol": 1e-2, "init": "random"}, "dataset__scaling": "zscore"},
        pytest.param(
            {"evaluation": {"classifier": "native"}, "solver__params": {"max_iter": 3, "p": 0.5}},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"evaluation": {"classifier": "linear_svm", "n_features": [4, 8]}, "solver__params": {"max_iter": 2}},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["knn", "native", "linear_svm"],
)
def test_a_trial_is_a_plain_loop_bit_for_bit(tmp_path, digits, changes):
    study = make_study(digits, solver__space={"alpha": [0.02, 0.3], "rank": [1, 3]}, **changes)
    records, _, _ = run_on_ray(study, tmp_path / "run")
    with threadpool_limits(1):
        for configuration in study.configurations:
            record = records[configuration.id]
            assert record["status"] == "finished"
            assert record["params"] == dict(configuration.params)
            assert set(record["folds"]) == {"outer0", "outer1", "final"}
            for fold in study.plan.folds:
                expected = plain_trace(study, configuration.params, fold)
                assert timeless(record["folds"][fold.name]) == expected


@pytest.mark.slow
def test_a_null_trial_ends_at_once_and_is_scored_as_the_most_frequent_class(tmp_path, digits):
    study = make_study(digits, solver__space={"alpha": [0.05, 1.0, 7.5]})
    records, refits, _ = run_on_ray(study, tmp_path / "run")
    by_alpha = {record["params"]["alpha"]: record for record in records.values()}
    for alpha in (1.0, 7.5):  # in units of alpha_max: at collapse, and beyond
        assert by_alpha[alpha]["status"] == "null"
        for fold in by_alpha[alpha]["folds"].values():
            assert fold["null"]
            assert all(len(inner["objective"]) == 1 for inner in fold["inner"])
            assert all(inner["scores"] == [[0.25, 0.25]] for inner in fold["inner"])  # four classes of one size
    assert by_alpha[0.05]["status"] == "finished"
    assert [refit.record.params["alpha"] for refit in refits] == [0.05] * 3
    _, refits, _ = run_on_ray(make_study(digits, solver__space={"alpha": [2.0, 7.5]}), tmp_path / "none")
    assert [refit.record.params["alpha"] for refit in refits] == [7.5] * 3  # the sparser of two that are alike
    assert not any(any(refit.record.feature_scores) for refit in refits)


def test_null_is_said_of_each_fold_by_itself(tmp_path, digits):
    changes = {"solver__params": {"max_iter": 3, "alpha_scale": "absolute"}}
    study = make_study(digits, solver__space={"alpha": [1.0]}, **changes)
    collapse = {
        fold.name: max(study.fold_data(inner, {}).prepared.alpha_max for inner in fold.inner)
        for fold in study.plan.folds
    }
    lowest = min(collapse, key=collapse.get)
    between = float(np.mean(sorted(collapse.values())[:2]))
    study = make_study(digits, solver__space={"alpha": [between, 1.0]}, **changes)
    records, refits, _ = run_on_ray(study, tmp_path / "run")
    (partly,) = (record for record in records.values() if record["params"]["alpha"] == between)
    assert partly["status"] == "finished"
    assert {name for name, fold in partly["folds"].items() if fold["null"]} == {lowest}
    assert next(r.record.params["alpha"] for r in refits if r.record.fold == lowest) == 1.0


def workers() -> set[int]:
    """The processes of this Ray that run trials."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            title = (entry / "cmdline").read_bytes()
            if title.startswith(b"ray::ResourceTrainable") and _is_below(int(entry.name)):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


class Killer(threading.Thread):
    """Kills workers of trials as they appear, so many of them."""

    def __init__(self, many: int) -> None:
        super().__init__(daemon=True)
        self.many, self.killed, self.ended = many, set(), threading.Event()

    def __enter__(self):
        self.spared = workers()
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()

    def run(self):
        while len(self.killed) < self.many and not self.ended.is_set():
            for pid in workers() - self.spared - self.killed:
                if len(self.killed) < self.many:
                    self.killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


@pytest.mark.slow
def test_a_trial_whose_worker_is_killed_starts_again(tmp_path, digits, capfd):
    study = make_study(digits, solver__params={"max_iter": 150, "tol": 0.0}, solver__space={"alpha": [0.01, 0.02]})
    calm, _, _ = run_on_ray(study, tmp_path / "calm")
    with Killer(1) as killer:
        records, _, _ = run_on_ray(study, tmp_path / "run")
    assert len(killer.killed) == 1
    assert records == calm
    assert "Traceback" not in "".join(capfd.readouterr())  # over a person's progress line


@pytest.mark.slow
def test_a_trial_whose_workers_die_again_and_again_is_recorded_as_failed(tmp_path, digits):
    study = make_study(digits, solver__params={"max_iter": 3000, "tol": 0.0}, solver__space={"alpha": [0.01]})
    with (
        Killer(3) as killer,
        pytest.raises(
            StudyError,
            match=r"no configuration has a score on outer0: 1 failed, the first with .the worker process died 3",
        ),
    ):
        run_on_ray(study, tmp_path / "run")
    assert len(killer.killed) == 3
    (record,) = read_journal(tmp_path / "run" / "journal.jsonl")
    assert record["status"] == "failed"
    assert record["error"] == "the worker process died 3 times (killed, or out of memory)"
    assert FoldTrace(null=True).score("one_se") is None
    assert '"finished": 0, "running": 0, "failed": 1, "total": 1' in (tmp_path / "run" / "progress.json").read_text()
