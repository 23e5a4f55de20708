"""Studies with `dataset.only`, `cv.final`, `evaluation.report` and a metric of scores, from the
command to MLflow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from itertools import combinations

import numpy as np
import pytest
from mlflow.tracking import MlflowClient
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, f1_score
from sklearn.neighbors import KNeighborsClassifier
from small_studies import (
    make_study,
    run_serially,
    timeless,
    upload_nothing,
    write_digits,
    write_yaml,
)

import raysel
from raysel import select, tune
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError, DirectoryError, StudyError
from raysel.data.loading import load_dataset
from raysel.numerics.rankings import nogueira_stability
from raysel.results.export import markdown
from raysel.run.api import open_study
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal_upload import replay

REPORT = ["mean_average_precision", "macro_f1"]
CHANGES = {
    "dataset__only": ["right", "left"],
    "dataset__scaling": "unit",
    "solver": {"name": "linear_svm", "params": {"penalty": "l1"}, "space": {"C": [0.03, 0.3]}},
    "evaluation__report": REPORT,
    "cv": {"outer": 3, "inner": 2, "final": False},
}


def write_views(path, names=("left", "middle", "right")):
    """Digits as three views of their columns, or some of these."""
    X, y = load_digits(return_X_y=True)
    chosen = np.concatenate([np.flatnonzero(y == c)[:20] for c in range(4)])
    X = X[chosen].reshape(-1, 8, 8)
    views = {"left": X[:, :, :3], "middle": X[:, :, 3:5], "right": X[:, :, 5:]}
    arrays = {f"view_{i}": views[name].reshape(len(X), -1) for i, name in enumerate(names)}
    np.savez(path, **arrays, view_names=np.array(names), y=y[chosen])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A study with all of the keys, run by the command without upload: its folder and what was
    printed.
    """
    folder = tmp_path_factory.mktemp("keys")
    write_views(folder / "few.npz")
    write_yaml(folder / "few.yaml", **CHANGES)
    out = io.StringIO()
    arguments = ["few.yaml", "--output", "study", "--set", "tracking.uri=sqlite:///runs.db"]
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        pytest.MonkeyPatch.context() as patch,
    ):
        upload_nothing(patch)
        assert tune.main([*arguments, "--dry-run"]) == 0
        planned = out.getvalue()
        assert tune.main([*arguments, "--verbose"]) == 0
    return folder, planned, " ".join(out.getvalue()[len(planned) :].split())


def refits_by_hand(folder):
    """Scaled features, labels, folds and feature scores of the winners."""
    X = np.load(folder / "few.npz")
    X, y = np.hstack([X["view_0"], X["view_2"]]), X["y"]
    plan = json.loads((folder / "study/plan.json").read_text())
    lines = [json.loads(line) for line in (folder / "study/journal.jsonl").read_text().splitlines()]
    refits = {line["fold"]: line for line in lines if line["kind"] == "refit"}
    for fold in plan["folds"]:
        train, test = fold["train"], fold["test"]
        low, high = X[train].min(), X[train].max()
        yield X, y, train, test, (X - low) / (high - low), refits[fold["name"]]


