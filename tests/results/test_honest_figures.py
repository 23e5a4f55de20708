"""What limits a result stands beside it: an empty winner, a search that was cut, fits that did
not converge.
"""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from mlflow.tracking import MlflowClient
from ray import cloudpickle
from small_studies import NoUpload, make_study, run_on_ray, run_serially, write_digits, write_yaml

from raysel import select, tune
from raysel.config import config_from_dict, load_config
from raysel.core.errors import ConfigError
from raysel.core.files import make_instance
from raysel.evaluation.records import TrialRecord
from raysel.execution import executor
from raysel.execution.batches import Batches
from raysel.execution.executor import SearchLimits
from raysel.execution.ray import executor as ray_executor
from raysel.execution.ray.tune import PlanScheduler, PlanSearcher
from raysel.execution.trial_plan import trial_plan
from raysel.results.export import markdown
from raysel.run.api import open_study
from raysel.study.definition import Study
from raysel.tracking.journal import read_journal
from raysel.tracking.records import record_from_line
from raysel.tracking.upload_process import MLflowUploader


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    return tmp_path


@pytest.fixture
def offline(monkeypatch):
    """Upload nothing to MLflow."""
    upload_nothing(monkeypatch)


def upload_nothing(monkeypatch):
    for name in ("__init__", "finish"):
        monkeypatch.setattr(MLflowUploader, name, getattr(NoUpload, name))


def shown(path, capsys) -> list[str]:
    """All that a study shows in words: on the terminal, by select, in MLflow's description and
    in the manifest.
    """
    told = [" ".join(capsys.readouterr().out.split())]
    assert select.main([str(path)]) == 0
    told.append(" ".join(capsys.readouterr().out.split()))
    told.append(markdown(open_study(path).facts))
    manifest = json.loads((path / "ranking" / "manifest.json").read_text())
    return [*told, " ".join(manifest["remarks"])]


def after(n):
    """Time limit that is reached when n trials have ended."""

    def reached(limits):
        limits.out_of_time = len(limits._plan.records) >= n
        return limits.out_of_time

    return reached


def empty(_folder):
    """Winners without a feature: sentences, and none of another kind."""
    return {"solver__space": {"alpha": [2.0, 7.5]}}, [
        "the final model selects no feature",
        "Add weaker penalties to solver.space: 2 of 2 outer folds select no feature.",
    ]


def unconverged(_folder):
    params, space = {"max_iter": 6, "tol": 1e-3}, {"alpha": [0.01, 0.3]}
    return {"solver__params": params, "solver__space": space}, ["winners did not reach tol."]


