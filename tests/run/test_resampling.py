"""Steps of imbalanced-learn that draw, make or drop samples: within the training samples, and in
the careless audit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from imblearn import FunctionSampler
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import Pipeline, make_pipeline
from imblearn.under_sampling import EditedNearestNeighbours, RandomUnderSampler
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import raysel
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, StudyError
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.splitters import split
from raysel.study.definition import Study

Y = (np.arange(80) % 4 == 0).astype(int)
FAST: dict[str, Any] = {"outer": 3, "inner": 2}


def noise(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((80, 6))


class Recorder(ClassifierMixin, BaseEstimator):
    """Classifier that keeps the samples of all fits and predictions."""

    fitted: ClassVar[list[np.ndarray]] = []
    tested: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fitted.append(np.array(X))
        return self

    def predict(self, X):
        self.tested.append(np.array(X))
        return np.full(len(X), self.classes_[0])


def rows_of(X: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(X)}


@pytest.mark.parametrize("sampler", [RandomOverSampler(), RandomUnderSampler()])
def test_resampling_draws_from_the_training_samples_and_leaves_the_test_samples_as_they_are(
    sampler,
):
    X = noise()
    Recorder.fitted.clear()
    Recorder.tested.clear()
    search = raysel.NestedSearch(make_pipeline(sampler, Recorder()), **FAST).fit(X, Y)
    folds = search.study_.refits
    assert len(folds) == 4
    training = [X[train] for train in search.fold_results_["train"]]
    tests = [X[test] for test in search.fold_results_["test"]]
    for train, test in zip(training, tests, strict=True):
        inside = [fit for fit in Recorder.fitted if rows_of(fit) <= rows_of(train)]
        assert inside
        # Each prediction of test samples is of all of them, in their order.
        assert any(np.array_equal(test, predicted) for predicted in Recorder.tested)
    drawn = [fit for fit in Recorder.fitted if len(fit) > 20]
    for fit in drawn:  # as many samples of each class, none of which a fold's test set has alone
        labels = [int(Y[np.flatnonzero((row == X).all(axis=1))[0]]) for row in fit]
        assert labels.count(0) == labels.count(1)
    for predicted in Recorder.tested:
        assert len(rows_of(predicted)) == len(predicted)  # no copies among them


@pytest.mark.parametrize(
    ("steps", "metric"),
    [
        ((SMOTE(random_state=0),), "balanced_accuracy"),
        ((StandardScaler(), RandomUnderSampler(random_state=0)), "accuracy"),
        ((EditedNearestNeighbours(), StandardScaler()), "average_precision"),
    ],
)
def test_the_careless_score_is_of_folds_of_the_resampled_samples(steps, metric):
    X = noise(1)
    found = raysel.audit(
        make_pipeline(*steps, KNeighborsClassifier()),
        X,
        Y,
        metric=metric,
        n_permutations=0,
        **FAST,
    )
    made, labels = X, Y
    for step in steps:
        if hasattr(step, "fit_resample"):
            made, labels = step.fit_resample(made, labels)
        else:
            made = step.fit_transform(made)
    n_folds = min(3, np.bincount(labels).min())
    state = derived_seed(0, "outer split", 0)
    scores = [
        get_scorer(metric)(
            KNeighborsClassifier().fit(made[train], labels[train]), made[test], labels[test]
        )
        for train, test in split(labels, n_folds, groups=None, random_state=state, where="outer")
    ]
    assert found.careless == pytest.approx(np.mean(scores), abs=1e-12)
    assert found.n_divided == len(labels) != len(Y)
    assert f"divide {len(labels)} samples, the honest ones the 80" in repr(found)
    assert ("class shares" in repr(found)) == (metric != "balanced_accuracy")


def test_resampling_before_the_folds_does_harm_and_within_them_none():
    """Synthetic samples lie between neighbours, which then are on both sides of the folds."""
    pipeline = make_pipeline(SMOTE(random_state=0), KNeighborsClassifier())
    found = raysel.audit(pipeline, noise(2), Y, metric="balanced_accuracy", **FAST)
    assert found.harms
    assert np.mean(found.invented) > 0.05
    assert np.mean(found.honest_permuted) == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_texts_as_labels_and_a_pipeline_as_the_last_step_are_resampled_alike():
    X, settings = noise(3), {"metric": "balanced_accuracy", "n_permutations": 1, **FAST}
    last = make_pipeline(SMOTE(random_state=0), KNeighborsClassifier())
    numbers = raysel.audit(
        make_pipeline(StandardScaler(), *(s for _, s in last.steps)), X, Y, **settings
    )
    texts = raysel.audit(
        plain_pipeline(StandardScaler(), last), X, np.where(Y == 1, "ill", "well"), **settings
    )
    assert texts.n_divided == numbers.n_divided == 120
    # Text is in another order than the numbers, so that SMOTE's draws, not the protocol, may
    # differ.
    assert texts.careless == pytest.approx(numbers.careless, abs=0.1)


def test_weights_behind_a_resampling_step_rank_the_features():
    X = noise(4)
    X[:, 2] += 3 * Y
    pipeline = make_pipeline(SMOTE(random_state=0), StandardScaler(), LinearSVC(random_state=0))
    search = raysel.NestedSearch(pipeline, metric="balanced_accuracy", **FAST).fit(X, Y)
    assert search.ranking_[2] == 1
    scored = raysel.NestedSearch(pipeline, n_features=[1, 3], scoring_estimator="knn", **FAST).fit(
        X, Y
    )
    assert scored.ranking_[2] == 1
    permuted = raysel.PermutationImportance(pipeline, n_repeats=2).fit(X, Y)
    assert permuted.feature_importances_.argmax() == 2


def failing(X, y):
    first = (noise()[0] == X).all(axis=1)
    if first.any() and y[first] != Y[0]:
        raise ValueError("this sampler takes no other labels")
    return X, y


def test_a_permutation_that_fails_is_left_out_and_said():
    pipeline = make_pipeline(FunctionSampler(func=failing), LogisticRegression())
    found = raysel.audit(pipeline, noise(), Y, n_permutations=5, **FAST)
    assert 0 < found.n_failed < 5
    assert len(found.careless_permuted) == len(found.honest_permuted) == 5 - found.n_failed
    assert f"{found.n_failed} permutation" in repr(found)
    assert "this sampler takes no other labels" in repr(found)


def test_a_step_that_fails_on_all_samples_is_named():
    def few_only(X, y):
        if len(y) == 80:
            raise ValueError("too many samples")
        return X, y

    pipeline = make_pipeline(FunctionSampler(func=few_only), LogisticRegression())
    with pytest.raises(StudyError, match=r"careless score of .* ValueError: too many samples"):
        raysel.audit(pipeline, noise(), Y, n_permutations=0, **FAST)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (plain_pipeline(SMOTE(), LogisticRegression()), "use imblearn.pipeline.Pipeline"),
        (SMOTE(), "SMOTE resamples, and neither predicts nor ranks"),
        (Pipeline([("scale", StandardScaler()), ("draw", SMOTE())]), "put it before a classifier"),
    ],
)
def test_a_resampling_step_in_a_place_that_cannot_resample_is_refused_with_the_mend(
    estimator, words
):
    for ask in (raysel.audit, lambda *a: raysel.NestedSearch(a[0]).fit(*a[1:])):
        with pytest.raises(ConfigError, match=words):
            ask(estimator, noise(), Y)


def test_a_preparation_cannot_resample():
    config = config_from_dict(
        {
            "name": "prepared",
            "dataset": {"source": "wine", "prepare": ["imblearn.over_sampling.SMOTE"]},
            "solver": {"name": "fisher_score"},
            "evaluation": {"estimator": "knn", "n_features": [2]},
            "search": {"executor": "serial"},
        }
    )
    with pytest.raises(ConfigError, match=r"SMOTE resamples, and dataset\.prepare changes columns"):
        Study.prepare(config)
