"""NestedSearch: scikit-learn's own nested search fold for fold, the numbers of run_study, the
estimators' contract.
"""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_wine, make_multilabel_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import raysel
from raysel import NestedSearch
from raysel.core.errors import ConfigError, DataError, StudyError
from raysel.execution.serial import SerialExecutor
from raysel.results.texts import reference_name
from raysel.run import course
from raysel.run.api import prepare_study

X, Y = load_wine(return_X_y=True)
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
OUTER = StratifiedKFold(2, shuffle=True, random_state=1)
INNER = StratifiedKFold(2, shuffle=True, random_state=2)


def selecting(last):
    return Pipeline([("scale", StandardScaler()), ("select", SelectKBest()), ("last", last)])


CASES = {
    "pipeline of scaling, selection and svm": (
        selecting(LinearSVC(random_state=0)),
        {"select__k": [2, 6], "last__C": [0.01, 1.0]},
    ),
    "steps that are searched": (
        selecting(KNeighborsClassifier()),
        [
            {
                "scale": [StandardScaler(), MinMaxScaler(), "passthrough"],
                "last__n_neighbors": [1, 5],
            },
            {"last": [GaussianNB()], "select__score_func": [f_classif], "select__k": [4]},
        ],
    ),
    "tree": (
        DecisionTreeClassifier(random_state=3),
        {"max_depth": [1, 3], "min_samples_leaf": [1, 5]},
    ),
    "logistic regression": (
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": [0.01, 1]},
    ),
    "svm": (SVC(), {"C": [1, 100], "gamma": ["scale", 0.001]}),
    "forest": (
        RandomForestClassifier(15, random_state=5),
        {"max_features": [1, 4], "max_depth": [2, None]},
    ),
}
QUICK = list(CASES)[:2]


def first_of_the_best(results):
    """The first configuration of those whose means differ by rounding only, which scikit-learn
    takes for different.
    """
    return int(np.argmax(np.round(results["mean_test_score"], 10)))


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_each_fold_is_that_of_scikit_learns_nested_search(name):
    estimator, space = CASES[name]
    search = NestedSearch(estimator, space, outer=OUTER, inner=INNER).fit(X, Y)
    reference = GridSearchCV(estimator, space, cv=INNER, refit=first_of_the_best)
    found = cross_validate(reference, X, Y, cv=OUTER, return_estimator=True, return_indices=True)
    assert search.scores_.tolist() == found["test_score"].tolist()
    for i, theirs in enumerate(found["estimator"]):
        np.testing.assert_array_equal(search.fold_results_["test"][i], found["indices"]["test"][i])
        assert shown(search.fold_results_["params"][i]) == shown(theirs.best_params_)
        best = np.max(theirs.cv_results_["mean_test_score"])
        assert search.fold_results_["inner_score"][i] == pytest.approx(best, abs=1e-12)
    whole = reference.fit(X, Y)
    assert shown(search.best_params_) == shown(whole.best_params_)
    assert type(search.best_estimator_) is type(estimator)
    np.testing.assert_array_equal(search.predict(X), whole.predict(X))


REGRESSORS = {
    "lasso": (Lasso(), {"alpha": [0.01, 0.1, 1.0]}, "r2"),
    "pipeline of scaling, selection and svm": (
        make_pipeline(StandardScaler(), SelectKBest(f_regression), SVR()),
        {"svr__C": [1.0, 100.0], "selectkbest__k": [2, 6]},
        "neg_root_mean_squared_error",
    ),
    "several quantities": (Ridge(), {"alpha": [0.1, 10.0]}, "r2"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name.startswith("pipe") else name
        for name in REGRESSORS
    ],
)
def test_each_fold_of_a_regressor_is_that_of_scikit_learns_nested_search(name):
    estimator, space, metric = REGRESSORS[name]
    X, y = load_diabetes(return_X_y=True)
    y = np.stack([y, X[:, 2] ** 2 + X[:, 0]], axis=1) if name == "several quantities" else y
    outer, inner = KFold(3, shuffle=True, random_state=1), KFold(2, shuffle=True, random_state=2)
    search = NestedSearch(estimator, space, outer=outer, inner=inner, metric=metric).fit(X, y)
    reference = GridSearchCV(estimator, space, cv=inner, scoring=metric)
    found = cross_validate(reference, X, y, cv=outer, scoring=metric)
    assert search.scores_.tolist() == pytest.approx(found["test_score"].tolist(), rel=1e-12)
    whole = reference.fit(X, y)
    assert search.best_params_ == whole.best_params_
    np.testing.assert_allclose(search.predict(X), whole.predict(X), rtol=1e-12)
    assert search.score(X, y) == pytest.approx(whole.score(X, y), rel=1e-12)
    assert is_regressor(search)
    assert not hasattr(search, "classes_")


