"""The winner's refit: all of the training set, none of the test set, one score."""

from __future__ import annotations

import dataclasses
import weakref
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, f1_score, get_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from small_studies import make_study, run_serially, write_digits

from raysel.base.adapter import ScikitLearnMethod
from raysel.baselines.multivariate_filters import MRMR, ReliefF
from raysel.baselines.univariate_filters import FisherScore, InformationGain, TTest
from raysel.config import config_from_dict
from raysel.data.scaling import make_scaler
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.records import FoldTrace, InnerTrace, TrialRecord
from raysel.evaluation.refit import RefitSettings, refit_winner
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.selectors import RankedSelector
from raysel.evaluation.split import Split, SplitRows
from raysel.results.scores import score_interval
from raysel.solvers.smr.smr import SMR
from raysel.study.definition import Study

KNN = Evaluation("knn", (5, 20), 3)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True, n_class=3)
    return X[:120], y[:120]


@pytest.fixture(scope="module")
def plan(digits):
    return NestedPlan.make(digits[1], outer=3, inner=2, repeats=1, groups=None, seed=2)


def solver() -> SMR:
    return SMR(shape=(8, 8), rank=2, alpha=0.1, max_iter=6, init="random", random_state=5)


def refitted(X, y, fold, evaluation=KNN, scaling="unit", method=None, kept_whole=None):
    traces = {fold.name: FoldTrace(inner=[InnerTrace([1.0], [[0.25, 0.5]])])}
    winner = TrialRecord("id", "rank=2", {"rank": 2}, "finished", traces)
    rows = SplitRows(X=X, y=y, train=fold.train, test=fold.test, groups=kept_whole)
    split = Split.fit(rows, make_scaler(scaling), name=fold.name)
    settings = RefitSettings(evaluation=evaluation, n_shown=X.shape[1])
    return refit_winner(split, winner, method or solver(), settings)


def test_the_pseudo_values_are_of_each_test_sample_or_group(digits, plan):
    """Of the accuracy they are whether a sample is predicted right, at the number of features of
    the score.
    """
    X, y = digits
    fold = plan.folds[1]
    n = len(fold.test)
    at_one = dataclasses.replace(KNN, choose_n="best")
    record, model = refitted(X, y, fold, at_one)
    right = model.predict(X[fold.test]) == y[fold.test]
    assert record.pseudo_values == pytest.approx(right.astype(float), abs=1e-9)
    both, _ = refitted(X, y, fold)
    assert np.mean(both.pseudo_values) == pytest.approx(both.test_score)
    assert len({round(value, 9) for value in both.pseudo_values}) <= 3  # right with each number
    groups = np.arange(len(y)) // 10
    of_groups, _ = refitted(X, y, fold, at_one, kept_whole=groups)
    assert len(of_groups.pseudo_values) == len(np.unique(groups[fold.test]))
    own = Evaluation("native", metric="macro_f1")
    record, model = refitted(X, y, fold, own)
    predicted, true = model.predict(X[fold.test]), y[fold.test]
    without = [
        f1_score(np.delete(true, i), np.delete(predicted, i), average="macro") for i in range(n)
    ]
    assert record.pseudo_values == pytest.approx(
        n * record.test_score - (n - 1) * np.array(without)
    )
    assert refitted(X, y, plan.final)[0].pseudo_values is None


def test_draws_of_the_training_set_have_no_pseudo_values(tmp_path):
    """Their interval is over the draws; that of repeated folds is over the test samples."""
    write_digits(tmp_path / "few.npz")
    cheap = {"solver": {"name": "fisher_score"}, "evaluation__n_features": [4]}
    for cv, computed in (
        ({"train_per_class": 5, "repeats": 2, "inner": 2, "final": False}, False),
        ({"outer": 2, "repeats": 2, "inner": 2, "final": False}, True),
    ):
        study = make_study(tmp_path / "few.npz", cv=cv, **cheap)
        _, refits, _ = run_serially(study, tmp_path / f"study-{computed}")
        records = [refit.record for refit in refits]
        assert [record.pseudo_values is not None for record in records] == [computed] * len(records)
        interval = score_interval(records, "accuracy")
        assert interval.lower is not None
        assert interval.of_draws == (not computed)


