"""The models that a study stores are those that it scored: read back, each has the recorded
figures.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, multilabel_confusion_matrix
from small_studies import NoUpload

import raysel
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import save_dataset
from raysel.data.task_blocks import TaskBlocks
from raysel.execution.serial import SerialExecutor
from raysel.numerics.metrics import metric as named_metric
from raysel.run import course
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.journal import read_journal

KNN = {"classifier": "knn", "n_features": [1, 2, 4], "n_neighbors": 1}
NATIVE = {"classifier": "native"}
SMML = {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.01, 0.1]}}


def run(raw, path, stored=None):
    study = Study.prepare(config_from_dict(raw), plan=stored and stored.directory.plan)
    if stored:
        return study, course.resume(study, stored.directory, SerialExecutor(study), (), NoUpload)
    return study, course.run(study, Path(path), SerialExecutor(study), (), NoUpload)


def blobs(folder, name, layout, n_labels=None):
    """Whole numbers in a few columns, which tie often; the first is constant."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.integers(0, 6, (60, 8)) + 3.0 * (y[:, None] == np.arange(8) % 4)
    X[:, 0] = 5
    if n_labels:
        y = (X[:, 1 : 1 + n_labels] + rng.random((60, n_labels)) > 4).astype(int)
    path = folder / f"{name}.arrow"
    save_dataset(Dataset(X, y, layout, name), path)
    return str(path)


def small(kind, folder):
    """Configuration of a small study of each kind."""
    table = Tensor((8,))
    if kind == "matrix knn":
        X, y = raysel.load_dataset("digits").X[:80], raysel.load_dataset("digits").y[:80]
        np.savez(folder / "few.npz", X=X.reshape(-1, 8, 8), y=y % 4)
        part = {
            "dataset": {"path": str(folder / "few.npz")},
            "solver": {"name": "smr", "params": {"max_iter": 4}},
        }
        return {**part, "evaluation": {**KNN, "n_features": [3, 9, 60], "report": ["macro_f1"]}}
    if kind == "table linear_svm":
        data, evaluation = (
            blobs(folder, "table", table),
            {"classifier": "linear_svm", "n_features": [1, 2, 4]},
        )
        return {
            "dataset": {"path": data, "scaling": "zscore"},
            "solver": SMML,
            "evaluation": evaluation,
        }
    if kind == "modalities native":
        data = blobs(folder, "modalities", Modalities({"a": 3, "b": 5}))
        scaled = {"path": data, "scaling": "zscore_sqrt_width"}
        return {
            "dataset": scaled,
            "solver": SMML,
            "evaluation": {**NATIVE, "metric": "balanced_accuracy"},
        }
    if kind == "tasks native":
        tasks = [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}]
        solver = {"name": "mtda", "space": {"shrinkage": [0.0, 0.5]}}
        return {"dataset": {"tasks": tasks}, "solver": solver, "evaluation": NATIVE}
    data = blobs(folder, "labels", table, n_labels=3)
    evaluation = {**KNN, "metric": "macro_f1", "n_neighbors": 3}
    if kind == "multi-label linear_svm":
        evaluation = {
            "classifier": "linear_svm",
            "n_features": [2, 4],
            "metric": "mean_average_precision",
        }
    return {"dataset": {"path": data}, "solver": SMML, "evaluation": evaluation}


def scores_of(study, model, X, y):
    """Metric of a model's predictions by task, recomputed from the file alone."""
    name = study.config.evaluation.metric
    metric = named_metric(name)
    tasks = X.tasks if isinstance(X, TaskBlocks) else np.zeros(len(y), dtype=int)
    if name == "mean_average_precision":
        return [metric(y, model.decision_function(X))]
    return [metric(y[tasks == task], model.predict(X)[tasks == task]) for task in np.unique(tasks)]


