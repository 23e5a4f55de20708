"""Steps in which the configurations of a Pipeline agree are fitted once, with the same numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    f_regression,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from raysel.base.adapter import ScikitLearnMethod
from raysel.data.layouts import Tensor
from raysel.data.scaling import make_scaler
from raysel.evaluation.shared_steps import fit_shared, flat_steps
from raysel.evaluation.split import Split, SplitRows


class CountingScaler(TransformerMixin, BaseEstimator):
    """Scaler that counts the fits of all of its clones."""

    n_fits = 0

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def fit(self, X, y=None):
        type(self).n_fits += 1
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return (X - self.mean_) * self.factor


class InPlace(CountingScaler):
    """Transformer that writes into what it gets."""

    def transform(self, X):
        X *= self.factor
        return X


#: Shapes of the samples that `variances` was called with.
CALLS = []


def variances(X, y):  # noqa: ARG001
    CALLS.append(X.shape)
    return X.var(axis=0)


def split_of(X, y):
    rows = np.random.default_rng(0).permutation(len(y))
    cut = len(y) // 3
    source = SplitRows(X=np.ascontiguousarray(X), y=y, train=rows[cut:], test=rows[:cut])
    return Split.fit(source, make_scaler("none", Tensor((X.shape[1],)))).with_test()


WINE, DIABETES = load_wine(return_X_y=True), load_diabetes(return_X_y=True)
SVM = LinearSVC(random_state=0)
#: Data, Pipeline and values by parameter.
CASES = {
    "numbers of features": (
        WINE,
        make_pipeline(StandardScaler(), SelectKBest(), SVM),
        {"selectkbest__k": [2, 5, "all"], "linearsvc__C": [0.01, 1.0]},
    ),
    "nested pipelines": (
        WINE,
        make_pipeline(make_pipeline(MinMaxScaler(), PCA(random_state=0)), make_pipeline(SVC())),
        {"pipeline-1__pca__n_components": [2, 5], "pipeline-2__svc__C": [0.1, 1.0]},
    ),
    "steps that are left out": (
        WINE,
        Pipeline([("a", StandardScaler()), ("b", "passthrough"), ("c", SVM)]),
        {"b": ["passthrough", SelectPercentile(percentile=50)], "c__C": [0.1, 1.0]},
    ),
    "columns": (
        WINE,
        make_pipeline(
            ColumnTransformer([("few", StandardScaler(), [0, 1]), ("others", "passthrough", [5])]),
            SVC(),
        ),
        {"columntransformer__few__with_mean": [True, False], "svc__C": [0.1, 1.0]},
    ),
    "pipelines of columns": (
        WINE,
        make_pipeline(
            ColumnTransformer(
                [
                    ("some", make_pipeline(MinMaxScaler(), SelectKBest()), slice(0, 8)),
                    ("others", SelectPercentile(), [8, 9, 10, 11]),
                ],
                remainder="passthrough",
            ),
            SVC(),
        ),
        {
            "columntransformer__some__selectkbest__k": [2, 5],
            "columntransformer__others__percentile": [30, 60],
            "svc__C": [0.1, 1.0],
        },
    ),
    "weights of a model": (
        WINE,
        make_pipeline(SelectFromModel(RandomForestClassifier(10, random_state=0)), SVM),
        {"selectfrommodel__threshold": ["mean", 0.01], "selectfrommodel__max_features": [2, 4]},
    ),
    "other seeds": (
        WINE,
        make_pipeline(SelectFromModel(RandomForestClassifier(10)), SVM),
        {"selectfrommodel__estimator__random_state": [0, 1], "linearsvc__C": [0.1, 1.0]},
    ),
    "several quantities": (
        (DIABETES[0], np.stack([DIABETES[1], 2 - DIABETES[1]], axis=1)),
        make_pipeline(PCA(random_state=0), Ridge()),
        {"pca__n_components": [2, 5], "ridge__alpha": [0.1, 1.0, 10.0]},
    ),
    "quantities": (
        DIABETES,
        make_pipeline(SelectKBest(f_regression), Ridge()),
        {"selectkbest__k": [2, 5], "ridge__alpha": [0.1, 1.0]},
    ),
    **{
        type(selector).__name__: (WINE, make_pipeline(selector, SVM), space)
        for selector, space in [
            (SelectFpr(), {"selectfpr__alpha": [1e-9, 1e-3]}),
            (SelectFdr(), {"selectfdr__alpha": [1e-9, 1e-3]}),
            (SelectFwe(), {"selectfwe__alpha": [1e-9, 1e-3]}),
            (GenericUnivariateSelect(), {"genericunivariateselect__param": [10, 50]}),
        ]
    },
}


def methods_of(pipeline, space):
    grid = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    made = []
    for params in grid:
        own = {name: clone(value, safe=False) for name, value in params.items()}
        made.append(ScikitLearnMethod(clone(pipeline).set_params(**own)))
    return made


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_those_of_fits_from_nothing(case):
    (X, y), pipeline, space = CASES[case]
    split, methods = split_of(X, y), methods_of(pipeline, space)
    seen = []
    for position, fit in fit_shared(methods, split):
        method, own = fit()
        whole = clone(methods[position].estimator).fit(split.X_train, split.y_train)
        found, expected = method.predict(own.X_test), whole.predict(split.X_test)
        if "quantities" in case:  # one product of the samples for all values of alpha
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found, expected)
        if hasattr(whole, "decision_function"):
            scores = method.decision_function(own.X_test)
            np.testing.assert_array_equal(scores, whole.decision_function(split.X_test))
        seen.append(position)
    assert sorted(seen) == list(range(len(methods)))


def test_linear_svms_of_few_samples_do_not_depend_on_what_is_fitted_beside_them():
    drawn, y = np.random.default_rng(0), np.arange(60) % 3
    X = drawn.standard_normal((60, 500)) + (drawn.standard_normal((3, 500)) / 5)[y]
    split, pipeline = split_of(X, y), make_pipeline(StandardScaler(), SVM)
    methods = methods_of(pipeline, {"linearsvc__C": [0.001, 0.1, 10.0]})
    for position, fit in fit_shared(methods, split):
        together, own = fit()
        ((_, fit_alone),) = fit_shared([methods[position]], split)
        scores = together.decision_function(own.X_test)
        np.testing.assert_array_equal(scores, fit_alone()[0].decision_function(own.X_test))
        whole = clone(methods[position].estimator).fit(split.X_train, split.y_train)
        np.testing.assert_allclose(scores, whole.decision_function(split.X_test), rtol=1e-9)


def test_what_is_equal_is_fitted_once():
    split = split_of(*WINE)
    pipeline = make_pipeline(CountingScaler(), SelectKBest(), SVM)
    space = {
        "selectkbest__k": [2, 3],
        "countingscaler__factor": [1.0, 2.0],
        "linearsvc__C": [0.1, 1.0, 10.0],
    }
    before = CountingScaler.n_fits
    for _, fit in fit_shared(methods_of(pipeline, space), split):
        fit()
    assert CountingScaler.n_fits - before == 2


def test_scores_of_features_are_computed_once():
    CALLS.clear()
    pipeline = make_pipeline(SelectKBest(variances), SVM)
    space = {"selectkbest__k": [2, 3, 4]}
    for _, fit in fit_shared(methods_of(pipeline, space), split_of(*WINE)):
        fit()
    assert len(CALLS) == 1


def test_what_is_equal_in_columns_is_fitted_once():
    steps = make_pipeline(CountingScaler(), SelectKBest(variances))
    columns = ColumnTransformer([("some", steps, [0, 1, 2, 3]), ("others", steps, [5, 6, 7])])
    space = {
        "columntransformer__some__selectkbest__k": [2, 3],
        "columntransformer__others__selectkbest__k": [1, 2],
        "linearsvc__C": [0.1, 1.0],
    }
    CountingScaler.n_fits = 0
    CALLS.clear()
    split = split_of(*WINE)
    for _, fit in fit_shared(methods_of(make_pipeline(columns, SVM), space), split):
        fit()
    assert CountingScaler.n_fits == 2
    assert [(len(split.y_train), 4), (len(split.y_train), 3)] == CALLS


def test_columns_as_frames_are_fitted_from_nothing():
    columns = ColumnTransformer([("all", StandardScaler(), [0, 1])]).set_output(transform="pandas")
    split = split_of(*WINE)
    (method,) = methods_of(make_pipeline(columns, SVM), {"linearsvc__C": [0.1]})
    ((_, fit),) = fit_shared([method], split)
    fitted, own = fit()
    whole = clone(method.estimator).fit(split.X_train, split.y_train)
    np.testing.assert_array_equal(fitted.predict(own.X_test), whole.predict(split.X_test))


def test_a_step_that_writes_into_its_samples_changes_no_other_fit():
    split = split_of(*WINE)
    before = split.X_train.copy(), split.X_test.copy()
    pipeline = make_pipeline(StandardScaler(), InPlace(), SVM)
    space = {"inplace__factor": [2.0, 3.0], "linearsvc__C": [0.1, 1.0]}
    methods = methods_of(pipeline, space)
    for position, fit in fit_shared(methods, split):
        method, own = fit()
        whole = clone(methods[position].estimator).fit(split.X_train, split.y_train)
        np.testing.assert_array_equal(method.predict(own.X_test), whole.predict(split.X_test))
    np.testing.assert_array_equal(split.X_train, before[0])
    np.testing.assert_array_equal(split.X_test, before[1])


def test_what_fails_fails_alone_and_as_it_does_from_nothing():
    split = split_of(*WINE)
    pipeline = make_pipeline(StandardScaler(), PCA(), SVM)
    methods = methods_of(pipeline, {"pca__n_components": [2, 99], "linearsvc__C": [0.1, 1.0]})
    ended = {}
    for position, fit in fit_shared(methods, split):
        try:
            fit()
            ended[position] = ""
        except ValueError as error:
            ended[position] = str(error)
    assert [bool(ended[i]) for i in range(4)] == [False, False, True, True]
    with pytest.raises(ValueError, match="n_components") as raised:
        clone(methods[2].estimator).fit(split.X_train, split.y_train)
    assert ended[2] == str(raised.value)


def test_an_end_without_convergence_is_known_of_every_configuration():
    split = split_of(*WINE)
    weak = SelectFromModel(LogisticRegression(max_iter=1))
    space = {"selectfrommodel__max_features": [2, 4], "svc__C": [0.1, 1.0]}
    found = [
        fit()[0].converged_
        for _, fit in fit_shared(methods_of(make_pipeline(weak, SVC()), space), split)
    ]
    assert found == [False] * 4


def test_pipelines_of_other_kinds_are_one_step(tmp_path):
    class Own(Pipeline):
        pass

    assert len(flat_steps(Own([("a", StandardScaler()), ("b", SVM)]))) == 1
    assert len(flat_steps(make_pipeline(StandardScaler(), SVM, memory=str(tmp_path)))) == 1
    assert len(flat_steps(make_pipeline(StandardScaler(), make_pipeline(PCA(), SVM)))) == 3
