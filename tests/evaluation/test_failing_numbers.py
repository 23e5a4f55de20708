"""Numbers of features, and settings, with which the estimator of the evaluation fails: the
others are as without them.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from small_studies import NoUpload, make_study, run_serially, timeless

import raysel
from raysel.core.errors import ConfigError, StudyError
from raysel.evaluation.failing_numbers import FailingNumbers
from raysel.execution.serial import SerialExecutor
from raysel.results.displays.scores import ScoreCurve
from raysel.results.page.report import write_report
from raysel.results.remarks import format_remarks, short_remarks
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.run.audit import careless_score
from raysel.run.permutation import Chosen, permuted_scores
from raysel.study.cost import estimate_cost
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records
from raysel.tracking.mlflow_view import trial_view

WORKS, FAILS = [2, 4], [2, 4, 8, 16]
PICKY = {"name": "failing_estimators.Picky", "params": {"features": 4}}
OUTER = {"outer": 2, "inner": 2, "final": False}
SHORT = {"gamma2": 0.0, "max_iter": 20}  # which gives each feature a score
SEARCHES = {
    "grid": {"search": {"executor": "serial"}},
    "path": {
        "solver": {"name": "smml", "params": SHORT, "space": {"gamma1": [0.01, 0.1]}},
        "search": {"method": "path", "executor": "serial"},
    },
    "tpe": {
        "solver": {
            "name": "smr",
            "params": {"max_iter": 3},
            "space": {"alpha": {"loguniform": [0.01, 0.1]}},
        },
        "search": {
            "method": "tpe",
            "num_samples": 2,
            "synchronous": True,
            "executor": "serial",
        },
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of 61 samples, told by four of twenty features."""
    generator = np.random.default_rng(0)
    X, y = generator.standard_normal((61, 20)), np.arange(61) % 2
    X[:, :4] += 0.8 * y[:, None]
    path = tmp_path_factory.mktemp("lost") / "few.npz"
    np.savez(path, X=X, y=y)
    return path


def study_of(data: Path, numbers: list[int], scoring: Any, **changes: Any) -> Study:
    evaluation = {"estimator": scoring, "n_features": numbers, **changes.pop("evaluation", {})}
    settings = {"solver": {"name": "fisher_score"}, "cv": {"outer": 2, "inner": 2}, **changes}
    return make_study(data, evaluation=evaluation, **settings)


def run(study: Study, folder: Path) -> StudyResult:
    return course.run(study, folder, SerialExecutor(study), start_upload=NoUpload)


def without_lost(value: Any, n: int) -> Any:
    """A record as plain data, whose lists of a value for each number of features have the first
    n only.
    """
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in ("failures", "redundancy")}
        return {key: without_lost(each, n) for key, each in kept.items()}
    if not isinstance(value, list):
        return value
    if len(value) == len(FAILS) and value[n:] in ([None] * 2, [{}] * 2):
        return value[:n]
    return [without_lost(each, n) for each in value]


@pytest.mark.parametrize(
    ("search", "rule"),
    [("grid", "one_se"), ("path", "mean"), ("tpe", "best")],
)
def test_what_works_is_scored_as_without_what_fails(search, rule, data, tmp_path):
    chosen = {"choose_n": rule, "report": ["balanced_accuracy"]}
    trials, refits = {}, {}
    for numbers in (WORKS, FAILS):
        study = study_of(data, numbers, PICKY, evaluation=chosen, **SEARCHES[search])
        n = len(numbers)
        trials[n], models, _ = run_serially(study, tmp_path / str(n))
        refits[n] = [timeless(refit.record.to_json()) for refit in models]
    for fold in trials[4].values():
        for trace in fold["folds"].values():
            assert {tuple(each[:1]) for fit in trace["inner"] for each in fit["failures"]} == {
                (8,),
                (16,),
            }
    for kept in (trials, refits):
        assert without_lost(kept[4], 2) == without_lost(kept[2], 2)
    assert refits[4][0]["test_scores"][2:] == [None, None]
    assert set(refits[4][0]["references"]) >= {"f_test"}


def test_settings_that_fail_are_not_chosen_and_change_no_other(data, tmp_path):
    """The 1 and the 7 nearest neighbours, and more than there are samples."""
    results = []
    for values in ([1, 7], [1, 7, 60]):
        scoring = {
            "name": "sklearn.neighbors.KNeighborsClassifier",
            "space": {"n_neighbors": values},
        }
        study = study_of(data, WORKS, scoring, cv=OUTER)
        results.append(run(study, tmp_path / str(len(values))))
    for without, refit in zip(*(result.outer for result in results), strict=True):
        assert timeless(refit.to_json()) == timeless(without.to_json())
    (lost,) = (r for r in results[1].facts.actions if r.key == "estimator_fails")
    told = FailingNumbers(**lost.values)
    assert (told.what, told.n_failed, told.n_inner) == ("2 and 4 features, n_neighbors=60", 4, 4)
    assert "evaluation.estimator.space" in short_remarks([lost])[0]


