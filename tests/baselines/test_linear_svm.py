"""LinearSVM against LinearSVC itself, a label each against separate machines, and its zero
solution.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from raysel.baselines.linear_svm import LinearSVM

TIGHT = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}


def wide(n=40, d=90, seed=0):
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(y), n, replace=False)
    return scale(X[chosen] @ rng.standard_normal((64, d))), y[chosen] % 4


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.03, 1.0])
def test_it_is_linear_svc(penalty, classes, C):
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[y < classes], y[y < classes]
    ours = LinearSVM(C, penalty, **TIGHT).fit(X, y)
    theirs = LinearSVC(penalty=penalty, C=C, dual="auto", **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.scores_, np.sqrt((theirs.coef_**2).sum(axis=0)), atol=1e-5)
    assert (ours.n_iter_, ours.converged_, len(ours.objective_path_)) == (1, True, 1)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_machine_a_label(penalty):
    X, y = load_wine(return_X_y=True)
    X, Y = scale(X), np.column_stack([y == 0, y > 0, X[:, 0] > 13]).astype(int)
    ours = LinearSVM(0.1, penalty, **TIGHT).fit(X, Y)
    theirs = OneVsRestClassifier(LinearSVC(penalty=penalty, C=0.1, dual="auto", **TIGHT)).fit(X, Y)
    np.testing.assert_allclose(
        ours.coef_, np.vstack([m.coef_ for m in theirs.estimators_]), atol=1e-5
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(
        LinearSVM(0.1, penalty, **TIGHT).fit(X, 2 * Y - 1).coef_, ours.coef_
    )


def test_labels_that_all_or_none_have_are_answered_by_their_sign():
    X, y = wide()
    Y = np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y)]).astype(int)
    svm = LinearSVM(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(svm.predict(X)[:, 1:], Y[:, 1:])
    assert not svm.coef_[1:].any()
    assert svm.coef_[0].any()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_objective_is_a_minimum(penalty):
    X, y = wide(60, 8)
    svm = LinearSVM(0.3, penalty, **TIGHT).fit(X, y)
    signs = np.where(y[:, None] == np.unique(y), 1.0, -1.0)

    def objective(coef, intercept):
        weights = np.column_stack([coef, intercept])
        size = np.abs(weights).sum() if penalty == "l1" else 0.5 * (weights**2).sum()
        return size + 0.3 * (np.maximum(0, 1 - signs * (X @ coef.T + intercept)) ** 2).sum()

    least = svm.objective_path_[-1]
    assert least == pytest.approx(objective(svm.coef_, svm.intercept_))
    rng = np.random.default_rng(0)
    for _ in range(50):
        moved = [
            part + 1e-3 * rng.standard_normal(part.shape) for part in (svm.coef_, svm.intercept_)
        ]
        assert objective(*moved) > least


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), classes=st.integers(2, 4), shift=st.sampled_from([0.0, 3.0]))
def test_is_zero_solution_holds_exactly_where_the_l1_machine_is_empty(seed, classes, shift):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((25, 6)) + shift, np.minimum(np.arange(25) // 3, classes - 1)
    prepared = LinearSVM().prepare(X, y)
    low, high = 1e-6, 10.0
    assert LinearSVM(low, "l1").is_zero_solution(prepared)
    assert not LinearSVM(high, "l1").is_zero_solution(prepared)
    while high > 1.001 * low:
        middle = np.sqrt(low * high)
        low, high = (
            (middle, high) if LinearSVM(middle, "l1").is_zero_solution(prepared) else (low, middle)
        )
    assert not LinearSVM(0.99 * low, "l1", **TIGHT).fit(X, y).coef_.any()
    assert LinearSVM(1.02 * high, "l1", **TIGHT).fit(X, y).coef_.any()
    assert not LinearSVM(low, "l2").is_zero_solution(prepared)


@pytest.mark.parametrize(
    ("penalty", "n", "drawn"), [("l1", 40, True), ("l2", 40, True), ("l2", 200, False)]
)
def test_random_state_decides_where_anything_is_drawn_and_only_there(penalty, n, drawn):
    X, y = wide(n)
    first, again, other = (
        LinearSVM(1.0, penalty, random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) is not drawn
    tight = [LinearSVM(1.0, penalty, **TIGHT | {"random_state": seed}).fit(X, y) for seed in (0, 1)]
    np.testing.assert_allclose(tight[0].objective_path_, tight[1].objective_path_, rtol=1e-6)


def test_an_end_by_max_iter_is_no_convergence():
    X, y = wide()
    svm = LinearSVM(100.0, max_iter=2, random_state=0).fit(X, y)
    assert (svm.converged_, svm.liblinear_iterations_) == (False, 2)


def test_few_samples_are_fitted_in_their_span_for_every_value_of_c():
    X, y = wide(20, 200)
    prepared = LinearSVM().prepare(X, y)
    assert prepared.span is not None
    for C in (0.01, 1.0):
        ours = LinearSVM(C, random_state=0)
        for _ in ours.iterate(X, y, prepared):
            pass
        theirs = OneVsRestClassifier(LinearSVC(C=C, random_state=0, max_iter=10_000)).fit(X, y)
        coef = np.vstack([machine.coef_ for machine in theirs.estimators_])
        np.testing.assert_allclose(ours.coef_, coef, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(LinearSVM(C, random_state=0).fit(X, y).coef_, ours.coef_)
