"""KernelSVM against scikit-learn's one against the rest of SVC, on random and on real data."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import draw, kernels_of, signs_of
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from raysel.baselines.kernel_svm import KernelSVM


@settings(max_examples=10)
@given(
    st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([0.01, 1.0, 100.0]), st.sampled_from([0.01, 1.0, 10.0])
)
def test_it_is_one_against_rest_of_svc(seed, n_classes, C, gamma):
    X, y, _ = draw(n=30, n_classes=n_classes, seed=seed)
    others = X + 0.5
    ours = KernelSVM(C, gamma, tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=C, kernel="precomputed", tol=1e-6))
    theirs.fit(kernels_of(X, [X.shape[1]], gamma)[0], y)
    expected = theirs.decision_function(kernels_of(X, [X.shape[1]], gamma, others)[0])
    np.testing.assert_allclose(ours.decision_function(others), expected, atol=1e-4)


def test_the_absolute_width_is_that_of_svc():
    X, y, _ = draw(n=40)
    ours = KernelSVM(2.0, 0.3, "absolute", tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=2.0, gamma=0.3, tol=1e-6)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_several_labels_are_several_machines():
    X, y, _ = draw(n=40)
    Y = np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y), X[:, 0] > 0]).astype(int)
    ours = KernelSVM(2.0, 0.3, "absolute", tol=1e-6).fit(X, Y)
    theirs = OneVsRestClassifier(SVC(C=2.0, gamma=0.3, tol=1e-6)).fit(X, Y[:, [0, 3]])
    np.testing.assert_allclose(ours.decision_function(X)[:, [0, 3]], theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.decision_function(X)[:, 1:3], np.tile([-1.0, 1.0], (40, 1)))
    np.testing.assert_array_equal(ours.predict(X)[:, 1:3], Y[:, 1:3])


def test_only_constant_labels_need_no_machine():
    X, y, _ = draw()
    Y = np.column_stack([np.zeros_like(y), np.ones_like(y)])
    model = KernelSVM().fit(X, Y)
    assert model.support_vectors_.shape == (0, X.shape[1])
    np.testing.assert_array_equal(model.predict(X), Y)


def test_the_objective_is_the_primal_one():
    X, y, _ = draw(n=40)
    model, kernel, signs = KernelSVM(0.5, tol=1e-8).fit(X, y), kernels_of(X, [X.shape[1]])[0], signs_of(y)
    dual = np.zeros(signs.shape)
    dual[:, model.support_] = model.dual_coef_
    quadratic = 0.5 * np.trace(dual @ kernel @ dual.T)
    losses = np.maximum(0, 1 - signs * model.decision_function(X).T).sum()
    np.testing.assert_allclose(model.objective_path_, [quadratic + 0.5 * losses], rtol=1e-9)
    np.testing.assert_allclose(model.objective_path_, [(dual * signs).sum() - quadratic], rtol=1e-4)  # the dual one


def test_samples_far_from_the_origin_keep_their_distances():
    X, y, _ = draw(n=40)
    near, far = KernelSVM(tol=1e-6).fit(X, y), KernelSVM(tol=1e-6).fit(X + 1e6, y)
    np.testing.assert_allclose(far.decision_function(X + 1e6 + 0.1), near.decision_function(X + 0.1), atol=1e-4)
