"""Scores of the classes are one matrix whatever the classifier's interface, and agree with its predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from raysel.baselines.lda import LDA
from raysel.baselines.linear_svm import LinearSVM
from raysel.core.errors import DataError
from raysel.numerics.classification import class_scores, gives_class_scores
from raysel.solvers.smr.smr import SMR

MODELS = [LinearSVM(), SMR(alpha=0.01), LDA(), LinearSVC(), RandomForestClassifier(20, random_state=0), SVC()]


def sets(n_classes: int):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return rng.standard_normal((60, 5)) + 2.0 * (y[:, None] == np.arange(5)), np.array(list("abcd"))[y]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_the_largest_score_is_that_of_the_predicted_class(model, n_classes):
    X, y = sets(n_classes)
    assert gives_class_scores(model)
    scores = class_scores(model.fit(X, y), X, n_classes)
    assert scores.shape == (60, n_classes)
    top_two = np.sort(scores, axis=1)[:, -2:]
    clear = top_two[:, 1] > top_two[:, 0]
    assert clear.mean() > 0.9
    assert np.array_equal(model.classes_[scores.argmax(axis=1)][clear], model.predict(X)[clear])


@pytest.mark.parametrize(
    "model",
    [LinearSVM(), RandomForestClassifier(9, random_state=0), OneVsRestClassifier(LogisticRegression())],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_of_several_labels_each_has_a_column(model, n_labels):
    X, _ = sets(4)
    Y = (X[:, :n_labels] > 0.5).astype(int)
    scores = class_scores(model.fit(X, Y), X, n_labels)
    for label in range(n_labels):
        assert scores[Y[:, label] == 1, label].mean() > scores[Y[:, label] == 0, label].mean()


def test_scores_of_pairs_of_classes_and_models_without_are_refused():
    X, y = sets(4)
    with pytest.raises(DataError, match=r"SVC\.decision_function returned an array of shape \(60, 6\) for 4 classes"):
        class_scores(SVC(decision_function_shape="ovo").fit(X, y), X, 4)
    assert gives_class_scores(KNeighborsClassifier())
    assert not gives_class_scores(object())