def test_a_number_is_out_where_one_inner_fold_fails(data, tmp_path):
    """As many neighbours as only some inner training sets have samples, by scikit-learn alone."""
    raw = dict(np.load(data))
    plan = study_of(data, [1, 2], "knn", cv={"outer": 3, "inner": 4}).plan
    sizes = {f.name: [len(inner.train) for inner in f.inner] for f in plan.folds}
    k = max(max(each) for name, each in sizes.items() if name != "final")
    out = {name for name, each in sizes.items() if min(each) < k}
    assert any(max(sizes[name]) >= k for name in out)
    assert out != set(sizes)
    scoring = {
        "name": "sklearn.neighbors.KNeighborsClassifier",
        "space": {"n_neighbors": [1, k]},
        "params": {"weights": "distance"},
    }
    changes = {"cv": {"outer": 3, "inner": 4}}
    study = study_of(data, [3], scoring, evaluation={"references": False}, **changes)
    for refit in run(study, tmp_path / "run").refits:
        means = []
        fold = next(fold for fold in plan.folds if fold.name == refit.fold)
        for n_neighbors in (1, k)[: 1 if fold.name in out else 2]:
            scores = []
            for inner in fold.inner:
                scaler = StandardScaler().fit(raw["X"][inner.train])
                X, Z = (scaler.transform(raw["X"][i]) for i in (inner.train, inner.validation))
                best = SelectKBest(f_classif, k=3).fit(X, raw["y"][inner.train])
                model = KNeighborsClassifier(n_neighbors, weights="distance")
                model.fit(best.transform(X), raw["y"][inner.train])
                scores.append(model.score(best.transform(Z), raw["y"][inner.validation]))
            means.append(np.mean(scores))
        assert refit.inner_score == pytest.approx(max(means))
        assert refit.settings == [{"n_neighbors": (1, k)[int(np.argmax(means))]}]


def test_where_all_fail_the_study_ends_with_the_key_to_change(data, tmp_path):
    with pytest.raises(
        ConfigError, match=r"^evaluation\.estimator: .*any of evaluation.n_features"
    ):
        study_of(data, FAILS, {"name": "failing_estimators.Picky", "params": {"features": 1}})
    few = {"name": "failing_estimators.Picky", "params": {"samples": 20}}  # as trial fits have
    study = study_of(data, WORKS, few)
    ends = r"no configuration has a score on final.*Change evaluation.estimator or evaluation.n_f"
    with pytest.raises(StudyError, match=ends):
        run(study, tmp_path / "run")
    with pytest.raises(
        ConfigError, match=r"^evaluation\.estimator or evaluation.n_features: it fails"
    ):
        estimate_cost(study)


def test_test_samples_choose_no_other_number(data, tmp_path):
    """An estimator that takes the inner training sets, and not the larger outer ones."""
    outer_only = {"name": "failing_estimators.Picky", "params": {"samples": 20}}
    ends = "outer0.*could not be refitted: evaluation.estimator fails with 2 f"
    with pytest.raises(StudyError, match=ends):
        run(study_of(data, [2], outer_only, cv=OUTER), tmp_path / "run")
    many = {"name": "failing_estimators.OfBoth", "params": {"samples": 20, "features": 4}}
    result = run(study_of(data, [4, 16], many, cv=OUTER), tmp_path / "other")
    expected = run(study_of(data, [4], many, cv=OUTER), tmp_path / "alone")
    assert {refit.n_features for refit in result.outer} == {4}
    assert [r.test_scores for r in result.outer] == [
        [score, None] for score in expected.test_scores
    ]


@pytest.mark.parametrize("scoring", ["OfMemory", "OfDisk", "Blind"])
def test_failures_of_the_machine_are_no_failures_of_a_number(scoring, data, tmp_path):
    named = {"name": f"failing_estimators.{scoring}", "params": {"features": 4}}
    study = study_of(
        data, [2, 8], named, evaluation={"metric": "roc_auc"} if scoring == "Blind" else {}
    )
    if scoring == "Blind":
        result = run(study, tmp_path / "run")
        assert [refit.n_features for refit in result.refits] == [2] * 3
        assert all(
            "NaN" in r.values["reason"] for r in result.facts.actions if "reason" in r.values
        )
        return
    with pytest.raises(StudyError, match=r"MemoryError|No trial is to blame"):
        run(study, tmp_path / "run")