def shown(params):
    return {name: str(value) for name, value in params.items()}


@pytest.mark.parametrize(
    "wrapper",
    [
        OneVsRestClassifier,
        pytest.param(MultiOutputClassifier, marks=pytest.mark.slow),
        pytest.param(ClassifierChain, marks=pytest.mark.slow),
    ],
)
def test_classifiers_around_another_take_several_labels(wrapper):
    samples, labels = make_multilabel_classification(60, 4, n_classes=3, random_state=0)
    outer, inner = KFold(2, shuffle=True, random_state=0), KFold(2)
    estimator, space = wrapper(LogisticRegression()), {"estimator__C": [0.01, 1.0]}
    search = NestedSearch(estimator, space, outer=outer, inner=inner, metric="average_precision")
    reference = GridSearchCV(estimator, space, cv=inner, scoring="average_precision")
    found = cross_validate(reference, samples, labels, cv=outer, scoring="average_precision")
    assert search.fit(samples, labels).scores_.tolist() == found["test_score"].tolist()


def test_the_numbers_are_those_of_run_study(tmp_path):
    groups = np.arange(len(Y)) // 2
    space = {"C": [0.01, 1.0]}
    config = {
        "seed": 7,
        "name": "same",
        "solver": {"name": "sklearn.svm.LinearSVC", "params": {"dual": False}, "space": space},
        "dataset": {"scaling": "none"},
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
    }
    prepared = prepare_study(config, X=SCALED, y=Y, groups=groups)
    study = course.run(prepared, tmp_path / "study", SerialExecutor(prepared), start_upload=None)
    search = NestedSearch(LinearSVC(dual=False), space, outer=3, inner=2, random_state=7).fit(
        SCALED, Y, groups
    )
    assert search.scores_.tolist() == study.test_scores
    assert search.score_ == study.test_mean
    assert (search.interval_) == (study.interval.lower, study.interval.upper)
    assert search.study_.final.feature_scores == study.final.feature_scores
    np.testing.assert_array_equal(search.best_estimator_.coef_, study.model.method.estimator_.coef_)
    strip = (
        [r.trial for r in study.refits],
        [r.references for r in study.refits],
        [r.inner_score for r in study.refits],
    )
    ours = search.study_.refits
    assert (
        [r.trial for r in ours],
        [r.references for r in ours],
        [r.inner_score for r in ours],
    ) == strip
    assert search.study_.facts.to_json()["scores"] == study.facts.to_json()["scores"]


@pytest.mark.slow
def test_processes_give_the_same_numbers():
    estimator, space = CASES["pipeline of scaling, selection and svm"]
    one = NestedSearch(estimator, space, outer=2, inner=2).fit(X, Y)
    two = NestedSearch(estimator, space, outer=2, inner=2, n_jobs=2).fit(X, Y)
    assert one.scores_.tolist() == two.scores_.tolist()
    frames = [search.study_.trials().drop(columns="seconds") for search in (one, two)]
    pd.testing.assert_frame_equal(
        *(frame.sort_values("trial", ignore_index=True) for frame in frames)
    )


