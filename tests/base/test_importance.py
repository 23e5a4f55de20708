"""Permutation importance: a known formula, models of any kind, and studies that rank by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine, make_classification
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_studies import raw_config, run_offline

from raysel import NestedSearch, PermutationImportance, load_model
from raysel.config.loading import config_from_dict
from raysel.core.errors import ConfigError
from raysel.evaluation.split import set_parameters
from raysel.study.definition import Study


@parametrize_with_checks([PermutationImportance(GaussianNB(), n_folds=2, n_repeats=1)])
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def test_a_linear_model_loses_twice_the_variance_that_a_feature_explains():
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(4000, 4)) * [1.0, 2.0, 1.0, 1.0], np.array([1.0, 1.0, -0.5, 0.0])
    y = X @ beta + rng.normal(size=4000)
    ranked = PermutationImportance(LinearRegression(), "neg_mean_squared_error").fit(X, y)
    np.testing.assert_allclose(
        ranked.feature_importances_, 2 * beta**2 * X.var(axis=0), rtol=0.05, atol=0.01
    )


def test_nothing_is_earned_by_samples_learnt_by_heart():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    nearest = PermutationImportance(KNeighborsClassifier(1), n_repeats=10).fit(X, y)
    assert (
        nearest.score(X, y) == 1.0
    )  # on its training samples, where each feature would seem to matter
    assert nearest.feature_importances_.max() < 0.1


@pytest.mark.slow
def test_estimators_without_weights_rank_within_scikit_learn_s_tools():
    X, y = make_classification(
        200, 10, n_redundant=0, n_clusters_per_class=1, shuffle=False, random_state=0
    )
    ranked = PermutationImportance(SVC(), "roc_auc", n_folds=2, n_repeats=2)
    assert set(np.argsort(ranked.fit(X, y).feature_importances_)[-2:]) == {0, 1}
    pipeline = make_pipeline(StandardScaler(), ranked)
    grid = GridSearchCV(pipeline, {"permutationimportance__estimator__C": [1e-4, 1.0]}, cv=2).fit(
        X, y
    )
    assert grid.best_params_ == {"permutationimportance__estimator__C": 1.0}
    plain = SVC().fit(X, y)
    np.testing.assert_array_equal(ranked.decision_function(X), plain.decision_function(X))
    assert not hasattr(ranked, "predict_proba")
    search = NestedSearch(
        ranked, {"estimator__C": [0.1, 1.0]}, n_features=[2, 10], outer=2, inner=2
    ).fit(X, y)
    assert set(np.flatnonzero(search.ranking_ <= 2)) == {0, 1}


def test_a_pipeline_that_fills_empty_cells_gets_them():
    X, y = load_wine(return_X_y=True)
    X[::9, 3] = np.nan
    filled = PermutationImportance(
        make_pipeline(SimpleImputer(), GaussianNB()), n_folds=2, n_repeats=1
    )
    assert NestedSearch(filled, outer=2, inner=2).fit(X, y).ranking_.shape == (13,)


def test_a_class_of_one_sample_is_left_out_and_rounding_is_no_importance():
    X, y = load_wine(return_X_y=True)
    rows = [*range(0, 178, 3), 177]
    y = np.where(np.arange(178) == 177, 3, y)
    ranked = PermutationImportance(KNeighborsClassifier(3), "neg_log_loss", n_repeats=1).fit(
        X[rows], y[rows]
    )
    found = ranked.feature_importances_
    assert (found[found > 0] > 1e-12 * found.max()).all()


def study_of(table, **changes):
    solver = {"name": "sklearn.svm.SVC", "space": {"C": [0.1, 1.0]}}
    raw = raw_config(table, solver=solver | {"importance": "permutation"}, **changes)
    raw["dataset"] |= {"label": "kind", "scaling": "zscore"}
    return raw


def text_and_numbers(n=120):
    """Values of a text that tell the class, and two numbers that do not; shape (n, 3)."""
    rng = np.random.default_rng(0)
    text = rng.integers(0, 6, n)
    return np.column_stack([rng.normal(size=(n, 2)), text]), np.where(
        rng.random(n) < 0.9, text % 2, rng.integers(0, 2, n)
    )


def test_the_columns_of_a_feature_are_permuted_together_as_the_feature_before_it_is_encoded():
    X, y = text_and_numbers()
    encoder = ColumnTransformer([("text", OneHotEncoder(), [2])], remainder="passthrough")
    order = np.r_[np.full(6, 2), 0, 1]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    before = PermutationImportance(make_pipeline(encoder, model)).fit(X, y)
    columns = encoder.fit_transform(X)
    together = PermutationImportance(model, origin=order).fit(columns, y)
    np.testing.assert_array_equal(together.feature_importances_, before.feature_importances_[order])
    one_by_one = PermutationImportance(model).fit(columns, y)
    assert one_by_one.feature_importances_.max() < 0.8 * before.feature_importances_[2]


def test_a_study_permutes_the_columns_of_a_text_together(tmp_path):
    X, y = text_and_numbers()
    frame = pd.DataFrame(X, columns=["a", "b", "text"])
    frame.assign(text=[f"value {code:.0f}" for code in X[:, 2]], kind=y).to_csv(
        tmp_path / "table.csv", index=False
    )
    raw = study_of(tmp_path / "table.csv", evaluation={"estimator": "native"})
    raw["dataset"]["prepare"] = ["encode"]
    study = Study.prepare(config_from_dict(raw))
    split = study.fit_split(np.arange(len(study.dataset.y)))
    solver = study.solver(study.examples[0].params, 0)
    set_parameters(solver, split.parameters)
    solver.fit(split.X_train, split.y_train)
    text = split.outputs.origin == 2
    assert len(set(solver.scores_[text])) == 1
    scores = split.feature_scores(solver)
    assert scores.argmax() == 2
    assert scores[2] == solver.scores_[text][0] > 0.3


@pytest.fixture
def table(tmp_path):
    """Wine, with columns of noise."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "color_intensity", "proline"]]
    noise = np.random.default_rng(0).normal(size=X.shape)
    X.assign(
        **dict(zip(["noise 1", "noise 2", "noise 3", "noise 4"], noise.T, strict=True)),
        kind=[f"kind {label}" for label in y],
    ).to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path / "wine.csv"