def warned(folder):
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 4)) + y[:, None]
    X[:, 3] *= 1e-18  # below the rounding of the others
    np.savez(folder / "data.npz", X=X, y=y)
    data = {"path": "data.npz", "scaling": "none"}
    return {"dataset": data, "solver": {"name": "mtda"}, "evaluation": {"classifier": "native"}}, [
        "The fit of outer0, outer1, final warned: ",
        "rank 3 of 4 directions that vary",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("case", [empty, unconverged, warned])
def test_what_limits_a_result_is_said_everywhere(here, capsys, case):
    changes, sentences = case(here)
    write_yaml(here / "few.yaml", **changes)
    assert tune.main(["few.yaml", "--output", "study", "--verbose"]) == 0
    texts = shown(here / "study", capsys)
    for text in texts:
        assert all(sentence in text for sentence in sentences)
    manifest = json.loads((here / "study/ranking/manifest.json").read_text())
    if case is empty:
        for text in texts:
            assert "best first" not in text
            assert not re.search(r"[Ss]tability of the top [^:]*: -?\d\.\d\d", text)
        assert manifest["stability"]["value"] is None
        assert manifest["stability"]["undefined_because"] == "no feature is selected"
        assert manifest["features_with_score"] == {"outer0": 0, "outer1": 0, "final": 0}
        assert manifest["scores"]["test"] == [0.25, 0.25]  # four classes of one size
    if case is unconverged:
        entries = list(read_journal(here / "study/journal.jsonl"))
        refits = [record_from_line(entry) for entry in entries if entry["kind"] == "refit"]
        for refit in refits:
            fell = -np.diff(refit.objective[-2:]) / refit.objective[-2]
            assert refit.converged == (fell.item() <= 1e-3)
        missed = [refit.fold for refit in refits if not refit.converged]
        assert (
            f"{len(missed)} of 3 winners did not reach tol. They are those of {', '.join(missed)}"
            in texts[0]
        )
        trials = [fold for e in entries if e["kind"] == "trial" for fold in e["folds"].values()]
        ended = [inner["converged"] for fold in trials for inner in fold["inner"]]
        assert f"{ended.count(False)} of {len(ended)} inner fits did not reach tol" in texts[1]


@pytest.mark.slow
def test_a_search_cut_by_its_time_is_marked_and_its_manifest_recreates_it(
    here, capsys, monkeypatch
):
    space = {"alpha": [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4]}
    uri = f"sqlite:///{here}/mlflow.db"
    write_yaml(
        here / "few.yaml", solver__space=space, search={"executor": "serial", "time_budget": 1000.0}
    )
    with monkeypatch.context() as context:
        context.setattr(SearchLimits, "reached", after(3))
        assert (
            tune.main(
                ["few.yaml", "--output", "study", "--verbose", "--set", f"tracking.uri={uri}"]
            )
            == 0
        )
    for text in shown(here / "study", capsys):
        assert "it ended the search after 3 of 8 trials." in text
    manifest = json.loads((here / "study/ranking/manifest.json").read_text())
    assert manifest["search"] == {"cut_by_time_budget": True, "n_tried": 3, "n_planned": 8}
    tried = sorted(entry["params"]["alpha"] for entry in manifest["tried"])
    assert len(tried) == 3
    assert tried != space["alpha"][:3], "the order of trials is that of the list"
    (study_run,) = MlflowClient(uri).search_runs(["1"], "tags.`raysel.kind` = 'study'")
    assert study_run.data.metrics["cut_by_time_budget"] == 1.0

    # The command of the manifest, in any directory.
    upload_nothing(monkeypatch)
    monkeypatch.setattr("raysel.results.page.report.write_final_report", lambda _: None)
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    command = shlex.split(manifest["command"])
    assert command[:2] == ["raysel", "tune"]
    output = ["--output", "../again"]
    assert tune.main([*command[2:], *output]) == 0
    again = json.loads((here / "again/ranking/manifest.json").read_text())
    assert not again["search"]["cut_by_time_budget"]
    assert again["remarks"] == [
        remark for remark in manifest["remarks"] if "time_budget" not in remark
    ]
    for key in ("tried", "winners", "scores", "stability", "convergence"):
        assert again[key] == manifest[key]

    # It names the configurations itself: neither the directory nor what becomes of the manifest
    # matters.
    monkeypatch.chdir(here)
    (here / "study/ranking/manifest.json").write_text("{}")
    assert tune.main(["--resume", "again"]) == 0

    # Resumed without the limit it is the whole study, and no longer marked.
    assert tune.main(["--resume", "study"]) == 0
    whole = json.loads((here / "study/ranking/manifest.json").read_text())
    assert whole["search"] == {"cut_by_time_budget": False, "n_tried": 8, "n_planned": 8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "missing.json' cannot be read as the manifest.json"),
        ("{}", "cannot be read as the manifest.json"),
        ('{"tried": []}', "no configuration is listed"),
        (
            '{"tried": [{"id": "0123456789abcdef"}]}',
            "1 of its 1 configurations are not in solver.space",
        ),
    ],
)
def test_configurations_of_no_such_study_are_refused(here, text, message):
    path = here / "missing.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        make_study(here / "few.npz", search={"configurations": str(path)})


