"""Columns of labels and predictions: those of probabilities, decisions, classes, quantities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import Perceptron, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from raysel.evaluation.soft_labels import SoftLabels

X = np.random.default_rng(0).standard_normal((80, 4))


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
@pytest.mark.parametrize("model", [GaussianNB(), LinearSVC(), Perceptron()])
def test_columns_of_classes_are_shares_whose_largest_is_the_prediction(model, classes):
    y = np.array(classes)[np.random.default_rng(1).integers(len(classes), size=80)]
    model.fit(X, y)
    found = SoftLabels.of(model, y)
    shares = found.predict(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    np.testing.assert_array_equal(model.classes_[found.true(y).argmax(axis=1)], y)


def test_a_classifier_without_scores_has_its_predicted_classes():
    y = np.arange(80) % 3
    model = VotingClassifier([("nb", GaussianNB()), ("svm", LinearSVC())]).fit(X, y)
    expected = (model.predict(X)[:, None] == np.arange(3)).astype(float)
    np.testing.assert_array_equal(SoftLabels.of(model, y).predict(X), expected)


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(10, random_state=0), KNeighborsClassifier()]
)
def test_several_labels_have_a_column_each(model):
    y = (np.random.default_rng(1).random((80, 3)) < 0.5).astype(np.int8)
    model.fit(X, y)
    shares = SoftLabels.of(model, y).predict(X)
    assert shares.shape == (80, 3)
    np.testing.assert_array_equal(shares > 0.5, model.predict(X) > 0.5)


def test_quantities_have_one_scale():
    y = X[:, :2] * [1.0, 1000.0]
    found = SoftLabels.of(Ridge().fit(X, y), y)
    np.testing.assert_allclose(found.true(y).std(axis=0), 1.0)
    errors = ((found.predict(X) - found.true(y)) ** 2).mean(axis=0)
    assert errors.max() < 2 * errors.min() + 0.01