def test_reported_metrics_are_scikit_learns_for_each_winner(done):
    folder, _, printed = done
    means = {name: [] for name in REPORT}
    for _, y, train, test, Z, refit in refits_by_hand(folder):
        assert list(refit["report"]) == REPORT
        order = np.argsort(-np.array(refit["feature_scores"]), kind="stable")
        for i, n in enumerate((4, 8)):
            best = order[:n]
            D = np.sqrt(((Z[test][:, None, best] - Z[train][None][:, :, best]) ** 2).sum(axis=2))
            own = np.stack([D[:, y[train] == c].min(axis=1) for c in range(4)], axis=1)
            others = np.stack([D[:, y[train] != c].min(axis=1) for c in range(4)], axis=1)
            aps = [average_precision_score(y[test] == c, (others - own)[:, c]) for c in range(4)]
            assert refit["report"]["mean_average_precision"][i] == pytest.approx(
                np.mean(aps), rel=1e-9
            )
            predicted = (
                KNeighborsClassifier(1).fit(Z[train][:, best], y[train]).predict(Z[test][:, best])
            )
            assert refit["report"]["macro_f1"][i] == pytest.approx(
                f1_score(y[test], predicted, average="macro")
            )
        for name in REPORT:
            means[name].append(refit["report"][name][refit["position"]])
        assert 0 <= refit["cpu_seconds"] < 60
    result = open_study(folder / "study")
    for name, values in means.items():
        assert result.report[name] == pytest.approx(values)
        assert result.summary()[f"test_{name}"].tolist() == pytest.approx(values)
        told = f"{name} {np.mean(values):.3f} ± {np.std(values, ddof=1):.3f} (SD)"
        assert told in printed
        assert f"{values[0]:.3f} |" in markdown(result.facts)
    manifest = json.loads((folder / "study/ranking/manifest.json").read_text())
    assert manifest["scores"]["report"]["macro_f1"]["test"] == pytest.approx(means["macro_f1"])
    assert manifest["scores"]["report"]["macro_f1"]["test_mean"] == pytest.approx(
        np.mean(means["macro_f1"])
    )


def test_redundancy_is_over_all_samples_and_stability_over_the_outer_folds(done):
    folder, _, printed = done
    by_fold, selections = [], []
    for X, _, _, _, _, refit in refits_by_hand(folder):
        scores = np.where(np.ptp(X, axis=0) == 0, 0.0, refit["feature_scores"])
        best = [i for i in np.argsort(-scores, kind="stable")[:8] if scores[i] > 0]
        by_fold.append(
            np.mean([abs(np.corrcoef(X[:, i], X[:, j])[0, 1]) for i, j in combinations(best, 2)])
        )
        assert refit["redundancy"][1] == pytest.approx(by_fold[-1], abs=1e-12)
        selections.append(np.isin(np.arange(X.shape[1]), best))
    result = open_study(folder / "study")
    stability = nogueira_stability(selections)
    assert result.facts.mean_redundancy[8] == pytest.approx(np.mean(by_fold))
    assert result.summary().redundancy.tolist() == pytest.approx(by_fold)
    assert result.stability() == result.stability(8) == stability
    for text in (printed, markdown(result.facts)):
        assert (
            f"of the top 8 over all 80 samples, mean of 3 outer folds: {np.mean(by_fold):.2f}"
            in text
        )
        assert f"of the top 8 over 3 overlapping outer folds: {stability.value:.2f}" in text
    manifest = json.loads((folder / "study/ranking/manifest.json").read_text())
    assert manifest["redundancy"]["over"] == "all 80 samples"
    assert manifest["redundancy"]["by_fold_of_the_top"]["8"] == pytest.approx(by_fold)
    assert manifest["stability"]["value"] == pytest.approx(stability.value)


def test_without_a_final_fold_there_is_neither_model_nor_ranking_and_all_say_so(done, capsys):
    folder, planned, printed = done
    assert "3 outer x 2 inner, no final fold, so no model" in planned
    assert "  reported    mean average precision, macro F1 on the test samples" in planned
    assert "few, only right, left: 80 samples x 48 features" in planned
    assert "model none (cv.final is false)" in printed
    study = folder / "study"
    assert [path.name for path in (study / "ranking").iterdir()] == ["manifest.json"]
    assert not (study / "model.skops").exists()
    folds = [f"outer{i}.{end}" for i in range(3) for end in ("csv", "skops", "skops.hmac")]
    assert sorted(path.name for path in (study / "folds").iterdir()) == folds
    result = open_study(study)
    assert not result.recorded.has_final
    assert not result.recorded.is_ranked
    assert result.recorded.ranks_features
    assert list(result.recorded.n_scored) == ["outer0", "outer1", "outer2"]
    remark = "Set cv.final to true to get a final model, model.skops and its ranking."
    assert remark in result.remarks()
    assert remark in printed
    for asked in (result.ranking, lambda: result.model, lambda: result.final, result.plot_ranking):
        with pytest.raises(StudyError, match=r"has no final model, because cv\.final is false"):
            asked()
    assert len(result.plot_convergence().get_lines()) == 2
    assert select.main([str(study), "--top", "4"]) == 0
    told = capsys.readouterr().out
    assert "no final model" in told
    assert "stability of the top 4 over 3" in told
    assert "redundancy of the top 4 over all 80 samples" in told
    assert "best first" not in told