@pytest.mark.parametrize("scoring", ["native", pytest.param("linear_svm", marks=pytest.mark.slow)])
def test_a_study_ranks_by_a_method_without_weights(scoring, table, tmp_path):
    evaluation = {"estimator": scoring} | (
        {} if scoring == "native" else {"n_features": [4], "C": [0.1]}
    )
    result = run_offline(study_of(table, evaluation=evaluation), tmp_path / "study")
    best = result.ranking().to_frame()["feature"].head(4)
    assert not best.str.startswith("noise").any()
    assert hasattr(load_model(tmp_path / "study/model.skops"), "predict")


def test_trials_rank_only_where_the_ranking_is_scored(table):
    for scoring, ranks in (
        ({"estimator": "native"}, False),
        ({"estimator": "linear_svm", "n_features": [2]}, True),
    ):
        study = Study.prepare(config_from_dict(study_of(table, evaluation=scoring)))
        params = study.examples[0].params
        assert isinstance(study.trial_solver(params, 0).estimator, PermutationImportance) is ranks
        assert isinstance(study.solver(params, 0).estimator, PermutationImportance)


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (
            {"name": "smr"},
            "importance is for scikit-learn's classifiers and regressors, and smr is none",
        ),
        ({"name": "sklearn.decomposition.PCA"}, "and sklearn.decomposition.PCA is none"),
        ({"name": "sklearn.svm.SVC", "params": {"C": -1.0}}, "The 'C' parameter of SVC must be"),
        ({"name": "sklearn.svm.SVC"}, "cv.blocks keeps samples together"),
    ],
)
def test_what_cannot_rank_by_permutation_is_refused(solver, message, table):
    raw = study_of(table, **({"cv__blocks": {"size": 3}} if "blocks" in message else {}))
    raw["solver"] = {"importance": "permutation"} | solver
    with pytest.raises(ConfigError, match=message):
        Study.prepare(config_from_dict(raw))


def test_a_method_without_weights_is_told_of_permutation(table):
    raw = study_of(table, evaluation={"estimator": "linear_svm", "n_features": [2]})
    del raw["solver"]["importance"]
    with pytest.raises(ConfigError, match="use native, or let it rank by solver"):
        Study.prepare(config_from_dict(raw))


def test_a_search_whose_estimator_ranks_nothing_has_no_support():
    X, y = load_wine(return_X_y=True)
    search = NestedSearch(KNeighborsClassifier(), outer=2, inner=2).fit(X, y)
    with pytest.raises(AttributeError, match="PermutationImportance"):
        search.get_support()


class Threshold(VarianceThreshold):
    """A class of one's own that is a threshold of the variance."""


@pytest.mark.parametrize(
    "name", ["variance", "sklearn.feature_selection.VarianceThreshold", f"{__name__}.Threshold"]
)
def test_the_variance_of_scaled_columns_is_refused(table, name):
    raw = study_of(table)
    raw["solver"] = {"name": name}
    with pytest.raises(ConfigError, match="rounding errors alone"):
        Study.prepare(config_from_dict(raw))
