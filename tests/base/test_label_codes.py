"""A classifier that takes 0 to k - 1 only is fitted to any labels, and what it gives is of these
labels.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strict_labels import StrictClassifier, UntaggedStrict

from raysel import NestedSearch, PermutationImportance, audit, run_study
from raysel.base.label_codes import CodedClassifier, fit_to_labels
from raysel.core.errors import ConfigError

X, CODES = (values[::2] for values in load_iris(return_X_y=True))
X = X - X.mean(axis=0)
NAMES = np.array(["virginica", "setosa", "versicolor"])
LABELS = {
    "text": NAMES[CODES],
    "one is missing": CODES * 2,
}
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


MODELS = {
    "classifier": lambda model: model,
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "permutation": lambda model: PermutationImportance(model, n_folds=2, n_repeats=1),
}


@pytest.mark.parametrize(
    ("made", "labels"),
    [
        *(("classifier", labels) for labels in LABELS),
        pytest.param("pipeline", "text", marks=pytest.mark.slow),
        pytest.param("permutation", "text", marks=pytest.mark.slow),
    ],
)
def test_a_search_gives_what_one_without_the_restriction_gives(made, labels):
    y, make = LABELS[labels], MODELS[made]
    search = NestedSearch(make(StrictClassifier()), outer=FOLDS, inner=2).fit(X, y)
    expected = NestedSearch(make(LogisticRegression()), outer=FOLDS, inner=2).fit(X, y)
    assert search.scores_.tolist() == expected.scores_.tolist()
    np.testing.assert_array_equal(search.ranking_, expected.ranking_)
    np.testing.assert_array_equal(search.predict(X), expected.predict(X))
    np.testing.assert_array_equal(search.best_estimator_.predict(X), expected.predict(X))
    np.testing.assert_array_equal(search.best_estimator_.classes_, np.unique(y))
    np.testing.assert_array_equal(search.predict_proba(X), expected.predict_proba(X))
    assert search.score(X, y) == expected.score(X, y)


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_a_class_without_tags_predicts_the_labels(y):
    search = NestedSearch(UntaggedStrict(), outer=FOLDS, inner=2).fit(X, y)
    by_codes = cross_val_score(
        UntaggedStrict(), X, np.unique(y, return_inverse=True)[1], cv=FOLDS, scoring="accuracy"
    )
    np.testing.assert_allclose(search.scores_, by_codes)
    assert set(search.predict(X)) == set(y)


@pytest.mark.slow
def test_a_scoring_estimator_takes_any_labels():
    scored = [
        NestedSearch(
            LogisticRegression(), outer=FOLDS, inner=2, n_features=[2], scoring_estimator=name
        ).fit(X, LABELS["text"])
        for name in ("strict_labels.StrictClassifier", "sklearn.linear_model.LogisticRegression")
    ]
    assert scored[0].scores_.tolist() == scored[1].scores_.tolist()
    np.testing.assert_array_equal(scored[0].predict(X), scored[1].predict(X))


@pytest.mark.slow
def test_a_solver_by_name_takes_any_labels(tmp_path):
    results = [
        run_study(
            {
                "name": "labels",
                "solver": {"name": name},
                "evaluation": {"estimator": "native", "references": False},
                "cv": {"outer": 3, "inner": 2},
                "search": {"executor": "serial"},
                "tracking": {"mlflow": False},
            },
            X=X,
            y=LABELS["text"],
            output=tmp_path / name,
            progress=False,
        )
        for name in ("strict_labels.StrictClassifier", "sklearn.linear_model.LogisticRegression")
    ]
    assert results[0].test_scores == results[1].test_scores


@pytest.mark.slow
def test_an_audit_takes_any_labels_in_all_steps():
    y = LABELS["text"]

    def pipeline(model):
        return make_pipeline(SelectFromModel(model, max_features=2), model)

    found, expected = (
        audit(pipeline(model), X, y, outer=3, inner=2, n_permutations=1)
        for model in (StrictClassifier(), LogisticRegression())
    )
    assert (found.careless, found.study.test_scores) == (
        expected.careless,
        expected.study.test_scores,
    )
    assert (found.careless_permuted, found.honest_permuted) == (
        expected.careless_permuted,
        expected.honest_permuted,
    )


def test_xgboost_is_fitted_to_text():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    y = LABELS["text"]
    search = NestedSearch(model, outer=FOLDS, inner=2).fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    np.testing.assert_allclose(search.scores_, cross_val_score(model, X, codes, cv=FOLDS))
    whole = clone(model).fit(X, codes)
    np.testing.assert_array_equal(search.predict(X), np.unique(y)[whole.predict(X)])


def test_nothing_is_wrapped_that_takes_the_labels():
    assert type(fit_to_labels(KNeighborsClassifier(), X, LABELS["text"])) is KNeighborsClassifier
    assert type(fit_to_labels(StrictClassifier(), X, CODES)) is StrictClassifier
    assert type(fit_to_labels(StrictClassifier(), X, LABELS["text"])) is CodedClassifier


def test_other_refusals_keep_their_own_words():
    with pytest.raises(ValueError, match="could not convert string to float"):
        fit_to_labels(LinearRegression(), X, LABELS["text"])
    with pytest.raises(ValueError, match="'C' parameter"):
        fit_to_labels(LogisticRegression(C=-1), X, LABELS["text"])
    with pytest.raises(ConfigError) as refused:
        NestedSearch(make_pipeline(StandardScaler(), StrictClassifier(C=-1)), outer=3, inner=2).fit(
            X, CODES
        )
    assert len(str(refused.value)) < 250