def test_a_method_of_matrices_ranks_and_its_scoring_estimator_is_chosen():
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], 20)
    images = rng.standard_normal((40, 12))
    images[:, 5] += 4 * (y == "yes")
    search = NestedSearch(
        raysel.SMR(shape=(3, 4), max_iter=5),
        {"alpha": [0.01, 0.1]},
        outer=2,
        inner=2,
        n_features=[1, 3],
        scoring_estimator="knn",
    ).fit(images, y)
    assert search.ranking_[5] == 1
    assert search.study_.layout.grid == (3, 4)
    assert set(search.predict(images)) <= {"no", "yes"}
    assert search.get_support()[5]
    assert search.transform(images).shape == (40, search.study_.final.n_features)
    masked = NestedSearch(
        raysel.SMR(mask=np.ones((3, 4), dtype=bool), max_iter=5),
        {"alpha": [0.01, 0.1]},
        outer=2,
        inner=2,
        n_features=[1, 3],
        scoring_estimator="knn",
    ).fit(
        images, y
    )  # fmt: skip
    assert (masked.score_, masked.best_params_) == (search.score_, search.best_params_)
    assert [step for step, _ in search.best_estimator_.steps] == [
        "scaler",
        "selector",
        "classifier",
    ]


def test_scores_reach_through_the_steps_of_a_pipeline():
    pipeline = selecting(LinearSVC(random_state=0)).set_params(select__k=3)
    search = NestedSearch(pipeline, outer=2, inner=2).fit(X, Y)
    fitted = search.best_estimator_
    scores = np.zeros(X.shape[1])
    scores[fitted["select"].get_support()] = np.linalg.norm(fitted["last"].coef_, axis=0)
    np.testing.assert_allclose(search.study_.final.feature_scores, scores)
    assert search.ranking_.argmin() == scores.argmax()


@pytest.mark.parametrize(
    "name",
    [
        "roc_auc",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("neg_log_loss", "f1", "average_precision")
        ),
    ],
)
def test_a_scorer_of_scikit_learn_chooses_and_scores(name):
    two = Y > 0
    model, space = (
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": [0.001, 1.0]},
    )
    reference = GridSearchCV(model, space, cv=INNER, refit=first_of_the_best, scoring=name)
    found = cross_validate(reference, X[:, :4], two, cv=OUTER, scoring=name)["test_score"]
    search = NestedSearch(model, space, outer=OUTER, inner=INNER, metric=name).fit(X[:, :4], two)
    np.testing.assert_allclose(search.scores_, found, rtol=1e-12)
    assert search.score(X[:, :4], two) == pytest.approx(
        reference.fit(X[:, :4], two).score(X[:, :4], two)
    )


def test_frames_names_and_set_output():
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    search = NestedSearch(
        LinearSVC(random_state=0), {"C": [0.01]}, outer=2, inner=2, scaling="zscore"
    )
    search.fit(frame, pd.Series(Y).map({0: "a", 1: "b", 2: "c"}))
    assert search.classes_.tolist() == ["a", "b", "c"]
    assert set(search.predict(frame)) == {"a", "b", "c"}
    assert search.score(frame, pd.Series(Y).map({0: "a", 1: "b", 2: "c"})) > 0.9
    selected = search.set_output(transform="pandas").transform(frame)
    assert list(selected.columns) == search.get_feature_names_out().tolist()
    assert set(selected.columns) <= set(frame.columns)
    copied = clone(search).set_params(estimator__C=3.0)
    assert copied.estimator.C == 3.0
    assert not hasattr(copied, "study_")
    again = pickle.loads(pickle.dumps(search))
    assert again.predict(frame).tolist() == search.predict(frame).tolist()


