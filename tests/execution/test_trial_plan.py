"""Plans of trials: searches that learn or stop early, paths, shared preparations, and trials
that were lost.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from small_studies import (
    NoUpload,
    make_study,
    raw_config,
    run_offline,
    run_on_ray,
    run_serially,
    write_digits,
)

from raysel.base.registry import OWN, solver_capabilities
from raysel.core.errors import ConfigError, StudyError
from raysel.core.files import make_instance
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.lost_trials import worker_died
from raysel.evaluation.nested_search import FoldSearch
from raysel.evaluation.records import InnerTrace, PathRecord, TrialRecord
from raysel.evaluation.scoring import Evaluation
from raysel.execution.serial import SerialExecutor
from raysel.execution.trials import trial_records
from raysel.run import course
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal
from raysel.tune import main


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "few.npz"
    write_digits(path)
    return path


# --- searches that learn or stop early: each outer fold by itself, and never by its test samples

LEARNING = {
    "solver__params": {"max_iter": 12, "tol": 0.0},
    "solver__space": {"alpha": {"loguniform": [0.003, 0.9]}, "rank": {"randint": [1, 6]}},
    "search": {
        "executor": "serial",
        "method": "tpe",
        "num_samples": 9,
        "early_stopping": "asha",
        "grace_period": 1,
        "synchronous": True,
        "batch_size": 3,
    },
}


@pytest.fixture(scope="module")
def learnt(digits, tmp_path_factory):
    """A study that learns and stops early: its definition, records by id, refits and journal."""
    study = make_study(digits, **LEARNING)
    return study, *run_serially(study, tmp_path_factory.mktemp("learnt") / "run")


def of_fold(records, fold):
    return {key: record for key, record in records.items() if record["fold"] == fold}


def test_every_fold_has_trials_of_its_own_and_only_those_count(learnt):
    study, records, refits, _ = learnt
    for fold in study.plan.folds:
        mine = of_fold(records, fold.name)
        assert 3 <= len(mine) <= 9
        assert all(set(record["folds"]) == {fold.name} for record in mine.values())
    assert {r["status"] for r in records.values()} == {"finished", "stopped"}
    for record in records.values():
        (trace,) = record["folds"].values()
        n = len(trace["inner"][0]["objective"])
        assert n == 12 if record["status"] == "finished" else n in (1, 3, 9)
    for refit in refits:
        winner = records[refit.record.trial]
        assert (winner["fold"], winner["status"]) == (refit.record.fold, "finished")


def test_a_folds_test_samples_change_neither_its_proposals_nor_its_stops(learnt, tmp_path):
    study, records, refits, _ = learnt
    (tmp_path / "plan.json").write_text(json.dumps(study.plan.to_json()))
    data, fold = study.dataset, study.plan.folds[0]
    X, y, rng = data.X.copy(), data.y.copy(), np.random.default_rng(0)
    X[fold.test] = rng.uniform(0, 16, X[fold.test].shape)
    y[fold.test] = rng.permutation(y[fold.test])
    np.savez(tmp_path / "scrambled.npz", X=X.reshape(-1, 8, 8), y=y)
    scrambled = make_study(
        tmp_path / "scrambled.npz", **LEARNING, cv={"plan": str(tmp_path / "plan.json")}
    )
    other, other_refits, _ = run_serially(scrambled, tmp_path / "run")
    assert of_fold(other, fold.name) == of_fold(records, fold.name)
    assert other_refits[0].record.feature_scores == refits[0].record.feature_scores
    assert other_refits[0].record.test_scores != refits[0].record.test_scores
    for there in ("outer1", "final"):  # they trained on those samples, and learnt otherwise
        assert of_fold(other, there) != of_fold(records, there)


def test_without_batches_records_of_an_earlier_run_are_learnt_from_and_not_tried_again(
    learnt, digits
):
    *_, kept = learnt
    free = make_study(
        digits, **{**LEARNING, "search": {**LEARNING["search"], "synchronous": False}}
    )
    fold = free.plan.folds[0]
    records = [make_instance(TrialRecord, entry) for entry in kept if entry["fold"] == fold.name][
        :4
    ]
    search = FoldSearch(free.config, fold, free.configurations, free.halving(), records)
    tried = list(iter(search.next, None))
    assert len(tried) == 9 - 4
    assert not {record.id for record in tried} & {record.id for record in records}
    # A rung knows them too: the worst of all does not go on.
    assert not search.should_continue(tried[0], level=1, score=-1.0)
    assert search.should_continue(tried[0], level=1, score=1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"evaluation__classifier": "linear_svm", "search": {"early_stopping": "asha"}},
            "linear_svm is scored at the last one only",
        ),
        ({"search": {"method": "tpe"}}, "num_samples is needed by search.method tpe"),
        (
            {"solver__space": {}, "search": {"method": "tpe", "num_samples": 3}},
            r"needs solver\.space",
        ),
        (
            {
                "solver__space": {"rank": {"randint": [1, 9]}},
                "search": {"method": "tpe", "num_samples": 3},
            },
            "rank=9",
        ),
        ({"search": {"method": "path", "early_stopping": "asha"}}, "nothing to stop on a `path`"),
    ],
)
def test_searches_that_cannot_learn_are_refused(digits, changes, message):
    with pytest.raises(ConfigError, match=message):
        make_study(digits, **changes)


# --- paths ---

WHOLE = "solver.space={gamma1: [0.02, 0.1, 2.0], gamma2: [0.02, 0.2]}"


@pytest.fixture
def tune(tmp_path):
    """Run the study of two views by the command, and return the journal."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    first, second = rng.normal(size=(60, 5)), rng.normal(size=(60, 4))
    first[:, 0] += 2.0 * y
    second[:, 1] -= 1.5 * (y == 1)
    np.savez(tmp_path / "views.npz", view_0=first, view_1=second, view_names=["a", "b"], y=y)

    def run(method, *arguments):
        raw = raw_config(
            tmp_path / "views.npz",
            dataset__scaling="zscore_sqrt_width",
            solver={
                "name": "smml",
                "params": {"tol": 1e-7},
                "space": {"gamma1": [0.02], "gamma2": [0.02]},
            },
            evaluation={"classifier": "native"},
            search__method=method,
        )
        (tmp_path / f"{method}.yaml").write_text(json.dumps(raw))
        assert main([str(tmp_path / f"{method}.yaml"), *arguments]) == 0
        return list(read_journal(tmp_path / method / "journal.jsonl"))

    return run


