"""Coefficients of linear models, and what larger values speak for, against the samples
themselves.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from raysel.results.coefficients import Coefficients, linear_coefficients

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4))


def test_two_classes_have_the_direction_of_their_means():
    y = np.where(X[:, 0] - X[:, 1] + 0.1 * RNG.standard_normal(300) > 0, "ill", "fit")
    values, classes = linear_coefficients(
        make_pipeline(StandardScaler(), LogisticRegression().fit(X, y)), 4
    )
    assert values.shape == (1, 4)
    found = Coefficients(values, list(classes), of_quantities=False).directions()
    higher = X[y == "ill"].mean(axis=0) > X[y == "fit"].mean(axis=0)
    assert (
        found[:2]
        == [f"for {'ill' if up else 'fit'}" for up in higher[:2]]
        == ["for ill", "for fit"]
    )


def test_of_several_classes_the_one_that_a_feature_tells_most_of():
    y = np.where(X[:, 0] > 1, "a", np.where(X[:, 1] < -1, "b", "c"))
    model = LogisticRegression().fit(X, y)
    found = Coefficients(model.coef_, list(model.classes_), of_quantities=False).directions()
    assert found[:2] == ["for a", "against b"]


@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_quantity_grows_or_falls(n_targets):
    Y = np.column_stack([X[:, 0] - 2 * X[:, 1], 3 * X[:, 1] + X[:, 2]])[:, :n_targets]
    coef = LinearRegression().fit(X, Y).coef_.reshape(n_targets, 4)
    names = ["y1", "y2"][:n_targets]
    found = Coefficients(coef, names, of_quantities=True).directions()
    wanted = ["larger", "smaller"] if n_targets == 1 else ["larger y1", "larger y2"]
    assert found[:2] == wanted


def test_a_feature_without_weight_has_no_direction_and_a_filter_no_coefficients():
    found = Coefficients(np.array([[0.0, -1.0]]), ["a", "b"], of_quantities=False).directions()
    assert found == ["", "for a"]
    model = make_pipeline(StandardScaler(), SelectKBest(k=2)).fit(X, X[:, 0] > 0)
    assert linear_coefficients(model, 4) is None