@pytest.mark.parametrize("scaling", ["unit", "zscore", "none"])
def test_it_is_the_pipeline_fitted_on_the_training_set_and_scored_on_the_test_set(
    digits, plan, scaling
):
    X, y = digits
    fold = plan.folds[1]
    record, _ = refitted(X, y, fold, scaling=scaling)
    expected = make_pipeline(make_scaler(scaling), solver()).fit(X[fold.train], y[fold.train])
    scaler, fitted = expected[0], expected[-1]
    assert record.feature_scores == fitted.scores_.tolist()
    assert record.objective == fitted.objective_path_.tolist()
    Z, Z_test = scaler.transform(X[fold.train]), scaler.transform(X[fold.test])
    scores = []
    for n in KNN.n_features:
        best = fitted.ranking_ <= n
        knn = KNeighborsClassifier(3).fit(Z[:, best], y[fold.train])
        scores.append(accuracy_score(y[fold.test], knn.predict(Z_test[:, best])))
    assert record.test_scores == pytest.approx(scores, abs=1e-12)
    assert record.test_score == pytest.approx(np.mean(scores))
    assert (record.fold, record.trial, record.params) == ("outer1", "id", {"rank": 2})
    assert record.inner_score == 0.375
    assert record.started <= record.ended
    native, native_model = refitted(X, y, fold, Evaluation("native"), scaling)
    assert np.array_equal(native_model.predict(X[fold.test]), expected.predict(X[fold.test]))
    assert native.test_scores == [
        pytest.approx(accuracy_score(y[fold.test], expected.predict(X[fold.test])))
    ]


@pytest.mark.parametrize(
    "make", [solver, InformationGain, ReliefF, MRMR, TTest, partial(FisherScore, "set")]
)
def test_scrambled_test_samples_change_the_test_scores_and_nothing_else(digits, plan, make):
    X, y = digits
    generator = np.random.default_rng(0)
    for fold in plan.outer:
        X_other, y_other = X.copy(), y.copy()
        X_other[fold.test] = 1e4 * generator.standard_normal((len(fold.test), X.shape[1]))
        y_other[fold.test] = (y[fold.test] + 1) % 3
        (here, model), (there, other) = (
            refitted(*data, fold, method=make()) for data in ((X, y), (X_other, y_other))
        )
        assert here.test_scores != there.test_scores
        kept = ("fold", "trial", "name", "params", "inner_score", "feature_scores", "objective")
        assert [getattr(here, name) for name in kept] == [getattr(there, name) for name in kept]
        parts = [[*pipeline.named_steps.values(), pipeline.method] for pipeline in (model, other)]
        for one, two in zip(*parts, strict=True):
            assert one.__dict__.keys() == two.__dict__.keys()
            fitted = {
                name: v
                for name, v in vars(one).items()
                if name.endswith("_") and name != "estimator_"
            }
            assert fitted
            for name, value in fitted.items():
                assert np.array_equal(value, getattr(two, name)), name
        assert np.array_equal(model.predict(X), other.predict(X))


def test_a_feature_that_is_constant_before_scaling_is_never_selected(digits, plan):
    """Rows of unit length make a constant pixel vary with the norm of the image, and then it has
    a score.
    """
    X, y = digits
    X = X.copy()
    X[:, 0] = 16.0
    fold = plan.folds[0]
    record, model = refitted(X, y, fold, Evaluation("knn", (5, 64)), "row_unit")
    assert model.method.scores_[0] > 0
    constant = np.ptp(X[fold.train], axis=0) == 0
    assert constant[0]
    assert record.feature_scores == np.where(constant, 0.0, model.method.scores_).tolist()
    whole = RankedSelector.of(model.method, np.array(record.feature_scores), 64)
    assert not (whole.get_support() & constant).any()
    assert record.n_features == 64
    np.testing.assert_array_equal(model.selector.get_support(), whole.get_support())