def trials(records):
    return {r["id"]: r for r in records if r["kind"] == "trial"}


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_path_gives_the_scores_of_single_trials_and_grows_by_what_is_new(tune, tmp_path):
    small = tune("path", "--output", f"{tmp_path}/path", "--set", WHOLE.replace(", 2.0", ""))
    grown = tune("path", "--resume", f"{tmp_path}/path", "--set", WHOLE)
    assert grown[: len(small)] == small
    new, known, path = grown[len(small) :], trials(small), trials(grown)
    assert {record["params"]["gamma1"] for record in trials(new).values()} == {2.0}
    solved = [record for record in new if record["kind"] == "path"]
    assert len(solved) == 6
    assert all(
        len(record["fits"]) == 2 and not known.keys() & record["fits"].keys() for record in solved
    )
    progress = json.loads((tmp_path / "path" / "progress.json").read_text())
    assert progress == {
        "finished": 6,
        "running": 0,
        "failed": 0,
        "total": 6,
    }  # training sets, not configurations

    alone = tune("grid", "--output", f"{tmp_path}/grid", "--set", WHOLE)
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
    winners = [
        {r["fold"]: r["trial"] for r in records if r["kind"] == "refit"}
        for records in (grown, alone)
    ]
    assert winners[0] == winners[1]
    assert {r["status"] for r in path.values() if r["params"]["gamma1"] == 2.0} == {"null"}


A, B = (Configuration({"alpha": i}, ("alpha",)).id for i in (1, 2))


def joined_records(paths, *alphas):
    """Trial records of a study of one outer fold with two inner ones, and a final fold with one."""
    folds = [
        SimpleNamespace(name="outer0", inner=range(2)),
        SimpleNamespace(name="final", inner=range(1)),
    ]
    configurations = [Configuration({"alpha": i}, ("alpha",)) for i in alphas]
    plan = SimpleNamespace(folds=folds)
    study = SimpleNamespace(
        plan=plan, evaluation=Evaluation("native"), configurations=configurations
    )
    return trial_records(study, paths)


def fit(source):
    return InnerTrace([1.0], [[0.5]], source)


