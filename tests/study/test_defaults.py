"""Defaults of estimator and metric: the same of files and of arrays, by the data, and as init
drafts them.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from raysel.config import config_from_dict
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Modalities
from raysel.execution.serial import SerialExecutor
from raysel.run.api import prepare_study
from raysel.run.in_memory import run_in_memory
from raysel.study.defaults import with_defaults
from raysel.study.definition import Study
from raysel.study.draft.choices import evaluation_entries

TABLE = Matrix(1, 12)
RAW = {"name": "few", "solver": {"name": "rfs"}, "cv": {"outer": 2, "inner": 2, "final": False}}


def resolved(X, y, layout=TABLE, **sections):
    """Section ``evaluation`` with the defaults of the data."""
    dataset = Dataset(X, y, layout)
    config = config_from_dict(RAW | {"dataset": {"path": "none.npz"}} | sections)
    return with_defaults(config, dataset).evaluation


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return (
        rng.random((40, 12)),
        np.arange(40) % 2,
        rng.random(40),
        np.eye(3, dtype=int)[rng.integers(3, size=40)],
    )


@pytest.mark.parametrize("metric", [None, pytest.param("r2", marks=pytest.mark.slow)])
def test_a_quantity_is_scored_alike_from_a_file_and_from_arrays(tmp_path, metric):
    X, y = load_diabetes(return_X_y=True)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    evaluation = {"n_features": [2, 5], "metric": metric}
    raw = RAW | {"evaluation": {key: value for key, value in evaluation.items() if value}}
    of_file = Study.prepare(
        config_from_dict(raw | {"dataset": {"path": str(tmp_path / "data.npz")}})
    )
    of_arrays = prepare_study(raw, X=X, y=y)
    for study in (of_file, of_arrays):
        assert study.config.evaluation.estimator == "ridge"
        assert study.config.evaluation.metric == (metric or "out_of_sample_r2")
    assert of_file.evaluation == of_arrays.evaluation
    result = run_in_memory(of_arrays, SerialExecutor(of_arrays))
    fold = of_arrays.plan.outer[0]
    linear = Ridge(1e-3).fit(X[fold.train], y[fold.train])
    by_hand = r2_score(y[fold.test], linear.predict(X[fold.test]))
    assert result.test_scores[0] == pytest.approx(by_hand, abs=0.1)


def test_layout_and_target_choose_the_estimator_and_the_metric(samples):
    X, classes, quantity, labels = samples
    given = {"evaluation": {"n_features": [2, 5]}}
    for y, layout, expected in (
        (classes, TABLE, ("linear_svm", "accuracy")),
        (classes, Matrix(3, 4), ("knn", "accuracy")),
        (quantity, TABLE, ("ridge", "out_of_sample_r2")),
        (quantity, Matrix(3, 4), ("ridge", "out_of_sample_r2")),
        (labels, TABLE, ("linear_svm", "macro_f1")),
    ):
        chosen = resolved(X, y, layout, **given)
        assert (chosen.estimator, chosen.metric) == expected
        own = resolved(X, y, layout)
        assert (own.estimator, own.metric) == ("native", expected[1])
        metric_alone = resolved(X, y, layout, evaluation={"metric": "my.metric"})
        assert (metric_alone.estimator, metric_alone.metric) == ("native", "my.metric")


def test_init_drafts_the_default(samples):
    X, classes, quantity, labels = samples
    for y in (classes, quantity, labels):
        for layout in (TABLE, Matrix(3, 4), Modalities({"a": 4, "b": 8})):
            dataset = Dataset(X, y, layout)
            drafted = {
                entry.key.rpartition(".")[2]: entry.value for entry in evaluation_entries(dataset)
            }
            numbers = {key: drafted[key] for key in ("n_features",) if key in drafted}
            chosen = resolved(X, y, layout, evaluation=numbers)
            assert (chosen.estimator, chosen.metric) == (drafted["estimator"], drafted["metric"])


def test_what_is_named_is_kept_and_reported_once(samples):
    X, classes, *_ = samples
    named = {"estimator": "knn", "n_features": [2], "metric": "macro_f1"}
    chosen = resolved(X, classes, evaluation=named)
    assert (chosen.estimator, chosen.metric) == ("knn", "macro_f1")
    reported = resolved(X, classes, evaluation={"report": ["accuracy", "macro_f1"]})
    assert (reported.metric, reported.report) == ("accuracy", ("macro_f1",))


def test_an_early_stop_needs_an_estimator_that_scores_each_iteration(samples):
    X, classes, *_ = samples
    search = {"early_stopping": "asha"}
    assert resolved(X, classes, evaluation={"n_features": [2]}, search=search).estimator == "knn"


def test_strengths_that_are_given_without_an_estimator_are_kept():
    X, y = load_wine(return_X_y=True)
    raw = RAW | {"solver": {"name": "fisher_score"}}
    study = prepare_study(raw | {"evaluation": {"n_features": [3], "C": [0.5, 2.0]}}, X=X, y=y)
    assert study.config.evaluation.estimator == "linear_svm"
    assert [setting["C"] for setting in map(dict, study.evaluation.settings)] == [0.5, 2.0]
