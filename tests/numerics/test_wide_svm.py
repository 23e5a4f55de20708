"""Linear SVMs fitted in the span of few samples, against LinearSVC itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC

from raysel.numerics.wide_svm import SampleSpan, fit_clone, solves_dual


def wide(n, d, n_classes=2, *, n_copies=0, rank=None, seed=0):
    """Scaled samples, of which some are copies, or of a low rank, and their classes."""
    drawn = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = drawn.standard_normal((n, d))
    if rank is not None:
        X = drawn.standard_normal((n, rank)) @ drawn.standard_normal((rank, d))
    X[:, :3] += y[:, None]
    X[:n_copies] = X[-1]
    return scale(X), y


def assert_same_machine(ours, theirs, X, rtol=1e-9):
    size = rtol * np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=rtol)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.n_features_in_ == theirs.n_features_in_
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.get_params() == theirs.get_params()
    unseen = np.random.default_rng(9).standard_normal((20, X.shape[1]))
    margins = theirs.decision_function(unseen)
    size = rtol * X.shape[1] * np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.decision_function(unseen), margins, rtol=0, atol=size)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(6, 30),
    n_classes=st.integers(2, 3),
    n_copies=st.integers(0, 3),
    rank=st.sampled_from([None, 3]),
    params=st.fixed_dictionaries(
        {
            "C": st.sampled_from([1e-3, 0.03]),
            "dual": st.sampled_from([True, "auto"]),
            "fit_intercept": st.booleans(),
            "intercept_scaling": st.sampled_from([1, 0.2, 10.0]),
            "class_weight": st.sampled_from([None, "balanced", {0: 3.0}]),
            "random_state": st.integers(0, 5),
        }
    ),
)
def test_its_optimum_is_that_of_linear_svc(n, n_classes, n_copies, rank, params):
    X, y = wide(n, n * 9, n_classes, n_copies=n_copies, rank=rank)
    assert SampleSpan.of(X) is not None
    # LinearSVC sets samples aside by comparisons that rounding decides, hence the small tolerance.
    machine = LinearSVC(tol=1e-9, max_iter=100_000, **params)
    assert_same_machine(fit_clone(machine, X, y), clone(machine).fit(X, y), X, rtol=1e-6)


@pytest.mark.parametrize("C", [0.001, 1.0])
@pytest.mark.parametrize(("n", "d"), [(20, 300), (60, 500), (100, 2000)])
def test_its_iterations_are_those_of_linear_svc(n, d, C):
    X, y = wide(n, d)
    machine = LinearSVC(C=C, random_state=0)
    ours, theirs = fit_clone(machine, X, y), clone(machine).fit(X, y)
    assert_same_machine(ours, theirs, X)
    assert ours.n_iter_ == theirs.n_iter_


def test_names_of_classes_and_a_given_span_are_as_well():
    X, y = wide(30, 400, 3)
    names, machine = np.array(["b", "c", "a"])[y], LinearSVC(C=0.1, random_state=0)
    ours = fit_clone(machine, X, names, SampleSpan.of(X))
    assert_same_machine(ours, clone(machine).fit(X, names), X)
    np.testing.assert_array_equal(ours.coef_, fit_clone(machine, X, names).coef_)
    assert not hasattr(machine, "coef_")


def test_columns_of_other_scales_are_fitted_as_they_are():
    X, y = wide(20, 300)
    X[:, 0] *= 1e7  # of whose squares the other columns are no more than rounding
    machine = LinearSVC(random_state=0, max_iter=500)
    with pytest.warns(ConvergenceWarning):
        ours, theirs = fit_clone(machine, X, y), clone(machine).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


@pytest.mark.parametrize("shape", [(30, 200), (30, 20)])
def test_samples_that_are_not_few_are_fitted_as_they_are(shape):
    X, y = wide(*shape)
    machine = LinearSVC(random_state=0)
    assert SampleSpan.of(X) is None
    np.testing.assert_array_equal(fit_clone(machine, X, y).coef_, clone(machine).fit(X, y).coef_)


def test_only_what_has_the_same_dual_is_solved_in_the_span():
    class Own(LinearSVC):
        pass

    assert solves_dual(LinearSVC())
    others = [
        Own(),
        SVC(kernel="linear"),
        LinearSVC(dual=False),
        LinearSVC(penalty="l1"),
        LinearSVC(loss="hinge"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVC(C="large"),
    ]
    assert not any(map(solves_dual, others))


def test_errors_and_remarks_are_those_of_linear_svc():
    X, y = wide(20, 300)
    with pytest.raises(ValueError, match="C"):
        fit_clone(LinearSVC(C=-1.0), X, y)
    with pytest.raises(ValueError, match="class"):
        fit_clone(LinearSVC(), X, np.zeros(20))
    with pytest.warns(ConvergenceWarning):
        fit_clone(LinearSVC(max_iter=1), X, y)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit_clone(LinearSVC(), X, y)


def test_samples_of_zeros_have_no_span():
    X, y = np.zeros((10, 100)), np.arange(10) % 2
    assert SampleSpan.of(X) is None
    assert not fit_clone(LinearSVC(random_state=0), X, y).coef_.any()
