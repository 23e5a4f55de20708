"""Studies of quantities: their figures are those of nested loops that scikit-learn alone
computes on the same folds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import f_regression
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_studies import NoUpload

import raysel
from raysel.baselines.rfs import RFSRegressor
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import save_dataset
from raysel.evaluation.scoring_estimators import ALPHAS
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.in_memory import run_in_memory
from raysel.study.definition import Study
from raysel.study.draft.draft import init_study

X, Y = load_diabetes(return_X_y=True)
RNG = np.random.default_rng(0)
COEFFICIENTS = RNG.normal(size=(12, 2)) * (np.arange(12) % 3 == 0)[:, None]
SEVERAL = RNG.normal(size=(90, 12))
QUANTITIES = 30.0 + np.array([1.0, 50.0]) * (SEVERAL @ COEFFICIENTS + RNG.normal(size=(90, 2)))


def run(path, **sections):
    raw = {
        "name": "few",
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
        **sections,
    }
    study = Study.prepare(config_from_dict(raw))
    return study, course.run(study, Path(path), SerialExecutor(study), (), NoUpload)


def saved(folder, features, y, **parts):
    save_dataset(
        Dataset(features, y, Tensor((features.shape[1],)), "few", **parts), folder / "few.arrow"
    )
    return {"path": str(folder / "few.arrow"), "scaling": "zscore"}


def out_of_sample_r2(truth, predicted, training):
    return float(
        np.mean(1 - ((truth - predicted) ** 2).sum(0) / ((truth - training.mean(0)) ** 2).sum(0))
    )


def inner_of(fold):
    """Inner folds as positions within the outer training set, as scikit-learn's searches take
    them.
    """
    return [
        (np.searchsorted(fold.train, f.train), np.searchsorted(fold.train, f.validation))
        for f in fold.inner
    ]


def nested_rfs(fold, alphas, numbers):
    """The winner of an outer fold by a plain loop: its alpha, number of features, ridge alpha
    and scores.
    """

    def fitted(train, alpha):
        scaler = StandardScaler().fit(X[train])
        return scaler, RFSRegressor(alpha).fit(scaler.transform(X[train]), Y[train])

    def best_of(scaler, rfs, train, rows, n, ridge):
        best = np.sort(np.argsort(-rfs.scores_, kind="stable")[:n])
        model = Ridge(ridge).fit(scaler.transform(X[train])[:, best], Y[train])
        return model.predict(scaler.transform(X[rows])[:, best])

    inner = {}
    for alpha in alphas:
        fits = [(*fitted(part.train, alpha), part.train, part.validation) for part in fold.inner]
        for n in numbers:
            for ridge in ALPHAS:
                of_folds = [
                    out_of_sample_r2(Y[rows], best_of(s, rfs, train, rows, n, ridge), Y[train])
                    for s, rfs, train, rows in fits
                ]
                inner[alpha, n, ridge] = np.mean(of_folds)
    alpha, n, ridge = max(inner, key=inner.get)
    scaler, rfs = fitted(fold.train, alpha)
    predicted = best_of(scaler, rfs, fold.train, fold.test, n, ridge)
    return alpha, n, ridge, inner[alpha, n, ridge], predicted, rfs


@pytest.fixture(scope="module")
def rfs_study(tmp_path_factory):
    return run(
        tmp_path_factory.mktemp("rfs") / "study",
        dataset={"source": "diabetes", "scaling": "zscore"},
        solver={"name": "rfs", "space": {"alpha": [0.05, 0.5]}},
        evaluation={
            "n_features": [2, 5],
            "choose_n": "best",
            "report": ["neg_rmse", "neg_mae", "spearman", "r2"],
        },
    )


@pytest.mark.slow
def test_rfs_with_ridge_equals_a_nested_loop_in_scikit_learn(rfs_study):
    study, result = rfs_study
    assert (study.config.solver.name, study.config.evaluation.estimator) == (
        "rfs_regressor",
        "ridge",
    )
    assert study.config.evaluation.metric == "out_of_sample_r2"
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        alpha, n, ridge, inner, predicted, rfs = nested_rfs(fold, [0.05, 0.5], [2, 5])
        assert (
            refit.params["alpha"],
            refit.n_features,
            refit.settings[refit.position]["alpha"],
        ) == (alpha, n, ridge)
        assert refit.inner_score == pytest.approx(inner, rel=1e-12)
        truth = Y[fold.test]
        assert refit.test_score == pytest.approx(
            out_of_sample_r2(truth, predicted, Y[fold.train]), rel=1e-12
        )
        figures = {
            "neg_rmse": -root_mean_squared_error(truth, predicted),
            "neg_mae": -mean_absolute_error(truth, predicted),
            "spearman": spearmanr(truth, predicted).statistic,
            "r2": r2_score(truth, predicted),
        }
        for name, value in figures.items():
            assert refit.report[name][refit.position] == pytest.approx(value, rel=1e-12), name
        np.testing.assert_allclose(refit.feature_scores, rfs.scores_, rtol=1e-12)
        np.testing.assert_allclose(
            np.array(refit.predictions), np.stack([truth, predicted], axis=1), rtol=1e-12
        )


def test_references_are_the_mean_all_features_and_the_f_test(rfs_study):
    study, result = rfs_study
    assert set(result.outer[0].references) == {
        "all features",
        "f_test",
        "mean",
    }  # z-scores have one variance
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        assert refit.references["mean"] == [0.0]
        scaler = StandardScaler().fit(X[fold.train])
        Z, truth = scaler.transform(X), Y[fold.test]

        def ridge(columns, alpha, Z=Z, fold=fold):
            return (
                Ridge(alpha)
                .fit(Z[fold.train][:, columns], Y[fold.train])
                .predict(Z[fold.test][:, columns])
            )

        (alpha,) = refit.reference_settings["all features"]
        expected = out_of_sample_r2(truth, ridge(np.arange(10), alpha["alpha"]), Y[fold.train])
        assert refit.references["all features"] == pytest.approx([expected], rel=1e-12)
        order = np.argsort(-f_regression(X[fold.train], Y[fold.train])[0])
        for n, setting, score in zip(
            (2, 5), refit.reference_settings["f_test"], refit.references["f_test"], strict=True
        ):
            predicted = ridge(np.sort(order[:n]), setting["alpha"])
            assert score == pytest.approx(
                out_of_sample_r2(truth, predicted, Y[fold.train]), rel=1e-12
            )
    assert result.facts.references["chance"].recorded == "mean"


def test_stored_models_predict_what_was_scored(rfs_study):
    study, result = rfs_study
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        model = raysel.load_model(result.path / "folds" / f"{fold.name}.skops")
        score = out_of_sample_r2(Y[fold.test], model.predict(X[fold.test]), Y[fold.train])
        assert score == pytest.approx(refit.test_score, rel=1e-12)
    assert result.model.predict(X).shape == Y.shape


def test_multi_task_lasso_equals_grid_search_in_scikit_learn(tmp_path):
    study, result = run(
        tmp_path / "study",
        dataset=saved(tmp_path, SEVERAL, QUANTITIES),
        solver={"name": "sklearn.linear_model.MultiTaskLasso", "space": {"alpha": [0.1, 0.5, 3.0]}},
        evaluation={
            "estimator": "native",
            "metric": "r2",
            "report": ["out_of_sample_r2", "neg_rmse"],
        },
    )
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        pipeline = make_pipeline(StandardScaler(), MultiTaskLasso())
        search = GridSearchCV(
            pipeline, {"multitasklasso__alpha": [0.1, 0.5, 3.0]}, scoring="r2", cv=inner_of(fold)
        ).fit(SEVERAL[fold.train], QUANTITIES[fold.train])
        truth, predicted = QUANTITIES[fold.test], search.predict(SEVERAL[fold.test])
        assert refit.params["alpha"] == search.best_params_["multitasklasso__alpha"]
        assert refit.inner_score == pytest.approx(search.best_score_, rel=1e-10)
        assert refit.test_score == pytest.approx(r2_score(truth, predicted), rel=1e-10)
        assert refit.report["neg_rmse"] == pytest.approx(
            [-root_mean_squared_error(truth, predicted)], rel=1e-10
        )
        expected = out_of_sample_r2(truth, predicted, QUANTITIES[fold.train])
        assert refit.report["out_of_sample_r2"] == pytest.approx([expected], rel=1e-10)
        coef = search.best_estimator_[-1].coef_
        np.testing.assert_allclose(refit.feature_scores, np.linalg.norm(coef, axis=0), rtol=1e-10)
    assert result.predictions.shape == (90, 2, 2)


def test_nested_ridge_on_diabetes_is_scikit_learn_s(tmp_path):
    alphas = [0.1, 1.0, 10.0, 100.0]
    study, result = run(
        tmp_path / "study",
        dataset={"source": "diabetes", "scaling": "zscore"},
        solver={"name": "sklearn.linear_model.Ridge", "space": {"alpha": alphas}},
        evaluation={"estimator": "native"},
        cv={"outer": 5, "inner": 5},
    )
    scores = []
    for fold in study.plan.outer:
        pipeline = make_pipeline(StandardScaler(), Ridge())
        search = GridSearchCV(pipeline, {"ridge__alpha": alphas}, scoring="r2", cv=inner_of(fold))
        scores.append(search.fit(X[fold.train], Y[fold.train]).score(X[fold.test], Y[fold.test]))
    assert np.mean(result.test_scores) == pytest.approx(np.mean(scores), abs=0.01)


@pytest.mark.parametrize(
    ("scoring", "solver"), [("ridge", "rrelieff"), ("knn", "f_test"), ("sklearn.svm.SVR", "f_test")]
)
def test_permuted_quantities_are_predicted_no_better_than_by_their_mean(tmp_path, scoring, solver):
    _, result = run(
        tmp_path / "study",
        dataset=saved(tmp_path, SEVERAL, np.random.default_rng(5).permutation(QUANTITIES[:, 0])),
        solver={"name": solver},
        evaluation={"estimator": scoring, "n_features": [2, 6], "n_neighbors": 5},
    )
    assert np.mean(result.test_scores) < 0.05


@pytest.mark.parametrize("scoring", ["knn", "sklearn.neighbors.KNeighborsRegressor"])
def test_nearest_neighbours_and_dotted_regressors_score(tmp_path, scoring):
    given = "knn" if scoring == "knn" else {"name": scoring, "params": {"n_neighbors": 3}}
    study, result = run(
        tmp_path / "study",
        dataset=saved(tmp_path, SEVERAL, QUANTITIES),
        solver={"name": "f_test"},
        evaluation={"estimator": given, "n_neighbors": 3, "n_features": [4]},
    )
    fold, refit = study.plan.outer[0], result.outer[0]
    Z = StandardScaler().fit(SEVERAL[fold.train]).transform(SEVERAL)
    values = np.mean([f_regression(Z[fold.train], y[fold.train])[0] for y in QUANTITIES.T], axis=0)
    best = np.sort(np.argsort(-values)[:4])
    model = KNeighborsRegressor(3).fit(Z[fold.train][:, best], QUANTITIES[fold.train])
    predicted = model.predict(Z[fold.test][:, best])
    expected = out_of_sample_r2(QUANTITIES[fold.test], predicted, QUANTITIES[fold.train])
    assert refit.test_score == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_alphas_reach_as_far_as_many_smooth_columns_need():
    """A grid that goes on to 1e9 scores no better, so that no reference is beaten by the end of
    its grid.
    """
    rng = np.random.default_rng(1)
    samples, y = rng.standard_normal((40, 2000)).cumsum(axis=1), rng.standard_normal(40)
    sections = {"solver": {"name": "f_test"}, "cv": {"outer": 3, "inner": 2, "final": False}}
    evaluation = {"estimator": "ridge", "n_features": [2000], "metric": "r2"}
    study = prepare_study({"name": "few", **sections, "evaluation": evaluation}, X=samples, y=y)
    result = run_in_memory(study, SerialExecutor(study))
    gains = {1e9: [], 1e3: []}
    for fold, refit in zip(study.plan.outer, result.outer, strict=True):
        for last, gained in gains.items():
            grid = {"ridge__alpha": 10.0 ** np.arange(-3, np.log10(last) + 0.5)}
            model = make_pipeline(StandardScaler(), Ridge())
            search = GridSearchCV(model, grid, cv=inner_of(fold), scoring="r2")
            search.fit(samples[fold.train], y[fold.train])
            score = search.score(samples[fold.test], y[fold.test])
            gained.append(score - refit.references["all features"][0])
    assert np.mean(gains[1e9]) == pytest.approx(0.0, abs=0.02)
    assert np.mean(gains[1e3]) < -0.1


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"solver": {"name": "fisher_score"}},
            "fisher_score takes classes, and the label of diabetes is a quantity",
        ),
        ({"solver": {"name": "sklearn.svm.LinearSVC"}}, "LinearSVC takes classes"),
        ({"solver": {"name": "f_test"}, "dataset": {"source": "wine"}}, "f_test takes quantities"),
        ({"evaluation": {"n_features": [2], "metric": "roc_auc"}}, "roc_auc is for two classes"),
        (
            {"evaluation": {"n_features": [2], "estimator": "linear_svm"}},
            "is a quantity; use ridge or knn",
        ),
        (
            {"evaluation": {"n_features": [2], "estimator": "sklearn.svm.SVC"}},
            "is a classifier; use a regressor",
        ),
        ({"cv": {"train_per_class": 4, "repeats": 2}}, "the label is a quantity; set cv.outer"),
    ],
)
def test_what_needs_classes_says_so_before_anything_is_computed(sections, message):
    raw = {
        "name": "few",
        "dataset": {"source": "diabetes"},
        "solver": {"name": "rfs"},
        "evaluation": {"n_features": [2]},
    }
    with pytest.raises((ConfigError, DataError), match=message):
        Study.prepare(config_from_dict(raw | sections))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (lambda y: y, "equals the label"),
        (lambda y: (1.8 * y + 32).round(2), "in another unit"),
        (np.log, "rises or falls exactly"),
        (lambda y: -(y**3), "rises or falls exactly"),
    ],
)
def test_a_column_that_is_the_quantity_is_refused(tmp_path, column, words):
    y = np.abs(QUANTITIES[:, 1]) + 1.0
    raw = {
        "name": "few",
        "dataset": saved(tmp_path, np.column_stack([SEVERAL, column(y)]), y),
        "solver": {"name": "rfs"},
    }
    with pytest.raises(DataError, match=words):
        Study.prepare(config_from_dict(raw | {"evaluation": {"n_features": [2]}}))


@pytest.mark.slow
def test_a_table_with_dates_and_a_missing_label_needs_no_edit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(SEVERAL.round(4), columns=[f"sensor{i}" for i in range(12)])
    table.insert(0, "measured_on", pd.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d"))
    table["strength"] = QUANTITIES[:, 0].round(3)
    table.loc[17, "strength"] = np.nan
    table.to_csv("concrete.csv", index=False)
    draft = init_study("concrete.csv", output="concrete.yaml")
    assert draft.config.dataset.label == "strength"
    assert draft.config.dataset.task == "regression"
    assert draft.config.dataset.drop == ("measured_on",)
    assert "1 row has no label and is left out (row 17, counted from 0)" in draft.findings["notes"]
    fewer = ("cv.outer=2",)  # for the time that they take
    study = Study.prepare(raysel.config.load_config(Path("concrete.yaml"), fewer))
    assert (study.dataset.n_samples, study.dataset.n_features) == (89, 12)
    result = course.run(study, Path("study"), SerialExecutor(study), (), NoUpload)
    assert np.mean(result.test_scores) > 0.5
    assert set(np.argsort(result.ranking().ranks)[:2].tolist()) <= set(
        np.flatnonzero(COEFFICIENTS[:, 0]).tolist()
    )
    assert (result.path / "report.html").exists()