@pytest.mark.parametrize("scaled", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_nearest_neighbour_of_all_features_is_no_better_than_that_reference(scaled):
    """Whether it standardises the columns by itself, which the reference has to do too, or had
    better not.
    """
    nearest = KNeighborsClassifier(1)
    samples = X if scaled else np.hstack([50 * SCALED, np.random.default_rng(0).random((178, 40))])
    search = NestedSearch(make_pipeline(StandardScaler(), nearest) if scaled else nearest)
    study = search.set_params(outer=OUTER, inner=INNER).fit(samples, Y).study_
    rival = study.references["all features"]
    assert rival.verdict == "equal"
    assert rival.scores == search.scores_.tolist()
    assert {fold[0]["scaling"] for fold in rival.settings} == {"zscore" if scaled else "none"}
    named = reference_name(study.facts, "all features")
    assert named.endswith("(1-nearest neighbour of standardised features)") == scaled
    assert any("standard deviations differ" in remark for remark in study.remarks()) != scaled


def test_many_samples_have_logistic_regression_as_reference():
    drawn = np.random.default_rng(0)
    samples = drawn.standard_normal((2001, 3)) * [1, 100, 0.01]
    y = samples[:, 2] + 0.01 * drawn.standard_normal(2001) > 0
    search = NestedSearch(LinearDiscriminantAnalysis(), outer=OUTER, inner=INNER).fit(samples, y)
    study = search.study_
    by_hand = make_pipeline(StandardScaler(), LogisticRegression())
    expected = cross_val_score(by_hand, samples, y, cv=OUTER)
    assert study.references["all features"].scores == expected.tolist()
    named = reference_name(study.facts, "all features")
    assert named.endswith("(logistic regression of standardised features)")


def test_a_ridge_regression_that_scales_is_no_better_than_that_reference():
    samples, y = load_diabetes(return_X_y=True)
    samples = samples * np.logspace(-3, 3, 10)
    model = make_pipeline(StandardScaler(), Ridge(10.0))
    search = NestedSearch(model, outer=3, inner=2, metric="out_of_sample_r2").fit(samples, y)
    rival = search.study_.references["all features"]
    assert rival.mean == pytest.approx(search.score_, abs=0.01)
    assert {fold[0]["scaling"] for fold in rival.settings} == {"zscore"}
    assert not any("standard deviations differ" in remark for remark in search.study_.remarks())


def test_noise_with_empty_cells_has_no_column_that_numbers_its_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100, 40))
    values[rng.integers(100, size=10), np.arange(10)] = np.nan  # all other cells differ
    model = make_pipeline(SimpleImputer(), LinearSVC())
    search = NestedSearch(model, outer=2, inner=2).fit(pd.DataFrame(values), np.arange(100) % 2)
    assert not any("whole number in each row" in remark for remark in search.study_.remarks())


@pytest.mark.parametrize("n_features", [pytest.param(None, marks=pytest.mark.slow), [2, 5]])
def test_a_regressor_needs_no_metric_and_no_scoring_estimator(n_features):
    samples, y = (part[:150] for part in load_diabetes(return_X_y=True))
    found = [
        NestedSearch(Ridge(0.1), outer=2, inner=2, n_features=n_features, **given).fit(samples, y)
        for given in ({}, {"metric": "out_of_sample_r2", "scoring_estimator": "ridge"})
    ]
    assert found[0].scores_.tolist() == found[1].scores_.tolist()
    assert found[0].score(samples, y) == found[1].score(samples, y)
    assert found[0].study_.config["evaluation"] == found[1].study_.config["evaluation"]
    assert hasattr(NestedSearch(Ridge(), n_features=n_features), "predict")
    assert not hasattr(NestedSearch(Ridge(), n_features=n_features), "decision_function")


def test_the_study_is_whole_and_has_no_files():
    search = NestedSearch(LinearSVC(random_state=0), {"C": [0.01, 1.0]}, outer=3, inner=2).fit(
        SCALED, Y
    )
    study = search.study_
    assert study.recorded.in_memory
    assert len(study.summary()) == 3
    assert study.facts.agreement is not None
    assert study.references["chance"].mean < search.score_
    assert study.ranking(top=3).to_frame().shape[0] == X.shape[1]
    assert study.remarks() == study.remarks()
    for plot in (
        study.plot_scores,
        study.plot_confusion,
        study.plot_ranking,
        study.plot_profile,
        study.plot_search,
    ):
        assert plot() is not None
    assert study._repr_html_()
    with pytest.raises(StudyError, match="held in memory"):
        _ = study.path


