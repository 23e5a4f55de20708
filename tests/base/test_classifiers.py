"""What a model without features predicts: the majority, whichever way it was found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

from raysel.baselines.linear_svm import LinearSVM
from raysel.solvers.smml.smml import SMML

EMPTY = [
    SMML(gamma1=0.6, gamma2=0.6),
    SMML(gamma1=1.0, gamma2=0.0, method="reweighted"),
    LinearSVM(1e-6, "l1"),
]


def target(rng, kind, n=40):
    """Labels of uneven classes, the largest not always first; some classes alike in size."""
    if kind == "labels":
        Y = (rng.random((n, 3)) < rng.choice([0.2, 0.5, 0.8], 3)).astype(int)
        Y[:, 0] = rng.random(n) < rng.choice([0.0, 0.9])
        return Y
    names = np.array(["c", "b", "a", "d"][: 2 if kind == "two" else 4])
    y = rng.choice(names, n, p=rng.dirichlet(np.ones(len(names))))
    y[: len(names)] = names
    if rng.random() < 0.3:
        y = np.repeat(names, n // len(names))
    return y


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**16),
    kind=st.sampled_from(["two", "many", "labels"]),
    model=st.integers(0, 2),
)
def test_an_empty_model_predicts_the_majority(seed, kind, model):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 3)), target(rng, kind)
    direct, null = (type(EMPTY[model])(**EMPTY[model].get_params()) for _ in range(2))
    prepared = null.prepare(X, y)
    assert null.is_zero_solution(prepared)
    for _ in direct.iterate(X, y, prepared):
        pass
    null.fit_zero_solution(X, y, prepared)
    models = [direct, null]
    if model == 0:
        models.append(SMML(**EMPTY[0].get_params()))
        (source,) = [source for _, source in SMML.fit_path(models[2:], X, prepared)]
        assert source == "zero"
    expected = DummyClassifier(strategy="most_frequent").fit(X, y).predict(X)
    for fitted in models:
        np.testing.assert_array_equal(fitted.predict(X), expected)
        assert not fitted.coef_.any()
        assert (fitted.n_iter_, fitted.converged_, fitted.n_features_in_) == (1, True, 3)
    first = vars(models[0])
    for other in map(vars, models[1:]):
        assert first.keys() == other.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], other[name], err_msg=name)


@pytest.mark.parametrize("estimator", EMPTY[:1] + EMPTY[2:])
def test_the_intercept_of_an_empty_model_is_the_best_there_is(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1, 2], [6, 25, 9])
    estimator.fit_zero_solution(X, y, estimator.prepare(X, y))

    def loss(bias):
        losses = np.maximum(0, 1 - np.where(y[:, None] == estimator.classes_, 1, -1) * bias)
        if isinstance(estimator, SMML):
            return losses.sum()
        return estimator.C * (losses**2).sum() + np.abs(bias).sum()

    assert estimator.objective_path_[-1] == pytest.approx(loss(estimator.intercept_))
    grid = np.linspace(-2, 2, 401)[:, None] * np.eye(3)[:, None, :]
    others = [loss(np.where(row != 0, row, estimator.intercept_)) for axis in grid for row in axis]
    assert estimator.objective_path_[-1] <= min(others) + 1e-12


def test_equal_scores_go_to_the_most_frequent_class_of_those_that_are_equal():
    y = np.repeat(["a", "b", "c"], [10, 20, 20])
    X = np.r_[np.ones(10), np.zeros(40)].reshape(-1, 1)
    svm = LinearSVM().fit(X, y)
    np.testing.assert_array_equal(svm.class_count_, [10, 20, 20])
    svm.coef_, svm.intercept_ = np.array([[1.0], [0.0], [0.0]]), np.zeros(3)
    assert svm.predict([[0.0], [1.0], [-1.0]]).tolist() == ["b", "a", "b"]