def require_models_are_those_scored(study, result):
    data = study.dataset
    assert sorted(path.name for path in (result.path / "folds").glob("*.skops")) == sorted(
        f"{fold.name}.skops" for fold in study.plan.outer
    )
    files = [
        result.directory.model,
        result.directory.journal,
        *(result.path / "folds").glob("*.skops"),
    ]
    assert sum(file.stat().st_size for file in files) < course._needed_bytes(study)
    sizes = study.evaluation.n_features
    summed = 0
    for fold in study.plan.folds:
        refit = next(refit for refit in result.refits if refit.fold == fold.name)
        model = (
            raysel.load_model(result.path / "folds" / f"{fold.name}.skops")
            if len(fold.test)
            else result.model
        )
        position = slice(None) if refit.n_features is None else [sizes.index(refit.n_features)]
        X, y = data.X[fold.test], data.y[fold.test]
        if len(fold.test):
            assert scores_of(study, model, X, y) == np.array(refit.test_scores)[position].tolist()
            if refit.position is not None:
                assert scores_of(study, model, X, y) == [refit.test_score]
            if study.config.evaluation.metric == "accuracy" and not isinstance(X, TaskBlocks):
                assert model.score(X, y) == np.array(refit.test_scores)[position][0]
            predicted = model.predict(X)
            if y.ndim == 2:
                assert refit.confusion == [
                    m.ravel().tolist() for m in multilabel_confusion_matrix(y, predicted)
                ]
            else:
                assert (
                    refit.confusion == confusion_matrix(y, predicted, labels=data.classes).tolist()
                )
            summed = summed + np.array(refit.confusion)
        on_itself = scores_of(study, model, data.X[fold.train], data.y[fold.train])
        assert on_itself == np.array(refit.training_scores)[position].tolist()
        assert len(refit.training_scores) == (len(sizes) or len(study.evaluation.tasks) or 1)

        # What transform selects is what the fold's table shows.
        assert model.feature_names_in_.tolist() == list(data.feature_names)
        table = pd.read_csv(result.directory.fold_table(fold.name))
        n = refit.n_features or result.default_top
        shown = table[(table["rank"] <= n) & (table.score > 0)].feature
        assert set(model.get_feature_names_out()) == set(shown)
        chosen = np.isin(data.feature_names, list(shown))
        scaled = model.named_steps["scaler"].transform(data.X)
        scaled = scaled.dense() if isinstance(scaled, TaskBlocks) else scaled
        np.testing.assert_array_equal(model.transform(data.X), scaled[:, chosen])
        assert model.method.scores_.shape == (data.n_features,)
    np.testing.assert_array_equal(result.confusion, summed)
    assert list(result.classes) == [str(name) for name in data.classes]
    ranking = result.ranking()
    assert set(result.model.get_feature_names_out()) == {
        ranking.feature_names[i] for i in ranking.top()
    }
    selector = raysel.FeatureSelector.from_study(result.path)
    np.testing.assert_array_equal(selector.get_support(), result.model.selector.get_support())


#: What the small studies share.
SMALL = {
    "name": "few",
    "pictures": [],
    "cv": {"outer": 2, "inner": 2},
    "search": {"executor": "serial"},
}
FAST = {
    ("matrix knn", "one_se"),
    ("table linear_svm", "mean"),
    ("tasks native", "mean"),
}
SLOW = {
    ("modalities native", "mean"),
    ("multi-label", "best"),
    ("matrix knn", "mean"),
    ("table linear_svm", "best"),
    ("multi-label", "one_se"),
    *(("multi-label linear_svm", rule) for rule in ("one_se", "mean")),
}


@pytest.mark.parametrize(
    ("kind", "rule"),
    [*sorted(FAST), *(pytest.param(*case, marks=pytest.mark.slow) for case in sorted(SLOW))],
)
def test_each_file_has_the_scores_that_are_recorded(kind, rule, tmp_path):
    raw = {**SMALL, **small(kind, tmp_path)}
    if raw["evaluation"]["classifier"] != "native":
        raw["evaluation"] = {**raw["evaluation"], "choose_n": rule}
    study, result = run(raw, tmp_path / "study")
    require_models_are_those_scored(study, result)
    assert all((refit.position is None) == (rule == "mean") for refit in result.refits)