def test_records_are_put_together_whatever_the_order():
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved"), B: fit("zero")}, started=2.0, ended=3.0),
        PathRecord("outer0", 1, fits={A: fit("diagonal"), B: fit("zero")}, started=1.0, ended=5.0),
        PathRecord("final", 0, fits={A: fit("zero"), B: fit("zero")}, started=4.0, ended=4.5),
    ]
    for order in (paths, paths[::-1]):
        a, b = joined_records(order, 1, 2)
        assert (a.status, a.folds["outer0"].null, a.folds["final"].null) == (
            "finished",
            False,
            True,
        )
        assert (b.status, b.inferred) == ("null", "3 zero")
        assert a.inferred == "1 solved, 1 diagonal, 1 zero"
        assert (a.started, a.ended) == (1.0, 5.0)


def test_a_failed_training_set_fails_the_configurations_that_lack_it():
    failed = PathRecord("outer0", 1, status="failed", error="Traceback: singular")
    final = PathRecord("final", 0, fits={A: fit("solved")})
    (record,) = joined_records([PathRecord("outer0", 0, fits={A: fit("solved")}), failed, final], 1)
    assert record.status == "failed"
    assert record.failed_folds == ["outer0"]
    assert "inner fold 1" in record.failure
    assert "singular" in record.failure
    assert record.folds["final"].score("mean") == 0.5
    # One that fails when the grid has grown takes nothing back.
    paths = [
        PathRecord("outer0", 0, fits={A: fit("solved"), B: fit("solved")}),
        PathRecord("outer0", 1, fits={A: fit("solved")}, started=1.0, ended=2.0).joined(failed),
        PathRecord("final", 0, fits={A: fit("solved"), B: fit("solved")}),
    ]
    a, b = joined_records(paths, 1, 2)
    assert (a.status, b.status, b.failed_folds) == ("finished", "failed", ["outer0"])
    assert "singular" in b.failure


# --- preparations are shared by configurations that agree in what they depend on, and by no others

#: The method whose preparation depends on which label stands for none.
(METHOD,) = (name for name in OWN if "unlabelled" in solver_capabilities(name).prepare_parameters)
VALUES = [None, -1, 3]


@pytest.fixture
def partly_labelled(tmp_path, digits):
    data = dict(np.load(digits))
    data["y"] = np.where(np.arange(len(data["y"])) % 4 == 0, -1, data["y"])
    np.savez(tmp_path / "few.npz", **data)
    return tmp_path / "few.npz"


def study_of_labels(data, values):
    solver = {"name": METHOD, "space": {"unlabelled": values, "shrinkage": [0.1, 0.5]}}
    return make_study(data, solver=solver, evaluation={"classifier": "native"})


def by_value(records):
    """Records by their parameters, ids and names left out."""
    return {
        json.dumps([record["params"]["unlabelled"], record["params"]["shrinkage"]]): {
            key: value for key, value in record.items() if key not in ("id", "name")
        }
        for record in records.values()
    }


def test_each_value_gives_what_it_gives_alone(partly_labelled, tmp_path):
    records, _, _ = run_serially(study_of_labels(partly_labelled, VALUES), tmp_path / "all")
    assert all(record["status"] == "finished" for record in records.values())
    alone = {}
    for value in VALUES:
        single, _, _ = run_serially(
            study_of_labels(partly_labelled, [value]), tmp_path / f"alone{value}"
        )
        alone |= by_value(single)
    assert by_value(records) == alone
    curves = {
        json.dumps([fold["inner"][0]["objective"] for fold in r["folds"].values()])
        for r in records.values()
    }
    assert len(curves) == len(records)  # the values matter


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_serial_and_ray_agree(partly_labelled, tmp_path):
    """Where Ray's store has room for all prepared folds; without room each trial prepares its
    own, as here.
    """
    study = study_of_labels(partly_labelled, VALUES)
    records, refits, _ = run_serially(study, tmp_path / "serial")
    on_ray, ray_refits, _ = run_on_ray(study, tmp_path / "ray")
    assert records == on_ray
    assert [r.record.feature_scores for r in refits] == [
        r.record.feature_scores for r in ray_refits
    ]


# --- trials that were recorded as failed because a worker, perhaps its whole node, was lost ---