@pytest.mark.slow
def test_mlflow_has_the_metrics_of_the_winners_and_no_final_run(done):
    folder, _, _ = done
    uri = f"sqlite:///{folder}/runs.db"
    replay(StudyDirectory(folder / "study"), uri)  # whatever a slow machine has not uploaded
    client = MlflowClient(uri)
    (experiment,) = [e for e in client.search_experiments() if e.name == "few"]
    runs = {
        run.data.tags["raysel.key"]: run for run in client.search_runs([experiment.experiment_id])
    }
    refits = {key.split(":")[1]: run for key, run in runs.items() if key.startswith("refit")}
    assert sorted(refits) == ["outer0", "outer1", "outer2"]
    result = open_study(folder / "study")
    for refit in result.outer:
        metrics = refits[refit.fold].data.metrics
        for name in REPORT:
            assert metrics[f"test_{name}"] == pytest.approx(refit.reported(name), rel=6e-4)
            assert metrics[f"test_{name}_n8"] == pytest.approx(refit.report[name][1], rel=6e-4)
        assert metrics["cpu_seconds"] == pytest.approx(refit.cpu_seconds, rel=6e-4)
        assert refits[refit.fold].info.status == "FINISHED"
    study = runs["study"]
    assert study.data.metrics["test_macro_f1"] == pytest.approx(
        np.mean(result.report["macro_f1"]), rel=6e-4
    )
    assert study.data.metrics["redundancy"] == pytest.approx(
        result.facts.mean_redundancy[8], rel=6e-4
    )
    assert study.data.params["cv.final"] == "False"
    artifacts = {artifact.path for artifact in client.list_artifacts(study.info.run_id)}
    assert "manifest.json" in artifacts
    assert "ranking.csv" not in artifacts


def test_some_modalities_are_those_of_a_file_that_holds_only_them(tmp_path):
    write_views(tmp_path / "few.npz")
    write_views(tmp_path / "two.npz", ("left", "right"))
    write_views(tmp_path / "one.npz", ("middle",))
    some, two = (
        load_dataset(tmp_path / "few.npz", only=["right", "left"]),
        load_dataset(tmp_path / "two.npz"),
    )
    assert some.content_hash == two.content_hash
    assert (some.layout, some.feature_names) == (two.layout, two.feature_names)
    assert np.array_equal(some.constant, two.constant)
    assert some.X.flags.c_contiguous
    one = load_dataset(tmp_path / "few.npz", only=["middle"])
    assert one.layout.to_json() == {"kind": "modalities", "modalities": [["middle", 16]]}
    assert one.content_hash == load_dataset(tmp_path / "one.npz").content_hash
    named = load_dataset(tmp_path / "few.npz", modalities={"a": 60, "b": 4}, only=["b"])
    assert np.array_equal(named.X, load_dataset(tmp_path / "few.npz").X[:, 60:])
    changes = {key: value for key, value in CHANGES.items() if key != "dataset__only"}
    found = [
        run_serially(make_study(tmp_path / file, **changes, **only), tmp_path / name)
        for name, file, only in (
            ("some", "few.npz", {"dataset__only": ["left", "right"]}),
            ("two", "two.npz", {}),
        )
    ]
    assert found[0][0] == found[1][0]
    assert [timeless(r.to_json()) for r, _ in found[0][1]] == [
        timeless(r.to_json()) for r, _ in found[1][1]
    ]


