"""A study of several tasks: each has a score of its own, from the first iteration to the
winner's test.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.neighbors import KNeighborsClassifier
from small_studies import NoUpload, make_study, run_serially
from task_sets import make_tasks, write_tasks

from raysel import select, tune
from raysel.base.registry import solver_class
from raysel.cli.plan import describe
from raysel.core.errors import ConfigError, DataError
from raysel.core.files import make_instance
from raysel.data.dataset import join_tasks
from raysel.data.loading import load_dataset, save_dataset
from raysel.evaluation.lockstep import run_in_lockstep
from raysel.evaluation.records import FoldTrace, TrialRecord
from raysel.evaluation.refit import RefitSettings, refit_winner
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.course import OneStudy
from raysel.solvers.mtda.mtda import MTDA
from raysel.tracking.journal import read_journal

TASKS = [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}]
TWICE = {"repeats": 2, "inner": 2}


def study_of(tmp_path, **changes):
    settings = {
        "dataset": {"tasks": TASKS, "scaling": "none"},
        "solver": {"name": "mtda", "space": {"shrinkage": [0.0, 0.5]}},
        "evaluation": {"classifier": "native"},
        "cv": {"train_per_class": 20, "repeats": 2, "inner": 2},
    }
    return make_study(tmp_path, **{**settings, **changes})


def test_each_task_is_recorded_by_iteration_and_tested_once(tmp_path):
    study = study_of(tmp_path)
    _, refits, kept = run_serially(study, tmp_path / "run")
    assert len(kept) == 2
    for record in kept:
        curves = make_instance(TrialRecord, record).curves(
            "accuracy", study.evaluation.labels, "mean"
        )
        each = np.array([curves["val_accuracy_iris"], curves["val_accuracy_wine"]])
        assert each.shape[1] == len(curves["objective"]) > 1
        np.testing.assert_allclose(each.mean(axis=0), curves["val_accuracy"], atol=1e-12)
        assert not np.array_equal(each[0], each[1])
    X, y, padded = study.dataset.X, study.dataset.y, study.dataset.X.dense()
    for fold, refit in zip(study.plan.outer, refits, strict=False):
        assert np.unique(y[fold.train], return_counts=True)[1].tolist() == [20] * 6
        expected = []
        model = MTDA(tasks=dict(study.dataset.layout.tasks), **refit.record.params).fit(
            X[fold.train], y[fold.train]
        )
        for i, columns in enumerate(study.dataset.layout.slices().values()):
            part = [rows[study.dataset.tasks[rows] == i] for rows in (fold.train, fold.test)]
            train, test = (padded[rows, columns] for rows in part)
            nearest = KNeighborsClassifier(1).fit(model.transform_task(i, train), y[part[0]])
            predicted = nearest.predict(model.transform_task(i, test))
            expected.append(accuracy_score(y[part[1]], predicted))
        assert refit.record.test_scores == pytest.approx(expected, abs=1e-12)
        assert refit.record.test_score == pytest.approx(np.mean(expected))


def in_task(labels):
    """Labels without the name of their task."""
    return np.char.partition(labels, "/")[:, 2].astype(int)


class OneTask(ClassifierMixin, BaseEstimator):
    """What a fitted model of several tasks gives for the samples of one, of whose classes alone
    it knows.
    """

    def __init__(self, model, task):
        self.model, self.own = model, np.char.startswith(model.classes_, f"{task}/")
        self.classes_ = in_task(model.classes_[self.own])

    def predict(self, X):
        return in_task(self.model.predict(X))

    def decision_function(self, X):
        values = self.model.decision_function(X)[:, self.own]
        return values[:, 1] if len(self.classes_) == 2 else values


OF_TASKS = {
    2: ["roc_auc", "average_precision", "f1"],
    3: ["average_precision", "top_k_accuracy", "matthews_corrcoef"],
}


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("n_classes", OF_TASKS)
def test_each_task_has_scikit_learns_figures_of_the_stored_models(n_classes, tmp_path):
    """Of its labelled samples."""
    tasks = make_tasks(3, ((50, 6, n_classes), (70, 4, n_classes)))
    tasks[0][1][::6] = -1
    names = OF_TASKS[n_classes]
    study = study_of(
        tmp_path,
        dataset=write_tasks(tmp_path, tasks),
        solver={"name": "semisupervised_mtda", "params": {"unlabelled": -1}},
        evaluation={
            "estimator": "native",
            "metric": names[0],
            "report": names[1:],
            "references": False,
        },
        cv={"outer": 2, "inner": 2, "final": False},
    )
    result = course.run(study, tmp_path / "run", SerialExecutor(study), (), NoUpload)
    X, y, owners = study.dataset.X, in_task(study.dataset.y), study.dataset.tasks
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        model, known = result.fold_model(fold.name), fold.test[y[fold.test] >= 0]
        parts = [(OneTask(model, f"t{task}"), known[owners[known] == task]) for task in range(2)]
        for name in names:
            expected = [get_scorer(name)(of_task, X[rows], y[rows]) for of_task, rows in parts]
            assert (refit.test_scores if name == names[0] else refit.report[name]) == expected, name
        assert refit.test_score == pytest.approx(np.mean(refit.test_scores))


def test_the_positive_class_of_each_task_is_named(tmp_path):
    tasks = write_tasks(tmp_path, make_tasks(3, ((50, 6, 2), (70, 4, 2))))
    study = study_of(
        tmp_path, dataset=tasks, evaluation={"estimator": "native", "metric": "roc_auc"}
    )
    words = " ".join(" ".join(describe(OneStudy.of(study), None)).split())
    assert (
        "The positive class of ROC AUC is t0/1, t1/1, the second of the two of a task in their"
        " order." in words
    )


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        (
            {"metric": "roc_auc"},
            (
                r"evaluation.metric: roc_auc is for two classes .*, and y of task iris has 3"
                r" classes; ta"
            ),
        ),
        (
            {"report": ["neg_log_loss"]},
            r"needs probabilities, .* has no predict_proba; take a metric of the decision",
        ),
        (
            {"estimator": "knn", "n_features": [2]},
            r"knn needs one feature space; several tasks take `native`",
        ),
    ],
)
def test_a_metric_that_a_task_has_no_figure_of_is_refused_before_anything_is_computed(
    evaluation, message, tmp_path
):
    with pytest.raises(ConfigError, match=message):
        study_of(tmp_path, evaluation={"estimator": "native", **evaluation})


@pytest.mark.parametrize("name", ["pca", "lda", "trace_ratio_lda", "aggregate"])
def test_the_rivals_run_in_the_same_study(name, tmp_path):
    study = study_of(tmp_path, solver={"name": name})
    (configuration,) = study.configurations
    X, y, fold = study.dataset.X, study.dataset.y, study.plan.outer[0]
    record = TrialRecord(configuration.id, configuration.name, configuration.params, "finished")
    record.folds[fold.name], states = (
        FoldTrace(),
        [fold.random_state(study.config.seed, i) for i in range(2)],
    )
    solvers = [study.solver(configuration.params, state) for state in states]
    splits = [study.trial_split(fold, i, configuration.params) for i in range(2)]
    assert list(run_in_lockstep(solvers, splits, study.evaluation, record.folds[fold.name]))
    assert {"val_accuracy_iris", "val_accuracy_wine"} <= set(
        record.curves("accuracy", study.evaluation.labels, "mean")
    )
    solver = study.solver(configuration.params)
    settings = RefitSettings(evaluation=study.evaluation, n_shown=X.shape[1])
    refit, _ = refit_winner(study.split(fold), record, solver, settings)
    model = solver_class(name)(tasks=dict(study.dataset.layout.tasks)).fit(
        X[fold.train], y[fold.train]
    )
    for task, actual in enumerate(refit.test_scores):
        part = fold.test[study.dataset.tasks[fold.test] == task]
        assert actual == pytest.approx(model.score(X[part], y[part]), abs=1e-12)
    assert refit.feature_scores == pytest.approx(model.scores_.tolist(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_the_commands_print_and_write_each_task_beside_the_mean(tmp_path, monkeypatch, capsys):
    """tune and select on a joined file, with lists of numbers as values; every figure is one of
    the journal's.
    """
    monkeypatch.chdir(tmp_path)
    data = {"iris": load_dataset("iris"), "digits": load_dataset("digits")}
    save_dataset(join_tasks(data), "joined.arrow")
    raw = {
        "name": "joined",
        "dataset": {"path": "joined.arrow"},
        "solver": {"name": "mtda", "space": {"n_components": [[2, 9], [1, 2]]}},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
    }
    Path("joined.yaml").write_text(yaml.safe_dump(raw))
    assert tune.main(["joined.yaml", "--output", "study"]) == 0
    refits = [
        record
        for record in read_journal(tmp_path / "study/journal.jsonl")
        if record["kind"] == "refit"
    ]
    scores = np.array([refit["test_scores"] for refit in refits if refit["fold"] != "final"])
    assert scores.shape == (2, 2)
    means, spreads = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    words = ", ".join(
        f"{n} {m:.3f} ± {s:.3f} (SD)" for n, m, s in zip(data, means, spreads, strict=True)
    )
    assert f"by task {words}\n" in capsys.readouterr().out
    assert select.main(["study", "--top", "6", "--output", "kept"]) == 0
    with Path("kept/ranking.csv").open() as file:
        rows = list(csv.DictReader(file))
    places = [float(row["consensus_rank"]) for row in rows]
    assert places == sorted(places)
    # Features without a score share the mean of the last ranks.
    assert sum(float(row["rank"]) for row in rows) == sum(range(1, 69))
    for task, width in (("iris", 4), ("digits", 64)):
        part = [row for row in rows if row["task"] == task]
        places = [float(row["rank_in_task"]) for row in part]
        assert sum(places) == sum(range(1, width + 1))
    # Constant pixels tell nothing and rank last, though 1629 samples of other tasks leave NaN
    # there.
    constant = np.flatnonzero(np.ptp(data["digits"].X, axis=0) == 0)
    assert {int(row["column"]) for row in rows[-len(constant) :]} == set(constant.tolist())
    manifest = json.loads(Path("kept/manifest.json").read_text())
    assert manifest["scores"]["tasks"] == {n: scores[:, i].tolist() for i, n in enumerate(data)}
    assert manifest["scores"]["test_mean"] == pytest.approx(means.mean())
    (end,) = (
        record
        for record in read_journal(tmp_path / "study/journal.jsonl")
        if record["kind"] == "end"
    )
    assert end["result"]["test_by_task"]["digits"] == pytest.approx(means[1])
    assert words in end["summary"]


def test_a_joined_file_is_the_same_study_as_its_parts(tmp_path):
    parts = study_of(tmp_path)
    for suffix in ("parquet", "arrow"):
        save_dataset(parts.dataset, tmp_path / f"joined.{suffix}")
        whole = study_of(
            tmp_path, dataset={"path": str(tmp_path / f"joined.{suffix}"), "scaling": "none"}
        )
        assert whole.dataset.content_hash == parts.dataset.content_hash
        assert whole.plan.to_json() == parts.plan.to_json()
        assert whole.evaluation.tasks == ("iris", "wine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": {"tasks": TASKS[:1]}}, r"dataset\.tasks"),
        (
            {"dataset": {"tasks": [*TASKS[:1], {"name": "flat", "path": "flat.npz"}]}},
            r"one class only \(0\)",
        ),
        (
            {"dataset": {"tasks": [*TASKS[:1], {"name": "gone", "path": "gone.npz"}]}},
            "there is no data file gone.npz",
        ),
        (
            {"solver": {"name": "mtda", "space": {"n_components": [2, 5]}}},
            "n_components=5 does not fit task 'iris' of 4 features: give at most 4",
        ),
        (
            {
                "solver": {"name": "mtda", "params": {"n_components": [2, 13]}},
                "cv": {"train_per_class": 4, **TWICE},
            },
            "task 'wine', of which a training set has 6 samples of 3 classes: give at most 5",
        ),
        (
            {"solver": {"name": "lda", "params": {"n_components": 3}}},
            "task 'iris', of which a training set has 30 samples of 3 classes: give at most 2",
        ),
        (
            {"solver": {"name": "mtda", "params": {"n_components": [2, 2, 2]}}},
            "has 3 entries for 2 tasks",
        ),
        (
            {"solver": {"name": "mtda", "params": {"intermediate_dim": 3}}},
            "intermediate_dim=3 has no effect for method='exact'",
        ),
        (
            {"solver": {"name": "mtda", "params": {"task_weights": [1, 2, 3]}}},
            "must be 2 non-negative numbers",
        ),
        (
            {"solver": {"name": "bilinear_mtda", "params": {"bilinear": [5, 2]}}},
            "must be positive whole|must be 1 positive whole",
        ),
        ({"solver": {"name": "mtda", "params": {"tasks": 3}}}, "`tasks` is set from the data set"),
        (
            {"dataset": {"tasks": TASKS, "scaling": "row_unit"}},
            "scaling 'row_unit' does not support several tasks",
        ),
        ({"evaluation": {"classifier": "knn", "n_features": [2]}}, "several tasks take `native`"),
        (
            {"cv": {"train_per_class": 48, **TWICE}},
            r"class wine/2 has 48 samples: with cv\.train_per_class=48",
        ),
        ({"cv": {"train_per_class": 4, "repeats": 2, "inner": 5}}, r"cv\.inner=5"),
    ],
)
def test_settings_that_do_not_fit_tasks_are_refused_before_anything_runs(
    tmp_path, monkeypatch, changes, message
):
    monkeypatch.chdir(tmp_path)
    np.savez("flat.npz", X=np.random.default_rng(0).random((20, 3)), y=np.zeros(20, dtype=int))
    with pytest.raises((ConfigError, DataError), match=message):
        study_of(tmp_path, **changes)
