"""The search for kernel weights: after every step its bounds enclose the optimum of a conic
solver.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import draw, kernels_of, signs_of, yu_dual
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

from raysel.baselines.kernel_classifiers import take_pairs
from raysel.baselines.mkl import MKL, KernelWeights
from raysel.core.errors import ConfigError


def problem(seed=0, n=18):
    X, y, modalities = draw(n=n, seed=seed)
    return kernels_of(X, list(modalities.values())), signs_of(y)


@pytest.mark.parametrize("C", [None, 2.0])
@pytest.mark.parametrize("q", [1, 2, np.inf])
def test_the_bounds_enclose_the_optimum_and_only_improve(q, C):
    kernels, signs = problem()
    optimum, _ = yu_dual(kernels, signs, q, C)
    search = KernelWeights(np.stack([take_pairs(K) for K in kernels]), signs, q, C, tol=1e-5)
    assert search.gap == np.inf
    p = {1: np.inf, 2: 2, np.inf: 1}[q]
    objective, lower, gap = np.inf, 0.0, np.inf
    for _ in range(60):
        best = search.step()
        assert best.objective <= objective
        assert search.lower >= lower
        objective, lower, gap = best.objective, search.lower, search.gap
        assert lower * (1 - 1e-7) <= optimum <= objective * (1 + 1e-7)
        assert gap == pytest.approx((objective - lower) / lower)
        assert best.weights.min() >= 0
        np.testing.assert_allclose(np.linalg.norm(best.weights, p), 1)
        if gap <= 1e-5:
            break
    assert gap <= 1e-5


@pytest.mark.parametrize("C", [None, 2.0])
def test_the_objective_is_that_of_the_solution(C):
    """Primal objective of f_k = t_k sum_i a_i K_k(x_i, .), written out."""
    kernels, signs = problem(1)
    search = KernelWeights(np.stack([take_pairs(K) for K in kernels]), signs, 2, C, tol=1e-4)
    for _ in range(3):
        found = search.step()
    own = found.weights[: len(kernels)]
    values = found.dual @ np.tensordot(own, kernels, 1)
    norms = [np.einsum("ji,il,jl->", found.dual, K, found.dual) for K in kernels]
    margins = signs * (values + found.intercept[:, None])
    losses = C * np.maximum(0, 1 - margins) if C else 0.5 * (1 - margins) ** 2 / found.weights[-1]
    assert found.objective == pytest.approx(0.5 * own @ norms + losses.sum(), rel=1e-9)
    np.testing.assert_allclose(found.dual.sum(axis=1), 0, atol=1e-6)


NORMS = {"inf": np.inf, 1: 1, 2: 2}
#: LIBSVM ends before the squared loss does: it keeps kernels in single precision.
TIGHT = {"hinge": {"tol": 1e-7, "max_iter": 150}, "squared": {"tol": 1e-9, "max_iter": 150}}


def dual_of(model, n):
    dual = np.zeros((len(model.intercept_), n))
    dual[:, model.support_] = model.dual_coef_
    return dual


def check_dual(X, y, modalities, loss, norm, C=5.0, atol=1e-4):
    """Optimum and weights are those of the conic solver."""
    kernels = kernels_of(X, list(modalities.values()))
    optimum, weights = yu_dual(kernels, signs_of(y), NORMS[norm], C if loss == "hinge" else None)
    model = MKL(modalities, loss, norm, C=C if loss == "hinge" else 1.0, **TIGHT[loss]).fit(X, y)
    np.testing.assert_allclose(model.objective_path_[-1], optimum, rtol=1e-6)
    np.testing.assert_allclose(model.modality_scores_, weights[: len(kernels)], atol=atol)
    if loss == "squared":
        np.testing.assert_allclose(1.0 / model.regularization_, weights[-1], atol=atol)


@settings(max_examples=4)
@given(st.integers(0, 10**6), st.sampled_from(["inf", 1, 2]), st.sampled_from(["hinge", "squared"]))
def test_the_dual_of_random_problems(seed, norm, loss):
    """Weights move by the square root of the gap, which LIBSVM's single precision limits."""
    check_dual(
        *draw(n=18, widths=(2, 2, 3), n_classes=2 + seed % 2, seed=seed), loss, norm, atol=5e-3
    )