def test_a_path_makes_a_study_that_opens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "raysel.run.course._StudyCourse._write_report", lambda *_: None
    )  # draws for ten seconds
    monkeypatch.setattr("raysel.run.course.export_result", lambda *_: None)
    estimator, space = CASES["pipeline of scaling, selection and svm"]
    search = NestedSearch(estimator, space, outer=2, inner=2, path="study").fit(X, Y)
    memory = NestedSearch(estimator, space, outer=2, inner=2).fit(X, Y)
    opened = raysel.open_study(tmp_path / "study")
    assert opened.test_scores == memory.scores_.tolist() == search.scores_.tolist()
    assert not (tmp_path / "mlflow.db").exists()
    assert "SelectKBest" in opened.config["solver"]["name"]
    np.testing.assert_array_equal(search.predict(X), memory.predict(X))


def test_nothing_is_written_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NestedSearch(GaussianNB(), outer=2, inner=2).fit(X, Y)
    assert not list(tmp_path.iterdir())


def test_the_outer_test_samples_change_nothing_that_is_fitted():
    estimator, space = CASES["pipeline of scaling, selection and svm"]
    one = NestedSearch(estimator, space, outer=OUTER, inner=INNER).fit(X, Y)
    test = one.fold_results_["test"][0]
    scrambled = X.copy()
    scrambled[test] = np.random.default_rng(0).permuted(X[test], axis=0) * 3
    other = NestedSearch(estimator, space, outer=OUTER, inner=INNER).fit(scrambled, Y)
    assert one.fold_results_["params"][0] == other.fold_results_["params"][0]
    mine, theirs = (search.fold_results_["estimator"][0] for search in (one, other))
    np.testing.assert_array_equal(mine["last"].coef_, theirs["last"].coef_)
    np.testing.assert_array_equal(mine["scale"].mean_, theirs["scale"].mean_)


def test_groups_stay_whole_and_a_splitter_that_divides_them_is_refused():
    groups = np.arange(len(Y)) % 30
    search = NestedSearch(GaussianNB(), outer=GroupKFold(3), inner=GroupKFold(2)).fit(X, Y, groups)
    for train, test in zip(
        search.fold_results_["train"], search.fold_results_["test"], strict=True
    ):
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(
        ConfigError, match=r"the folds of outer and inner: outer0: group .* is on both sides"
    ):
        NestedSearch(GaussianNB(), outer=KFold(3, shuffle=True, random_state=0), inner=2).fit(
            X, Y, groups
        )


RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "alcohol": X[:, 0],
        "hue": X[:, 10],
        "colour": pd.Categorical(
            np.where(X[:, 9] > 6, "dark", np.where(X[:, 9] > 4, "red", "pale"))
        ),
        "cellar": RNG.choice(["north", "south"], len(Y)),
    }
)
TABLE.loc[RNG.choice(len(Y), 30, replace=False), "alcohol"] = np.nan
TABLE.loc[[3, 50, 90], "cellar"] = None
NUMBERS = np.where(RNG.random((len(Y), 5)) < 0.1, np.nan, X[:, :5])
FILLED = make_pipeline(
    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
)
PREPARED = ColumnTransformer(
    [
        (
            "number",
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
            ["alcohol", "hue"],
        ),
        ("text", FILLED, ["colour", "cellar"]),
    ]
)
BY_PLACE = ColumnTransformer([("number", SimpleImputer(), [0, 1]), ("text", FILLED, [2, 3])])
OWN_CELLS = {
    "frame by names": (
        make_pipeline(PREPARED, LogisticRegression()),
        TABLE,
        {"logisticregression__C": [0.01, 1]},
    ),
    "array of objects": (
        make_pipeline(BY_PLACE, DecisionTreeClassifier(random_state=0)),
        TABLE.to_numpy(object),
        {"columntransformer__number__strategy": ["mean", "median"]},
    ),
    "gaps": (
        make_pipeline(SimpleImputer(), StandardScaler(), LinearSVC(random_state=0)),
        NUMBERS,
        {"simpleimputer__strategy": ["mean", "median"], "linearsvc__C": [0.01, 1]},
    ),
    "gaps and categories that a tree takes": (
        HistGradientBoostingClassifier(
            max_iter=5, random_state=0, categorical_features="from_dtype"
        ),
        TABLE[["alcohol", "hue", "colour"]],
        {"max_depth": [1, 3]},
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.slow] if isinstance(OWN_CELLS[name][1], pd.DataFrame) else []
        )
        for name in OWN_CELLS
    ],
)
def test_cells_without_a_value_and_text_go_to_the_estimator_as_they_are(name):
    estimator, samples, space = OWN_CELLS[name]
    search = NestedSearch(estimator, space, outer=OUTER, inner=INNER).fit(samples, Y)
    expected = cross_validate(
        GridSearchCV(estimator, space, cv=INNER),
        samples,
        Y,
        cv=OUTER,
        return_estimator=True,
        error_score="raise",
    )
    np.testing.assert_array_equal(search.scores_, expected["test_score"])
    assert search.fold_results_["params"] == [fold.best_params_ for fold in expected["estimator"]]
    whole = clone(estimator).set_params(**search.best_params_).fit(samples, Y)
    np.testing.assert_array_equal(search.predict(samples), whole.predict(samples))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(search)).predict(samples), whole.predict(samples)
    )
    assert search.n_features_in_ == samples.shape[1]
    guess = cross_validate(DummyClassifier(strategy="most_frequent"), samples, Y, cv=OUTER)[
        "test_score"
    ].mean()
    assert list(search.study_.references) == ["chance"]
    assert search.study_.references["chance"].mean >= guess
    if name == "gaps":
        assert search.ranking_.argmin() == np.linalg.norm(whole[-1].coef_, axis=0).argmax()


