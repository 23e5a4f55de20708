"""Classes in scikit-learn's style as methods of raysel: their own numbers, ranked where they can
be.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from raysel.base.adapter import ScikitLearnMethod, wrapped_capabilities
from raysel.base.feature_scores import feature_scores
from raysel.core.errors import DataError


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:200], y[:200]


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LinearSVC(random_state=0, C=0.01), lambda e: np.sqrt((e.coef_**2).sum(axis=0))),
        (ExtraTreesClassifier(n_estimators=5, random_state=0), lambda e: e.feature_importances_),
        (SelectKBest(k=3), lambda e: np.nan_to_num(e.scores_)),
    ],
)
def test_scores_and_predictions_are_the_estimator_s(estimator, expected, digits):
    X, y = digits
    ours, theirs = ScikitLearnMethod(estimator).fit(X, y), estimator.fit(X, y)
    constant = np.ptp(X, axis=0) == 0
    assert constant.any()
    np.testing.assert_array_equal(ours.scores_, np.where(constant, 0, expected(theirs)))
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        assert hasattr(ours, name) == hasattr(theirs, name)
        if hasattr(theirs, name):
            np.testing.assert_array_equal(getattr(ours, name)(X), getattr(theirs, name)(X))
    error = 1 - theirs.score(X, y) if hasattr(theirs, "predict") else 0.0
    assert ours.objective_path_.tolist() == [pytest.approx(error, abs=1e-12)]


def test_undefined_and_infinite_scores_are_made_finite():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack(
        [X, np.ones(150), y == 0]
    )  # constant: NaN; without scatter within classes: infinite
    with warnings.catch_warnings(action="ignore"):
        plain, _ = f_classif(X, y)
        fitted = ScikitLearnMethod(SelectKBest(k=2)).fit(X, y)
    assert np.isnan(plain[4])
    assert np.isinf(plain[5])
    assert fitted.scores_[4] == 0
    assert fitted.scores_[5] == plain[:4].max()
    np.testing.assert_array_equal(fitted.scores_[:4], plain[:4])


def test_a_refit_without_ranking_keeps_no_former_scores(digits):
    adapter = ScikitLearnMethod(SVC(kernel="linear")).fit(*digits)
    coef = adapter.estimator_.coef_
    np.testing.assert_allclose(adapter.scores_, np.linalg.norm(coef, axis=0))
    adapter.set_params(estimator__kernel="rbf").fit(*digits)
    assert not hasattr(adapter, "scores_")
    assert not hasattr(adapter, "ranking_")


def test_scores_of_another_shape_are_not_used():
    X, y = load_iris(return_X_y=True)
    fitted = LogisticRegressionCV(
        Cs=2, cv=2, use_legacy_attributes=True, max_iter=1000, l1_ratios=(0,)
    ).fit(X, y)
    del fitted.coef_  # scores_ is now the scores of its own folds
    assert feature_scores(fitted, np.zeros(4, dtype=bool)) is None


def test_convergence_is_that_of_the_wrapped_estimator(digits):
    with pytest.warns(ConvergenceWarning, match="LogisticRegression did not converge"):
        few = ScikitLearnMethod(LogisticRegression(max_iter=2)).fit(*digits)
    assert not few.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ScikitLearnMethod(KNeighborsClassifier()).fit(*digits).converged_


def test_several_labels_are_taken_where_the_estimator_takes_them(digits):
    X, y = digits
    Y = (y[:, None] >= [3, 6]).astype(int)
    fitted = ScikitLearnMethod(KNeighborsClassifier()).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict(X), KNeighborsClassifier().fit(X, Y).predict(X))
    assert fitted.objective_path_[0] == pytest.approx((fitted.predict(X) != Y).any(axis=1).mean())
    assert wrapped_capabilities(KNeighborsClassifier).multilabel
    assert not wrapped_capabilities(LinearSVC).multilabel


class Reshaped(KNeighborsClassifier):
    """A classifier that returns its predictions in another shape."""

    def __init__(self, shape=(-1, 1)):
        super().__init__()
        self.shape = shape

    def predict(self, X):
        return super().predict(X).reshape(self.shape)


def test_predictions_in_one_column_are_returned_in_one_dimension(digits):
    X, y = digits
    plain, column = (
        ScikitLearnMethod(KNeighborsClassifier()).fit(X, y),
        ScikitLearnMethod(Reshaped()).fit(X, y),
    )
    np.testing.assert_array_equal(column.predict(X), plain.predict(X))
    assert column.objective_path_ == plain.objective_path_


def test_predictions_of_another_shape_are_refused(digits):
    X, y = digits
    with pytest.raises(
        DataError, match=r"Reshaped.predict returned an array of shape \(1, 200\), not \(200,\)"
    ):
        ScikitLearnMethod(Reshaped((1, -1))).fit(X, y)
    with pytest.raises(DataError):
        ScikitLearnMethod(Reshaped()).fit(X, np.c_[y > 4, y > 6].astype(int))