LOST = "the worker process died 3 times (killed, or out of memory)"
CHANGED = (
    "Traceback (most recent call last):\n  ...\nraysel.core.errors.DataError: /data/x.parquet is"
    " not the file that was opened first: it was written anew meanwhile, or is another copy on"
    " another machine. Start again."
)
RAISED = (
    "Traceback (most recent call last):\n  ...\nValueError: the worker process died 3 times"
    " (killed)"
)
PATH = {
    "solver": {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.1, 2.0]}},
    "evaluation": {"classifier": "native"},
    "search": {"method": "path", "executor": "serial"},
}


def comparable(record):
    return {
        key: value
        for key, value in record.to_json().items()
        if key not in ("started", "ended", "cpu_seconds")
    }


def resume_after(kind, error, data, folder, **changes):
    """Run a study, resume it after its first record of a kind has failed, and return both."""
    run_offline(raw_config(data, **changes), folder)
    directory = StudyDirectory(folder)
    calm = StoredStudy.read(directory)
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["kind"] == kind)
    first |= {
        "status": "failed",
        "error": error,
        **({"folds": {}} if kind == "trial" else {"fits": {}}),
    }
    kept = [line for line in lines if line["kind"] in ("study", "trial", "path", "search")]
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept))
    study = make_study(data, **changes)
    study = type(study).prepare(study.config, directory.plan)
    course.resume(study, directory, SerialExecutor(study), start_upload=NoUpload)
    return calm, StoredStudy.read(directory)


@pytest.mark.parametrize(
    ("kind", "error", "changes"),
    [
        ("trial", LOST, {}),
        ("path", LOST, PATH),
        pytest.param("trial", CHANGED, {}, marks=pytest.mark.slow),
    ],
)
def test_a_lost_trial_runs_again_and_the_study_ends_as_if_it_had_not_been(
    kind, error, changes, digits, tmp_path
):
    calm, resumed = resume_after(kind, error, digits, tmp_path / "study", **changes)
    records = [
        {record.id: comparable(record) for record in stored.trials} for stored in (calm, resumed)
    ]
    assert records[0] == records[1]
    assert len(resumed.trials) == len(calm.trials)
    for fold, refit in calm.refits.items():
        assert comparable(resumed.refits[fold]) == comparable(refit)


def test_a_trial_that_failed_by_itself_is_not_run_again(digits, tmp_path):
    _, resumed = resume_after("trial", RAISED, digits, tmp_path / "study")
    assert [record.error for record in resumed.trials if record.status == "failed"] == [RAISED]


class Losing(SerialExecutor):
    """Executor that loses some trials, by their places in the order of all, as one whose workers
    are killed.
    """

    def __init__(self, study, lost):
        super().__init__(study)
        self.lost, self.n_begun = lost, 0

    def _run_trial(self, plan, config, recorder, limits):
        self.n_begun += 1
        if self.n_begun - 1 in self.lost:
            recorder.lose(config, worker_died(3))
        else:
            super()._run_trial(plan, config, recorder, limits)


GRID = {"solver__space": {"alpha": [0.01, 0.05, 0.1]}}
FEW = {**LEARNING, "solver__params": {"max_iter": 4, "tol": 0.0}, "cv__final": False}
FEW["search"] = {**LEARNING["search"], "num_samples": 5, "batch_size": 2}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [pytest.param(GRID, {0, 2}, marks=pytest.mark.slow), (PATH, {0, 4}), (FEW, {0, 1, 2, 3})],
    ids=["grid", "path", "learning"],
)
def test_a_study_whose_workers_were_killed_is_resumed_to_what_an_undisturbed_one_is(
    changes, lost, digits, tmp_path
):
    study, found = make_study(digits, **changes), []
    course.run(study, tmp_path / "calm", SerialExecutor(study), start_upload=NoUpload)
    # On a path, each outer fold needs all of its training sets.
    with pytest.raises(StudyError, match="Resume it") if changes is PATH else nullcontext():
        course.run(study, tmp_path / "killed", Losing(study, lost), start_upload=NoUpload)
    killed = StudyDirectory(tmp_path / "killed")
    assert StoredStudy.read(killed).has_lost
    course.resume(study, killed, SerialExecutor(study), start_upload=NoUpload)
    for name in ("calm", "killed"):
        stored = StoredStudy.read(StudyDirectory(tmp_path / name))
        trials = {record.id: comparable(record) for record in stored.trials}
        refits = {fold: comparable(refit) for fold, refit in stored.refits.items()}
        found.append((trials, refits))
    assert found[0] == found[1]