def test_each_place_names_what_fails_why_and_how_often(data, tmp_path):
    study = study_of(data, FAILS, PICKY)
    result = run(study, tmp_path / "run")
    n_inner = sum(len(fold.inner) for fold in study.plan.folds)
    told = f"({n_inner} of {n_inner} inner folds)"
    (remark,) = (r for r in result.facts.actions if r.key == "estimator_fails")
    manifest = json.loads((result.directory.ranking / "manifest.json").read_text())
    assert manifest["estimator_fails"] == [{**remark.values, "n_features": [8, 16]}]
    assert format_remarks([remark])[0] in manifest["remarks"]
    (record,) = result.records
    shown = [
        short_remarks([remark])[0],
        result.trials().error[0],
        trial_view(result.stored.study, record).tags["raysel.left_out"],
    ]
    for place in shown:
        assert "8 and 16 features: ValueError" in place
        assert told in place
        assert "0x..." in place or "object at" not in place
    assert [lost.what for lost in estimate_cost(study).failing] == ["8 and 16 features"]
    shown = ScoreCurve.from_facts(result.facts)
    assert shown.frame().equals(result.score_curves())
    assert "undefined" not in shown.caption
    curve = result.score_curves().set_index("n_features")
    assert curve.loc[WORKS].notna().all(axis=None)
    assert curve.loc[[8, 16], "test_mean"].isna().all()


@pytest.mark.slow
def test_the_report_is_drawn_without_what_fails(data, tmp_path):
    result = run(study_of(data, FAILS, PICKY), tmp_path / "run")
    with warnings.catch_warnings(action="error"):
        write_report(result)
    assert "8 and 16 features: ValueError" in result.directory.report.read_text()


def test_records_are_read_back_and_a_resumed_study_is_equal(data, tmp_path):
    study = study_of(data, FAILS, PICKY)
    whole = run(study, tmp_path / "run")
    lines = (tmp_path / "run/journal.jsonl").read_text().splitlines(keepends=True)
    cut = StudyDirectory(tmp_path / "cut")
    cut.path.mkdir()
    for name in ("config.yaml", "plan.json"):
        shutil.copy(tmp_path / "run" / name, cut.path / name)
    cut.journal.write_text("".join(lines[:2]) + lines[2][:50])
    resumed = course.resume(study, cut, SerialExecutor(study), start_upload=NoUpload)
    for kept in ("records", "refits"):
        before, after = (
            [timeless(r.to_json()) for r in getattr(s, kept)] for s in (whole, resumed)
        )
        assert before == after
    assert len(list(read_records(cut.journal, checked=True))) == len(lines) + 1


@pytest.mark.parametrize("rule", ["one_se", "mean"])
def test_the_score_of_the_true_labels_is_computed_again(rule, data, tmp_path):
    study = study_of(data, FAILS, PICKY, evaluation={"choose_n": rule})
    _, refits, _ = run_serially(study, tmp_path / "run")
    chosen = {refit.record.fold: Chosen.of_refit(refit.record) for refit in refits}
    for known in (chosen, None):
        found = permuted_scores(study, 0, seed=0, chosen=known, ranks=False)["scores"]
        assert found == {r.record.fold: r.record.test_score for r in refits if r.record.test_scores}
    assert len(permuted_scores(study, 1, seed=0, chosen=None, ranks=False)["scores"]) == 2


def test_the_careless_score_is_as_without_what_fails(data):
    works, fails = (careless_score(study_of(data, numbers, PICKY)) for numbers in (WORKS, FAILS))
    assert works == fails


def test_nested_search_scores_what_works(data):
    raw = np.load(data)
    scores = []
    for numbers in (WORKS, FAILS):
        search = raysel.NestedSearch(
            SelectKBest(f_classif, k="all"),
            n_features=numbers,
            scoring_estimator=PICKY,
            outer=2,
            inner=2,
        )
        search.fit(raw["X"], raw["y"])
        scores.append(
            (search.score_, search.fold_results_["train_score"], search.ranking_.tolist())
        )
        assert search.score(raw["X"], raw["y"]) > 0.5
    assert scores[0] == scores[1]


def test_a_comparison_notes_what_a_member_lost(data, tmp_path):
    raw = {
        "name": "both",
        "dataset": {"path": str(data)},
        "cv": {"outer": 2, "inner": 2},
        "evaluation": {"estimator": PICKY, "n_features": FAILS},
        "compare": {name: {"solver": {"name": name}} for name in ("fisher_score", "t_test")},
        "search": {"executor": "serial"},
        "tracking": {"mlflow": False},
        "pictures": [],
        "output": str(tmp_path / "both"),
    }
    result = raysel.run_comparison(raw, progress=False)
    assert (
        "8 and 16 features: ValueError" in (tmp_path / "both/comparison/comparison.md").read_text()
    )
    assert len(result.rows) == 2