@settings(max_examples=10)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["inf", 1, 2]),
    st.sampled_from(["hinge", "squared"]),
    st.sampled_from([0.1, 3.0, 1e4]),
    st.sampled_from([0.3, 1.0, 30.0]),
)  # fmt: skip
def test_the_gap_is_never_below_the_true_one(seed, norm, loss, C, gamma):
    X, y, modalities = draw(n=15, widths=(2, 2, 3), n_classes=2 + seed % 2, seed=seed)
    kernels = kernels_of(X, list(modalities.values()), gamma)
    optimum, _ = yu_dual(kernels, signs_of(y), NORMS[norm], C if loss == "hinge" else None)
    C = C if loss == "hinge" else 1.0
    model = MKL(modalities, loss, norm, C=C, gamma=gamma, tol=1e-6, max_iter=30)
    slack = 1e-5  # of the conic solver and its jitter
    for objective in model.iterate(X, y):
        assert objective >= optimum * (1 - slack)
        assert model.dual_gap_ >= objective / optimum - 1 - slack


def test_the_hinge_objective_is_that_of_the_returned_model():
    X, y, modalities = draw(seed=3)
    signs = signs_of(y)
    for C in (0.1, 1e5):
        model = MKL(modalities, norm=2, C=C, max_iter=200).fit(X, y)
        dual, kernels = dual_of(model, len(X)), kernels_of(X, list(modalities.values()))
        total = np.tensordot(model.modality_scores_, kernels, 1)
        losses = np.maximum(0, 1 - signs * model.decision_function(X).T).sum()
        np.testing.assert_allclose(
            model.objective_path_[-1], 0.5 * np.trace(dual @ total @ dual.T) + C * losses, rtol=1e-7
        )
        np.testing.assert_allclose(np.linalg.norm(model.modality_scores_), 1, rtol=1e-9)


def check_average(X, y, modalities, C):
    """Norm 1 is the SVM of the average kernel, with C times the number of kernels."""
    average = kernels_of(X, list(modalities.values())).mean(axis=0)
    model = MKL(modalities, norm=1, C=C, tol=1e-6).fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=C * len(modalities), kernel="precomputed", tol=1e-8)).fit(
        average, y
    )
    np.testing.assert_allclose(
        model.decision_function(X), theirs.decision_function(average), atol=2e-4
    )
    np.testing.assert_array_equal(model.modality_scores_, np.ones(len(modalities)))


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([0.01, 0.7, 10.0]))
def test_norm_1_is_the_average_kernel_with_c_times_the_number_of_kernels(seed, n_classes, C):
    check_average(*draw(n=40, n_classes=n_classes, seed=seed), C)