@pytest.mark.parametrize(
    ("estimator", "samples", "settings", "told"),
    [
        (
            LinearSVC(),
            NUMBERS,
            {},
            "X holds NaN.*5 of 5 columns.*LinearSVC takes none: fill them first",
        ),
        (LinearSVC(), TABLE, {}, "2 of 4 columns, the first is 'alcohol'"),
        (
            make_pipeline(StandardScaler(), LinearSVC()),
            NUMBERS,
            {},
            "cannot be fitted.*Input X contains NaN",
        ),
        (
            make_pipeline(SimpleImputer(), LinearSVC()),
            TABLE,
            {},
            "column '.*' holds text, e.g. .*: encode it in a Pipeline",
        ),
        (
            OWN_CELLS["gaps"][0],
            NUMBERS,
            {"n_features": [2]},
            "n_features is for columns of numbers",
        ),
        (OWN_CELLS["gaps"][0], NUMBERS, {"scaling": "zscore"}, "scaling is for columns of numbers"),
        (raysel.SMR(shape=(1, 5)), NUMBERS, {"n_features": [2]}, "SMR takes none"),
    ],
)
def test_cells_that_an_estimator_does_not_take_are_refused_before_the_search(
    estimator, samples, settings, told
):
    with pytest.raises((ConfigError, DataError), match=re.compile(told, re.DOTALL)):
        NestedSearch(estimator, outer=2, inner=2, **settings).fit(samples, Y)


def test_a_column_of_numbers_with_cells_below_a_limit_is_named_with_the_mend():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)).round(3), np.arange(40) % 2
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(4)])
    mixed = frame.astype({"c2": object})
    mixed.loc[[3, 7, 9], "c2"] = "<LOD"
    model = LogisticRegression()
    told = f"but '<LOD' in 3 of {len(X)} cells: set these to numbers"
    for rows in (mixed, mixed.astype({"c2": str}), mixed.to_numpy()):
        name = "'c2'" if isinstance(rows, pd.DataFrame) else "2"
        for search in (
            NestedSearch(model, outer=2, inner=2),
            NestedSearch(model, n_features=2, outer=2, inner=2),
            NestedSearch(raysel.SMR(), n_features=2, outer=2, inner=2),
        ):
            with pytest.raises(DataError) as refused:
                search.fit(rows, y)
            assert f"column {name} holds numbers, {told}" in str(refused.value)
            assert len(str(refused.value).split()) <= 25
    text = frame.assign(sex=np.array(["m", "f"])[np.arange(len(X)) % 2])
    with pytest.raises(DataError):
        NestedSearch(model, outer=2, inner=2).fit(text, y)

    def numbers(rows):
        return rows.replace("<LOD", 0.0).astype(float)

    own = make_pipeline(FunctionTransformer(numbers), model)
    assert (
        len(NestedSearch(own, outer=2, inner=2).fit(mixed, y).scores_) == 2
    )  # it knows what they mean
    study = {"name": "x", "solver": {"name": "fisher_score"}, "evaluation": {"n_features": [2]}}
    with pytest.raises(DataError, match=f"the data frame: column 'c2' holds numbers, {told}"):
        prepare_study(study, X=mixed, y=y)


