"""A study of several tasks: each has a score of its own, from the first iteration to the winner's test."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from small_studies import make_study, run_on_ray

from raysel.data.tasks import task_of
from raysel.errors import ConfigError, DataError
from raysel.solvers.mtda import MTDA

TASKS = [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}]


def study_of(tmp_path, **changes):
    settings = {
        "dataset": {"tasks": TASKS, "scaling": "none"},
        "solver": {"name": "mtda", "space": {"shrinkage": [0.0, 0.5]}},
        "evaluation": {"classifier": "native"},
        "cv": {"train_per_class": 20, "repeats": 2, "inner": 2},
    }
    return make_study(tmp_path, **{**settings, **changes})


def test_each_task_is_recorded_by_iteration_and_tested_once(tmp_path, ray_here):  # noqa: ARG001
    study = study_of(tmp_path)
    _, refits, kept = run_on_ray(study, tmp_path / "run")
    assert len(kept) == 2
    for record in kept:
        curves = record["curves"]
        each = np.array([curves["val_accuracy_iris"], curves["val_accuracy_wine"]])
        assert each.shape[1] == len(curves["objective"]) > 1
        np.testing.assert_allclose(each.mean(axis=0), curves["val_accuracy"], atol=1e-12)
        assert not np.array_equal(each[0], each[1])
    X, y = study.dataset.X, study.dataset.y
    for fold, refit in zip(study.plan.outer, refits, strict=False):
        assert np.unique(y[fold.train], return_counts=True)[1].tolist() == [20] * 6
        expected = []
        model = MTDA(tasks=dict(study.dataset.layout.tasks), **refit.record.params).fit(X[fold.train], y[fold.train])
        for i, (name, columns) in enumerate(study.dataset.layout.slices().items()):
            train, test = (rows[task_of(y[rows]) == name] for rows in (fold.train, fold.test))
            nearest = KNeighborsClassifier(1).fit(model.transform_task(i, X[train, columns]), y[train])
            predicted = nearest.predict(model.transform_task(i, X[test, columns]))
            expected.append(accuracy_score(y[test], predicted))
        assert refit.record.test_scores == pytest.approx(expected, abs=1e-12)
        assert refit.record.test_score == pytest.approx(np.mean(expected))


def test_what_tasks_cannot_do_is_said_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError, match="several tasks take `native`"):
        study_of(tmp_path, evaluation={"classifier": "knn", "n_features": [2]})
    with pytest.raises(DataError, match=r"class wine/2 has 48 samples: with cv\.train_per_class=48"):
        study_of(tmp_path, cv={"train_per_class": 48, "repeats": 2, "inner": 2})
    with pytest.raises(DataError, match=r"cv\.inner=5"):
        study_of(tmp_path, cv={"train_per_class": 4, "repeats": 2, "inner": 5})