def test_a_lost_model_is_written_again(tmp_path):
    raw = {**SMALL, **small("table linear_svm", tmp_path)}
    study, result = run(raw, tmp_path / "study")
    with pytest.raises(
        ConfigError,
        match="fold='outer7' is not a fold of the study few: give one of outer0, outer1, f",
    ):
        result.fold_model("outer7")
    before = result.fold_model("outer1").predict(study.dataset.X)
    result.directory.fold_model("outer1").unlink()
    n_lines = len(list(read_journal(result.directory.journal)))
    _, again = run(raw, None, StoredStudy.read(result.directory))
    new = list(read_journal(result.directory.journal))[n_lines:]
    assert [record["fold"] for record in new if record["kind"] == "refit"] == ["outer1"]
    np.testing.assert_array_equal(again.fold_model("outer1").predict(study.dataset.X), before)
    np.testing.assert_array_equal(
        again.fold_model("final").predict(study.dataset.X), again.model.predict(study.dataset.X)
    )


def test_the_model_of_an_earlier_winner_does_not_stay(tmp_path, monkeypatch):
    raw = {**SMALL, **small("modalities native", tmp_path)}
    study, result = run(raw, tmp_path / "study")

    def refuse(*_):
        raise DataError("the model contains a type that is not trusted")

    monkeypatch.setattr(course, "save_model", refuse)
    result.directory.fold_table("outer0").unlink()  # outer0 is fitted again
    _, again = run(raw, None, StoredStudy.read(result.directory))
    # The process that fitted it has it; the file is gone.
    assert again.fold_model("outer0").predict(study.dataset.X).shape == study.dataset.y.shape
    reopened = raysel.open_study(again.path)
    with pytest.raises(DataError):
        reopened.fold_model("outer0")
    assert reopened.fold_model("outer1").predict(study.dataset.X).shape == study.dataset.y.shape


DATA = Path(os.environ.get("RAYSEL_DATA", "absent"))
REAL = {
    "ORL.npz": {
        "solver": {"name": "smr", "params": {"max_iter": 10}, "space": {"alpha": [0.01, 0.1]}},
        "evaluation": {
            "classifier": "knn",
            "n_features": [20, 50, 100],
            "report": ["balanced_accuracy"],
        },
    },
    "MSRCv1_6v.npz": {
        "dataset": {"scaling": "zscore_sqrt_width"},
        "solver": SMML,
        "evaluation": NATIVE,
    },
    "faces": {
        "dataset": {
            "tasks": [
                {"name": "orl", "path": "ORL_28x23.npz"},
                {"name": "umist", "path": "UMIST.npz"},
            ]
        },
        "solver": {"name": "mtda", "space": {"shrinkage": [0.01, 0.3]}},
        "evaluation": NATIVE,
    },
    "table": {
        "dataset": {"source": "breast_cancer", "scaling": "zscore"},
        "solver": {"name": "fisher_score"},
        "evaluation": {"classifier": "linear_svm", "n_features": [2, 5, 10]},
    },
}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real data sets of RAYSEL_DATA")
@pytest.mark.parametrize(
    ("name", "rule"), [*((name, "one_se") for name in REAL), ("ORL.npz", "mean")]
)
def test_real_models_have_the_scores_that_are_recorded(name, rule, tmp_path):
    raw = {**SMALL, **REAL[name]}
    if name.endswith(".npz"):
        raw["dataset"] = {"path": str(DATA / name), **raw.get("dataset", {})}
    if raw["evaluation"] != NATIVE:
        raw["evaluation"] = {**raw["evaluation"], "choose_n": rule}
    study, result = run(raw, tmp_path / "study")
    require_models_are_those_scored(study, result)
