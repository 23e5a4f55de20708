"""The model of a study: names of its columns, output as a table, and its file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from method_cases import QUICK
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from splits import scaled_split

from raysel.base.models import load_model, save_model, untrusted_types
from raysel.base.registry import OWN, build_solver, solver_class
from raysel.baselines.nearest_neighbours import NearestNeighbor
from raysel.baselines.univariate_filters import Variance
from raysel.core.errors import ConfigError
from raysel.data.layouts import Matrix
from raysel.data.scaling import make_scaler
from raysel.evaluation.fold_models import FoldModels
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.selectors import RankedClassifier, RankedSelector
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR

NAMES = [f"feature {i}" for i in range(30)]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:150], y[:150]


def models_of(solver, X, y, scaler, evaluation, n):
    split = scaled_split(X, y, X[:0], y[:0], scaler=scaler)
    return FoldModels(split=split, solver=solver, evaluation=evaluation, n_shown=n)


def model_of(classifier="knn", scaling="zscore", n=5, solver=None, names=NAMES, y=None):
    X, labels = cancer()
    y = labels if y is None else y
    scaler = make_scaler(scaling)
    Z = scaler.fit_transform(X)
    solver = (solver or SMR(shape=(5, 6), alpha=0.1, max_iter=5)).fit(Z, y)
    evaluation = Evaluation(classifier, () if classifier == "native" else (n, 10), 1)
    return models_of(solver, Z, y, scaler, evaluation, n).pipeline(
        None if classifier == "native" else n, names
    )


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*feature names.*")
        yield


@pytest.mark.parametrize("classifier", ["knn", "linear_svm", "native"])
@pytest.mark.parametrize("scaling", ["unit", "zscore", "none"])
def test_arrays_go_by_position_and_tables_by_name(classifier, scaling):
    X, _ = cancer()
    model = model_of(classifier, scaling)
    assert list(model.named_steps) == [
        "scaler",
        *(["selector"] * (classifier != "native")),
        "classifier",
    ]
    assert type(model.selector) is (RankedClassifier if classifier == "native" else RankedSelector)
    frame = pd.DataFrame(X, columns=NAMES)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 30
    np.testing.assert_array_equal(model.predict(frame), model.predict(X))
    np.testing.assert_array_equal(model.decision_function(frame), model.decision_function(X))
    order = np.argsort(-model.method.scores_, kind="stable")[:5]
    scaled = model.named_steps["scaler"].transform(X)[:, np.sort(order)]
    np.testing.assert_array_equal(model.transform(frame), scaled)
    assert model.get_feature_names_out().tolist() == [NAMES[i] for i in np.sort(order)]
    for wrong, message in (
        (frame[NAMES[::-1]], "same order"),
        (frame.rename(columns={NAMES[3]: "x"}), "feature 3"),
    ):
        for method in (model.predict, model.transform, model.decision_function):
            with pytest.raises(ValueError, match=message):
                method(wrong)
    with pytest.raises(ValueError, match="29 features"):
        model.predict(X[:, :29])


@pytest.mark.parametrize("classifier", ["knn", "native"])
def test_tables_come_out_on_request_and_change_no_prediction(classifier):
    X, _ = cancer()
    model = model_of(classifier)
    expected, values = model.predict(X), model.transform(X)
    with sklearn.config_context(transform_output="pandas"):
        assert list(model.transform(X)) == model.get_feature_names_out().tolist()
        np.testing.assert_array_equal(model.predict(X), expected)
    model.set_output(transform="pandas")
    table = model.transform(pd.DataFrame(X, columns=NAMES, index=range(7, 157)))
    assert table.index[0] == 7
    np.testing.assert_array_equal(table.to_numpy(), values)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(clone(model).fit(X, cancer()[1]).transform(X), values)


@pytest.mark.parametrize("classifier", ["knn", "linear_svm", "native"])
def test_a_clone_fitted_to_the_same_samples_is_the_same_model(classifier):
    X, y = cancer()
    model = model_of(classifier)
    again = clone(model).fit(pd.DataFrame(X, columns=NAMES), y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.feature_names_in_.tolist() == NAMES
    unnamed = again.fit(X, y)
    assert not hasattr(unnamed, "feature_names_in_")
    assert unnamed.get_feature_names_out().tolist() == [
        f"x{i}" for i in unnamed.selector.get_support(indices=True)
    ]


def test_a_method_without_scores_has_no_features_to_transform_to():
    X, y = cancer()
    model = model_of("native", solver=NearestNeighbor())
    assert model.score(X, y) == 1.0
    assert model.method is model.steps[-1][1]
    with pytest.raises(AttributeError, match="gives no feature scores"):
        model.transform(X)
    with pytest.raises(ConfigError, match="cannot be left out"):
        model.without_method()


def test_where_nothing_is_selected_the_most_frequent_class_is_predicted():
    X, y = cancer()
    solver = Variance().fit(X, y)
    solver.scores_ = np.zeros(30)
    solver.fit = lambda *_: solver
    models = models_of(solver, X, y, make_scaler("none").fit(X), Evaluation("knn", (2, 4)), 2)
    model = models.pipeline(2, NAMES)
    assert model.score(X, y) == max(np.bincount(y)) / len(y)
    assert model.transform(X).shape == (150, 0)


INDICATOR = np.stack([cancer()[1], 1 - cancer()[1], np.zeros(150, dtype=int)], axis=1)


@pytest.mark.parametrize("y", [None, INDICATOR], ids=["labels", "indicator"])
@pytest.mark.parametrize("classifier", ["knn", "linear_svm"])
def test_every_kind_is_stored_and_predicts_the_same(classifier, y, tmp_path):
    X, _ = cancer()
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Label .* is present|Label not"
        )  # a label that no sample has
        model = model_of(classifier, solver=SMML(tol=1e-3), y=y)
    for kept in (model, model.without_method()):
        assert untrusted_types(kept) == []
        again = load_model(save_model(kept, tmp_path / "model.skops"))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
        with pytest.raises(ValueError, match="same order"):
            again.predict(pd.DataFrame(X, columns=NAMES)[NAMES[::-1]])
    assert again.method is None
    with pytest.raises(ConfigError):
        clone(again).fit(X, cancer()[1])


@pytest.mark.parametrize("name", [name for name in OWN if name in QUICK])
def test_the_model_of_a_method_is_stored(name, tmp_path):
    X, y = load_iris(return_X_y=True)
    few = {"max_iter": 3} if "max_iter" in solver_class(name)().get_params() else {}
    scaler = make_scaler("unit")
    Z = scaler.fit_transform(X[::2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = build_solver(name, Matrix(2, 2), few, random_state=0).fit(Z, y[::2])
    native = Evaluation("native")
    kinds = [Evaluation("knn", (2,))] if hasattr(solver, "scores_") else []
    for evaluation in [*kinds, *([native] if hasattr(solver, "predict") else [])]:
        n = 2 if evaluation.n_features else None
        models = models_of(solver, Z, y[::2], scaler, evaluation, 2)
        model = models.pipeline(n, list("abcd"))
        assert untrusted_types(model) == []
        again = load_model(save_model(model, tmp_path / "model.skops"))
        assert type(again) is FeaturePipeline
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert type(again.method) is type(solver)