def test_squared_loss_of_one_kernel_is_kernel_ridge_regression():
    X, y, _ = draw(n=40)
    kernel = kernels_of(X, [X.shape[1]])[0]
    Y = signs_of(y).T
    ridge = KernelRidge(alpha=1.0, kernel="precomputed").fit(
        KernelCenterer().fit_transform(kernel), Y - Y.mean(axis=0)
    )
    model = MKL(loss="squared", norm=1).fit(X, y)
    np.testing.assert_allclose(dual_of(model, len(X)).T, ridge.dual_coef_, atol=1e-10)
    assert (model.n_iter_, model.modality_names_) == (1, ["all"])


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_of_equal_kernels_the_sum_of_the_weights_is_determined(loss):
    X, y, _ = draw(n=30, widths=(3, 2))
    both = MKL({"a": 3, "again": 3, "b": 2}, loss, tol=1e-6, max_iter=150).fit(
        np.hstack([X[:, :3], X]), y
    )
    one = MKL({"a": 3, "b": 2}, loss, tol=1e-6, max_iter=150).fit(X, y)
    np.testing.assert_allclose(both.objective_path_[-1], one.objective_path_[-1], rtol=1e-5)
    np.testing.assert_allclose(
        [both.modality_scores_[:2].sum(), both.modality_scores_[2]], one.modality_scores_, atol=5e-3
    )


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_each_label_has_the_weights_of_its_own_problem(loss):
    X, y, modalities = draw(n=30)
    Y = np.column_stack([y == 0, np.zeros_like(y), X[:, 0] > 0, np.ones_like(y)]).astype(int)
    model = MKL(modalities, loss, tol=1e-5).fit(X, Y)
    for label in (0, 2):
        alone = MKL(modalities, loss, tol=1e-5).fit(X, Y[:, label])
        np.testing.assert_array_equal(model.modality_scores_[:, label], alone.modality_scores_)
        np.testing.assert_allclose(
            model.decision_function(X)[:, label], alone.decision_function(X), atol=1e-12
        )
    assert not model.modality_scores_[:, [1, 3]].any()
    np.testing.assert_array_equal(
        model.decision_function(X)[:, [1, 3]], np.tile([-1.0, 1.0], (30, 1))
    )
    np.testing.assert_array_equal(model.predict(X)[:, [1, 3]], Y[:, [1, 3]])


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_labels_that_nobody_has_leave_nothing_to_fit(loss):
    X, y, modalities = draw()
    Y = np.column_stack([np.zeros_like(y), np.ones_like(y)])
    model = MKL(modalities, loss).fit(X, Y)
    assert (model.dual_gap_, model.n_iter_, model.objective_path_[-1]) == (0.0, 1, 0.0)
    np.testing.assert_array_equal(model.predict(X), Y)


def test_with_little_structure_the_identity_takes_all_of_the_sparse_weights():
    """Wide kernels and few samples: the optimum of the conic solver, where all samples get the
    same scores.
    """
    X, y, modalities = draw(n=24, spread=0.3)
    kernels = kernels_of(X, list(modalities.values()), 0.01)
    optimum, weights = yu_dual(kernels, signs_of(y), np.inf)
    np.testing.assert_allclose(weights, [0, 0, 0, 1], atol=1e-6)
    model = MKL(modalities, "squared", gamma=0.01, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.objective_path_[-1], optimum, rtol=1e-5)
    np.testing.assert_allclose(model.modality_scores_, 0, atol=1e-3)
    np.testing.assert_allclose(model.regularization_, 1, atol=1e-3)
    values = model.decision_function(X)
    np.testing.assert_allclose(values, np.tile(signs_of(y).mean(axis=1), (24, 1)), atol=0.01)


def test_a_modality_of_constant_columns_does_no_harm():
    X, y, modalities = draw()
    X[:, :2] = 3.0
    for loss in ("hinge", "squared"):
        model = MKL(modalities, loss).fit(X, y)
        assert np.isfinite(model.decision_function(X + 1)).all()
        assert model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("norm", [1.5, 3, 4.0])
def test_other_norms_are_refused(norm):
    X, y, modalities = draw()
    with pytest.raises(ConfigError, match=f"norm={norm} is not supported: use inf, 1 or 2"):
        MKL(modalities, norm=norm).fit(X, y)


def test_large_c_and_small_widths_are_solved_to_the_gap():
    X, y, modalities = draw(n=40, spread=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for gamma in (1e-5, 1.0, 10.0):
            assert MKL(modalities, norm=2, C=1e5, gamma=gamma).fit(X, y).dual_gap_ <= 1e-3


def test_a_loss_weight_that_the_squared_loss_does_not_use_is_refused():
    """Not fitted in vain: all configurations of a grid over C would be one model."""
    X, y, modalities = draw()
    with pytest.raises(ConfigError, match=r"C=10 has no effect with loss='squared'.*leave C out"):
        MKL(modalities, "squared", C=10.0).fit(X, y)