def test_a_table_of_mixed_units_is_told_from_an_image(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    constant = np.random.default_rng(0).normal(size=(40, 3))
    constant[:, 2] = 0.1  # whose standard deviation rounds to 1e-17
    np.savez("constant.npz", X=constant, y=np.arange(40) % 2)
    changes = ["--dry-run", "--set", "solver.name=linear_svm", "--set", "solver.space={C: [1.0]}"]
    changes += ["--set", "solver.params={}", "--set", "evaluation={classifier: native}"]
    for source, scaling, said in (
        ("wine", "unit", True),
        ("wine", "zscore", False),
        ("iris", "unit", False),
        ("digits", "unit", False),
        ("constant.npz", "unit", False),
    ):
        dataset = (
            f"dataset={{{'path' if '.' in source else 'source'}: {source}, scaling: {scaling}}}"
        )
        assert tune.main([*changes, "--set", dataset]) == 0
        assert ("standard deviations differ by a factor of" in capsys.readouterr().out) == said


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_failure_on_one_outer_fold_decides_nothing_on_another(tmp_path):
    """A column varies in outer0's test rows only: without them there is one component less than
    is asked for.
    """
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 12)
    X = np.column_stack([rng.normal(size=(48, 2)) + y[:, None] % 2, np.zeros(48)])
    raw = {
        "name": "few",
        "dataset": {"path": str(tmp_path / "data.npz"), "scaling": "none"},
        "solver": {"name": "mtda", "space": {"n_components": [1, 3]}},
        "cv": {"outer": 3, "inner": 2},
    }
    np.savez(tmp_path / "data.npz", X=X, y=y)
    test = Study.prepare(config_from_dict(raw)).plan.folds[0].test  # folds depend on y alone
    X[test, 2] = 5.0 * (y[test] // 2) + rng.normal(size=len(test))
    np.savez(tmp_path / "data.npz", X=X, y=y)
    study = Study.prepare(config_from_dict(raw))
    records, refits, _ = run_on_ray(study, tmp_path / "run")
    (wide,) = (
        r
        for r in (make_instance(TrialRecord, raw) for raw in records.values())
        if r.params["n_components"] == 3
    )
    assert (wide.status, wide.failed_folds) == ("failed", ["outer0"])
    assert "n_components=3" in wide.failure
    winners = {refit.record.fold: refit.record.params["n_components"] for refit in refits}
    assert winners["outer0"] == 1
    assert 3 in (winners["outer1"], winners["outer2"], winners["final"])
    alone = {fold.name: wide.folds[fold.name].score for fold in study.plan.folds[1:]}
    assert all(score is not None for score in alone.values())


def test_a_feature_of_one_value_is_neither_ranked_nor_scored_with(tmp_path):
    """Under scaling none a constant column is a second intercept of the SVM, with the largest
    coefficient of all.
    """
    y = np.repeat([0, 1], [10, 50])
    X = np.column_stack([np.full(60, 3.0), y + np.linspace(0, 0.1, 60)])
    np.savez(tmp_path / "data.npz", X=X, y=y)
    raw = {
        "name": "few",
        "dataset": {"path": str(tmp_path / "data.npz"), "scaling": "none"},
        "solver": {"name": "linear_svm", "params": {"C": 0.001}},
        "evaluation": {"classifier": "knn", "n_features": [1]},
        "cv": {"outer": 2, "inner": 2},
    }
    _, refits, _ = run_serially(Study.prepare(config_from_dict(raw)), tmp_path / "run")
    for refit in refits:
        assert refit.record.feature_scores[0] == 0
        assert refit.record.feature_scores[1] > 0
        assert refit.record.inner_score == 1.0
        assert refit.record.test_scores in ([1.0], [])


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_a_cut_search_that_learns_names_no_command_that_recreates_it(here, monkeypatch):
    search = {
        "executor": "serial",
        "early_stopping": "asha",
        "synchronous": True,
        "time_budget": 1000.0,
    }
    space = {"alpha": [0.01, 0.02, 0.03, 0.05, 0.1]}
    write_yaml(here / "few.yaml", solver__space=space, search=search)
    monkeypatch.setattr(SearchLimits, "reached", after(4))
    assert tune.main(["few.yaml", "--output", "study", "--verbose"]) == 0
    manifest = json.loads((here / "study/ranking/manifest.json").read_text())
    assert manifest["search"]["cut_by_time_budget"]
    assert manifest["command"] is None


def test_nothing_that_tune_pickles_a_trial_holds_the_data(tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    adaptive = make_study(tmp_path / "few.npz", search={"early_stopping": "asha"})
    assert study.dataset.X.nbytes > 10_000
    for found in (study, adaptive):
        work = trial_plan(found)
        for pickled in (
            ray_executor._trial_name,
            PlanSearcher(Batches(work), None, None),
            PlanScheduler(work, None),
        ):
            assert len(cloudpickle.dumps(pickled)) < 1000


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_memory_that_runs_short_is_said_once(tmp_path, monkeypatch):
    write_digits(tmp_path / "few.npz")
    monkeypatch.setattr(executor, "machine_memory", lambda: 2**20)
    said = []
    monkeypatch.setattr(
        "raysel.tracking.log.StudyLog.message", lambda _, sentence: said.append(sentence)
    )
    run_on_ray(make_study(tmp_path / "few.npz"), tmp_path / "run")
    assert (
        len([sentence for sentence in said if "more than 50% of the machine's memory" in sentence])
        == 1
    )


def test_configurations_of_a_manifest_are_another_study_by_hash(here):
    write_yaml(here / "few.yaml")
    plain, limited = (
        load_config("few.yaml", more) for more in ([], ["search.configurations=[0123456789abcdef]"])
    )
    assert plain.hash != limited.hash
    with pytest.raises(ConfigError, match="`configurations` is for method grid, random or sobol"):
        load_config("few.yaml", ["search.configurations=[a]", "search.early_stopping=asha"])