def test_reported_metrics_and_a_final_fold_change_no_winner(tmp_path):
    write_views(tmp_path / "few.npz")
    plain = {
        key: value for key, value in CHANGES.items() if key not in ("evaluation__report", "cv")
    }
    cv = {"outer": 3, "inner": 2}
    reported, _, _ = run_serially(
        make_study(tmp_path / "few.npz", **CHANGES), tmp_path / "reported"
    )
    found = run_serially(make_study(tmp_path / "few.npz", **plain, cv=cv), tmp_path / "plain")
    again = run_serially(make_study(tmp_path / "few.npz", **CHANGES), tmp_path / "again")
    assert [refit.record.fold for refit in found[1]] == ["outer0", "outer1", "outer2", "final"]
    for here, there in zip(again[1], found[1][:3], strict=True):
        one, other = (timeless(r.record.to_json()) for r in (here, there))
        assert one.pop("report")
        assert other.pop("report") == {}
        assert one == other
    for id_, trial in reported.items():
        outer = {name: trace for name, trace in found[0][id_]["folds"].items() if name != "final"}
        assert trial["folds"] == outer


def test_scrambled_test_labels_change_what_is_reported_and_no_winner(tmp_path):
    write_views(tmp_path / "few.npz")
    study = make_study(
        tmp_path / "few.npz", **{**CHANGES, "evaluation__report": ["macro_f1", "balanced_accuracy"]}
    )
    fold = study.plan.folds[1]
    y = study.dataset.y.copy()
    y[fold.test] = np.random.default_rng(0).permutation(y[fold.test])
    scrambled = dataclasses.replace(study, dataset=dataclasses.replace(study.dataset, y=y))
    one, other = (
        run_serially(s, tmp_path / name)[1][1].record
        for s, name in ((study, "a"), (scrambled, "b"))
    )
    assert one.fold == other.fold == "outer1"
    kept = ("trial", "params", "inner_score", "feature_scores", "objective", "redundancy")
    assert [getattr(one, name) for name in kept] == [getattr(other, name) for name in kept]
    for name in one.report:
        assert other.reported(name) < one.reported(name) - 0.2


def test_a_search_by_scores_chooses_and_tests_by_them(tmp_path):
    write_digits(tmp_path / "few.npz")
    changes = {"evaluation": {"classifier": "native", "metric": "mean_average_precision"}}
    study = make_study(tmp_path / "few.npz", **changes)
    trials, refits, _ = run_serially(study, tmp_path / "run")
    for record, model in refits[:-1]:
        fold = next(fold for fold in study.plan.folds if fold.name == record.fold)
        inner = {
            id_: [t["scores"][-1][0] for t in trial["folds"][record.fold]["inner"]]
            for id_, trial in trials.items()
        }
        assert record.inner_score == pytest.approx(
            max(np.mean(scores) for scores in inner.values())
        )
        X, y = study.dataset.X[fold.test], study.dataset.y[fold.test]
        scores = model.decision_function(X)
        aps = [average_precision_score(y == c, scores[:, i]) for i, c in enumerate(model.classes_)]
        assert record.test_scores == pytest.approx([np.mean(aps)])