def test_the_recorded_counts_and_training_scores_are_those_of_the_predictions(digits, plan):
    X, y = digits
    for fold in plan.folds:
        record, model = refitted(X, y, fold, Evaluation("knn", (5, 20), 3))
        assert bool(record.confusion) == (fold.name != "final")
        if record.confusion:
            true, predicted = y[fold.test], model.predict(X[fold.test])
            counts = [[np.sum((true == i) & (predicted == j)) for j in range(3)] for i in range(3)]
            assert record.confusion == counts
        assert record.training_scores[1] == np.mean(model.predict(X[fold.train]) == y[fold.train])
        nearest, _ = refitted(X, y, fold, Evaluation("knn", (5, 20), 1))
        assert nearest.training_scores[1] == 1.0  # each sample is its own neighbour


def test_the_final_fold_trains_on_everything_and_has_no_test_score(digits, plan):
    X, y = digits
    record, model = refitted(X, y, plan.final)
    assert record.test_scores == []
    assert record.test_score is None
    again = clone(model).fit(X, y)
    assert record.feature_scores == again.selector.scores_.tolist()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_references_hold_one_inner_split_at_a_time(digits, plan):
    """Those of a method's own predictions choose by the inner folds whether they are scaled."""
    X, y = digits
    fold, held = plan.folds[0], []

    def split(train, test):
        rows = SplitRows(X=X, y=y, train=train, test=test)
        return Split.fit(rows, make_scaler("none"), name=fold.name)

    def inner():
        for i in fold.inner:
            assert [ref() for ref in held] == [None] * len(held)
            one = split(i.train, i.validation).with_test()
            held.append(weakref.ref(one))
            yield one
            del one

    evaluation = Evaluation("native", references=True, unscaled=True)
    traces = {fold.name: FoldTrace(inner=[InnerTrace([1.0], [[0.5]])])}
    winner = TrialRecord("id", "rank=2", {"rank": 2}, "finished", traces)
    settings = RefitSettings(evaluation=evaluation, n_shown=5)
    outer = split(fold.train, fold.test)
    record, _ = refit_winner(outer, winner, solver(), settings, inner())
    assert len(held) == len(fold.inner)
    assert record.reference_settings["all features"]


def test_the_data_are_only_read(digits, plan):
    X, y = (array.copy() for array in digits)
    X.flags.writeable = y.flags.writeable = False
    record, _ = refitted(X, y, plan.folds[0])
    assert record.feature_scores == refitted(*digits, plan.folds[0])[0].feature_scores


def test_references_are_of_the_samples_with_a_label_as_the_score_of_the_model_is(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 4)) + 3 * np.eye(3, 4)[y]
    y[rng.random(90) < 0.4] = -1
    np.savez(tmp_path / "data.npz", X=X, y=y)
    config = {
        "name": "few",
        "dataset": {"path": str(tmp_path / "data.npz"), "scaling": "none"},
        "solver": {"name": "semisupervised_mtda", "params": {"unlabelled": -1}},
        "cv": {"outer": 2, "inner": 2, "final": False},
    }
    study = Study.prepare(config_from_dict(config))
    _, refits, _ = run_serially(study, tmp_path / "run")
    for fold, refit in zip(study.plan.folds, refits, strict=True):
        train, test = (part[y[part] >= 0] for part in (fold.train, fold.test))
        nearest = KNeighborsClassifier(1).fit(X[train], y[train])
        assert refit.record.references["all features"] == pytest.approx(
            [nearest.score(X[test], y[test])]
        )


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc_ovr"])
def test_training_samples_are_predicted_once_and_no_model_keeps_it(digits, plan, metric):
    class Counting(KNeighborsClassifier):
        sizes: ClassVar = []

        def predict(self, X):
            type(self).sizes.append(len(X))
            return super().predict(X)

    X, y = digits
    fold, method = plan.outer[0], ScikitLearnMethod(Counting(3))
    record, model = refitted(X, y, fold, Evaluation("native", metric=metric), method=method)
    assert Counting.sizes.count(len(fold.train)) == 1
    assert "_training_prediction" not in vars(model.method)
    train = fold.train
    expected = get_scorer(metric)(model, X[train], y[train])
    assert record.training_scores == pytest.approx([expected])
    assert record.objective == [np.mean(model.predict(X[train]) != y[train])]
