"""Classes and scores of classes against scikit-learn's and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from raysel.baselines.linear_projections import LDA
from raysel.baselines.linear_svm import LinearSVM
from raysel.core.errors import DataError
from raysel.numerics.classification import (
    class_scores,
    distance_differences,
    distinct_classes,
    gives_class_scores,
)
from raysel.solvers.smr.smr import SMR

LABELS = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1), st.lists(st.sampled_from("abc"), min_size=1)
)


@given(LABELS)
def test_codes_are_places_in_the_sorted_classes(labels):
    expected = sorted(set(labels))
    if len(expected) < 2:
        with pytest.raises(DataError) as refused:
            distinct_classes(labels)
        # The label as a user writes it, not NumPy's repr of it.
        assert (
            str(refused.value) == f"y holds one class only ({labels[0]}); at least two are needed."
        )
        return
    classes, codes = distinct_classes(np.array(labels))
    assert classes.tolist() == expected
    assert codes.tolist() == [expected.index(label) for label in labels]


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_it_is_the_nearest_other_class_less_the_own(n, n_classes, seed):
    nearest = np.random.default_rng(seed).integers(0, 4, (n, n_classes)).astype(float)  # with ties
    found = distance_differences(nearest)
    for row, scores in zip(nearest, found, strict=True):
        for r in range(n_classes):
            assert scores[r] == min(row[q] for q in range(n_classes) if q != r) - row[r]
        assert scores.max() == scores[row.argmin()] >= 0


def test_a_class_without_samples_is_last_and_does_not_count_for_the_others():
    found = distance_differences(np.array([[1.0, np.inf, 3.0]]))
    assert found.tolist() == [[2.0, -np.inf, -2.0]]


MODELS = [
    LinearSVM(),
    SMR(alpha=0.01),
    LDA(),
    LinearSVC(),
    RandomForestClassifier(20, random_state=0),
    SVC(),
]


def sets(n_classes: int):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return (
        rng.standard_normal((60, 5)) + 2.0 * (y[:, None] == np.arange(5)),
        np.array(list("abcd"))[y],
    )


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
    [
        LinearSVM(),
        RandomForestClassifier(9, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
    ],
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
    with pytest.raises(
        DataError,
    ):
        class_scores(SVC(decision_function_shape="ovo").fit(X, y), X, 4)
    assert gives_class_scores(KNeighborsClassifier())
    assert not gives_class_scores(object())