def test_several_labels_and_tasks_are_reported(tmp_path):
    X, y = load_digits(return_X_y=True)
    Y = np.stack([y < 3, y % 2 == 0, y > 5], axis=1).astype(int)
    np.savez(tmp_path / "labels.npz", X=X[:100].reshape(-1, 8, 8), Y=Y[:100])
    report = {"evaluation__report": ["mean_average_precision", "micro_f1"], "cv__final": False}
    study = make_study(
        tmp_path / "labels.npz", solver={"name": "linear_svm", "space": {"C": [0.1]}}, **report
    )
    for record, _ in run_serially(study, tmp_path / "labels")[1]:
        assert all(0.5 < value < 1 for values in record.report.values() for value in values)
        assert len(record.redundancy) == 2
    tasks = {
        "tasks": [{"name": "a", "source": "iris"}, {"name": "b", "source": "wine"}],
        "scaling": "zscore",
    }
    raw = {
        "name": "tasks",
        "dataset": tasks,
        "solver": {"name": "aggregate", "params": {"shrinkage": 0.1}},
    }
    raw |= {
        "evaluation": {"classifier": "native", "report": ["mean_average_precision"]},
        "cv": {"outer": 2, "inner": 2},
    }
    for record, _ in run_serially(Study.prepare(config_from_dict(raw)), tmp_path / "tasks")[1][:-1]:
        assert len(record.report["mean_average_precision"]) == len(record.test_scores) == 2
        assert record.redundancy == []


def test_what_cannot_be_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    write_views(tmp_path / "few.npz")
    X, y = load_digits(return_X_y=True)
    np.savez(
        tmp_path / "labels.npz", X=X[:90], Y=np.stack([y[:90] < 3, y[:90] > 5], axis=1).astype(int)
    )
    (tmp_path / "silent.py").write_text(
        "from sklearn.base import BaseEstimator, ClassifierMixin\n"
        "class Silent(ClassifierMixin, BaseEstimator):\n"
        "    def fit(self, X, y):\n        self.classes_ = sorted(set(y))\n        return self\n"
        "    def predict(self, X):\n        return [self.classes_[0]] * len(X)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    by_pairs = {"name": "sklearn.svm.SVC", "params": {"decision_function_shape": "ovo"}}
    scores = "mean_average_precision"
    for changes, error, message in (
        (
            {"dataset__only": ["lift"]},
            DataError,
            r"only: .*few\.npz has no modality lift; did you mean `left`\?",
        ),
        ({"dataset__only": ["zzz"]}, DataError, "has no modality zzz; it has left, middle, right"),
        (
            {"dataset": {"source": "digits", "only": ["left"]}},
            DataError,
            "digits has no modalities; leave only out",
        ),
        (
            {"evaluation__report": ["macro_f2"]},
            ConfigError,
            r"evaluation\.report: unknown metric 'macro_f2'; did you",
        ),
        (
            {"solver": by_pairs, "evaluation": {"classifier": "native", "report": [scores]}},
            DataError,
            r"SVC\.decision_function returned an array of shape \(1, 6\) for 4 classes",
        ),
        (
            {
                "solver": {"name": "silent.Silent"},
                "evaluation": {"classifier": "native", "metric": scores},
            },
            ConfigError,
            (
                r"evaluation\.metric: mean_average_precision needs scores of the classes, and"
                r" silent\.Silent .* has nei"
            ),
        ),
        (
            {
                "dataset": {"path": str(tmp_path / "labels.npz")},
                "solver": {"name": "linear_svm"},
                "evaluation__report": ["balanced_accuracy"],
            },
            ConfigError,
            r"evaluation\.report: balanced_accuracy is for one label a sample",
        ),
    ):
        with pytest.raises(error, match=message):
            make_study(tmp_path / "few.npz", **changes)


@pytest.mark.slow
def test_a_study_without_a_final_fold_is_resumed_and_gets_none_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_views(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", **CHANGES)
    whole = raysel.run_study("few.yaml", output="study", progress=False)
    journal = tmp_path / "study/journal.jsonl"
    kept = [
        line
        for line in journal.read_text().splitlines()
        if json.loads(line)["kind"] in ("study", "trial")
    ]
    journal.write_text("\n".join(kept[:2]) + "\n")
    resumed = raysel.resume_study("study", progress=False)
    assert resumed.test_scores == whole.test_scores
    assert resumed.report == whole.report
    for change in ({"cv.final": True}, {"evaluation.report": ["macro_f1"]}):
        with pytest.raises(DirectoryError, match=next(iter(change)).replace(".", r"\.")):
            raysel.resume_study("study", overrides=change, progress=False)