@pytest.mark.slow
def test_a_search_with_text_is_written_and_uploaded_with_the_numbers_of_one_in_memory(
    tmp_path, monkeypatch
):
    import mlflow  # noqa: PLC0415 - takes seconds

    monkeypatch.chdir(tmp_path)
    estimator, samples, space = OWN_CELLS["frame by names"]
    alone = NestedSearch(estimator, space, outer=OUTER, inner=INNER).fit(samples, Y)
    store = f"sqlite:///{tmp_path}/mlflow.db"
    search = NestedSearch(
        estimator, space, outer=OUTER, inner=INNER, path="study", tracking=store
    ).fit(samples, Y)
    np.testing.assert_array_equal(search.scores_, alone.scores_)
    np.testing.assert_array_equal(search.predict(samples), alone.predict(samples))
    opened = raysel.open_study("study")
    assert opened.test_scores == alone.study_.test_scores
    np.testing.assert_array_equal(
        raysel.load_model("study/model.skops").predict(samples), alone.predict(samples)
    )
    np.testing.assert_array_equal(opened.model.predict(samples), alone.predict(samples))
    runs = mlflow.MlflowClient(store).search_runs(["1"])
    by_kind = {
        kind: [run for run in runs if run.data.tags["raysel.kind"] == kind]
        for kind in ("study", "refit", "trial")
    }
    assert [len(found) for found in by_kind.values()] == [1, OUTER.get_n_splits(), 2]
    assert by_kind["study"][0].data.metrics["test_accuracy"] == pytest.approx(
        alone.score_, abs=5e-5
    )
    uploaded = sorted(run.data.metrics["test_accuracy"] for run in by_kind["refit"])
    assert uploaded == pytest.approx(sorted(alone.scores_), abs=5e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"space": {"c": [1]}}, "Invalid parameter 'c'|no parameter `c`"),
        ({"space": {"C": 1}}, "space: C: 1 is one value; give a list"),
        ({"space": {"C": []}}, "space: C: the list is empty"),
        ({"space": {"C": {"uniform": [0, 1]}}}, "has no grid"),
        ({"space": 3}, "space=3: give lists of values by parameter"),
        ({"outer": 1}, "outer=1: give a number of folds of at least 2, or a splitter"),
        ({"inner": "three"}, "inner='three'"),
        ({"estimator": LinearSVC}, "is no estimator: give an object"),
        ({"estimator": SelectKBest()}, "does not predict; give n_features"),
        ({"n_features": [50]}, "evaluation.n_features: 50 exceeds the 13 features"),
        ({"metric": "acuracy"}, "did you mean `accuracy`"),
    ],
)
def test_bad_input_is_refused_before_a_fit(change, told):
    settings = {"estimator": LinearSVC(), "space": {"C": [1.0]}, "outer": 2, "inner": 2, **change}
    with pytest.raises(ConfigError, match=told):
        NestedSearch(**settings).fit(X, Y)


def expected_failures(_):
    """One of the three classes of its ten samples has one sample in a training set: the inner
    folds need two.
    """
    return {"check_fit2d_1feature": expected_failures.__doc__}


@pytest.mark.slow
@parametrize_with_checks(
    [
        NestedSearch(
            LogisticRegression(), outer=2, inner=2, n_features=[1], scoring_estimator="knn"
        ),
        NestedSearch(Ridge(), {"alpha": [0.1, 1.0]}, outer=2, inner=2, metric="r2"),
    ],
    expected_failed_checks=expected_failures,
)
def test_it_follows_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
