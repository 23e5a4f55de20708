"""The scatter matrices of partly labelled tasks against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from small_studies import make_study, run_serially
from task_sets import assert_same_spaces, best_ratio, dense_scatters, make_task, write_tasks

from raysel.base.task_samples import task_samples
from raysel.core.errors import ConfigError, DataError
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA, partly_labelled


def partly(seed=0, n=50, D=6, units=1.0):
    X, y = make_task(seed, n, D)
    known = np.arange(n) % 3 > 0
    return X, y, known, partly_labelled(task_samples("", X * units, np.where(known, y, -1), -1))


def test_small_eigenvalues_of_the_denominator_are_right():
    """T of features in other units is T with its rows and columns scaled, however far apart the
    units are.
    """
    units = np.array([1.0, 1e-5, 1.0, 1e-7, 1e-3])
    X, _, known, task = partly(7, n=40, D=5, units=units)
    plain = np.cov(X[known].T, bias=True) + 0.5 * np.cov(X.T, bias=True)
    values, turn = task.denominator(0.5, 0.0, 5)
    U = task.reduced.lift(X * units - task.reduced.mean, turn)
    assert values.min() > 0
    np.testing.assert_allclose(U * values @ U.T / np.outer(units, units), plain, atol=1e-6)


def test_samples_that_do_not_vary_are_refused():
    with pytest.raises(DataError):
        partly_labelled(task_samples("", np.ones((6, 2)), np.array([0, 0, 1, 1, -1, -1]), -1))


@pytest.mark.parametrize(("eta", "mu"), [(1.0, 0.0), (0.3, 0.0), (0.5, 20.0)])
def test_unlabelled_samples_enter_the_denominator(eta, mu):
    problems, tasks, weights = [], [], []
    for seed, n, D, c in ((0, 60, 10, 4), (1, 50, 7, 3)):
        X, y = make_task(seed, n, D, c)
        known = np.arange(n) < 30
        B, labelled = dense_scatters(X[known], y[known])
        near = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
        A = np.zeros((n, n))
        np.put_along_axis(A, near, 1.0, axis=1)
        A = (A + A.T) / 2
        T = (
            labelled
            + eta * dense_scatters(X, y)[1]
            + mu * X.T @ (np.diag(A.sum(axis=1)) - A) @ X / n**2
        )
        problems.append((B, T))
        weights.append(1 / np.trace(T))
        tasks.append((X, np.where(known, y, -1)))
    ratio, expected = best_ratio(problems, [3, 2], weights)
    options = {"unlabelled": -1, "unlabelled_weight": eta, "graph_weight": mu, "n_neighbors": 4}
    model = SemiSupervisedMTDA(**options).fit_tasks(tasks)
    assert model.objective_path_[-1] == pytest.approx(ratio, abs=1e-10)
    assert_same_spaces(model.projections_, expected)
    assert list(model.classes_) == [0, 1, 2, 3]
    assert [len(Z) for Z in model.embeddings_] == [30, 30]
    for i, (X, y) in enumerate(tasks):
        np.testing.assert_allclose(
            model.embeddings_[i], model.transform_task(i, X[y >= 0]), atol=1e-9
        )
        np.testing.assert_array_equal(model.predict_task(i, X[y >= 0]), y[y >= 0])


@pytest.mark.parametrize("unlabelled", [None, -1])
def test_with_every_sample_labelled_only_the_ratio_is_scaled(unlabelled):
    tasks = [make_task(2), make_task(3, c=3)]
    plain = MTDA().fit_tasks(tasks)
    partly = SemiSupervisedMTDA(unlabelled=unlabelled, unlabelled_weight=3.0).fit_tasks(tasks)
    assert partly.objective_path_[-1] == pytest.approx(plain.objective_path_[-1] / 4, abs=1e-10)
    assert_same_spaces(partly.projections_, plain.projections_)


def test_unlabelled_samples_keep_the_ratio_below_1_in_high_dimensions():
    X, y = make_task(4, n=40, D=80)
    model = SemiSupervisedMTDA(unlabelled="?").fit(
        X, np.where(np.arange(40) < 16, y.astype(str), "?")
    )
    assert 0 < model.objective_path_[-1] < 1 - 1e-3
    assert (np.diff(model.objective_path_) >= -1e-13).all()
    with pytest.raises(DataError):
        SemiSupervisedMTDA(unlabelled=-1).fit(X, np.full(40, -1))


def test_what_is_prepared_serves_every_graph():
    """A study prepares once for all configurations: a neighbourhood that is searched must not be
    that of the first.
    """
    X, y = make_task(5)
    y = np.where(np.arange(60) < 30, y, -1)
    first, other = (
        SemiSupervisedMTDA(unlabelled=-1, graph_weight=50.0, n_neighbors=k) for k in (2, 20)
    )
    list(other.iterate(X, y, first.prepare(X, y)))
    alone = SemiSupervisedMTDA(unlabelled=-1, graph_weight=50.0, n_neighbors=20).fit(X, y)
    np.testing.assert_array_equal(other.scores_, alone.scores_)
    assert not np.allclose(first.fit(X, y).scores_, alone.scores_, atol=1e-3)


def test_a_label_of_joined_data_may_mean_unlabelled():
    """``task/-1``, as join_tasks writes a label -1 of a task."""
    tasks = [
        (X, np.where(np.arange(len(y)) < 30, y, -1))
        for X, y in (make_task(6), make_task(7, n=50, D=7))
    ]
    X = np.full((110, 17), np.nan)
    X[:60, :10], X[60:, 10:] = tasks[0][0], tasks[1][0]
    y = np.concatenate(
        [np.char.add("a/", tasks[0][1].astype(str)), np.char.add("b/", tasks[1][1].astype(str))]
    )
    face = SemiSupervisedMTDA({"a": 10, "b": 7}, unlabelled=-1).fit(X, y)
    native = SemiSupervisedMTDA(unlabelled=-1).fit_tasks(tasks)
    np.testing.assert_array_equal(face.scores_, native.scores_)
    np.testing.assert_array_equal(face.labelled(y), np.arange(110) % 60 < 30)
    assert face.classes_.tolist() == [f"{name}/{c}" for name in "ab" for c in range(4)]
    words = [(X, np.where(labels < 0, "none", labels.astype(str))) for X, labels in tasks]
    np.testing.assert_array_equal(
        SemiSupervisedMTDA(unlabelled="none").fit_tasks(words).scores_, native.scores_
    )
    assert SemiSupervisedMTDA().labelled(y).all()


def test_a_study_from_yaml_scores_the_labelled_samples(tmp_path):
    tasks = [
        (X, np.where(np.arange(60) % 3 > 0, y, -1)) for X, y in (make_task(8), make_task(9, D=7))
    ]
    study = make_study(
        tmp_path,
        dataset=write_tasks(tmp_path, tasks),
        solver={
            "name": "semisupervised_mtda",
            "params": {"unlabelled": -1},
            "space": {"graph_weight": [0.0, 5.0]},
        },
        evaluation={"classifier": "native"},
    )
    trials, refits, _ = run_serially(study, tmp_path / "run")
    assert len(trials) == 2
    for fold, (record, model) in zip(study.plan.folds, refits, strict=True):
        assert not any(label.endswith("-1") for label in model[-1].classes_)
        for task, score in enumerate(record.test_scores):
            rows = fold.test[study.dataset.tasks[fold.test] == task]
            rows = rows[~np.char.endswith(study.dataset.y[rows], "-1")]
            assert score == pytest.approx(model.score(study.dataset.X[rows], study.dataset.y[rows]))


@pytest.mark.parametrize(
    "params", [{"unlabelled_weight": 0.0}, {"graph_weight": -1.0}, {"n_neighbors": 0}]
)
def test_parameters_outside_their_range_are_refused(params):
    with pytest.raises(ConfigError):
        SemiSupervisedMTDA(**params).check(10)
