"""The Laplacian of the nearest-neighbour graph against a loop over pairs, and its limits."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist
from scipy.stats import zscore

from raysel.baselines.glspfs import GLSPFS, heat_kernel_laplacian
from raysel.solvers.smr.smr import SMR


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), n=st.integers(2, 15), d=st.integers(1, 30), k=st.integers(1, 20))
def test_it_is_the_loop_over_pairs(seed, n, d, k):
    X = np.random.default_rng(seed).standard_normal((n, d))
    squared = cdist(X, X, "sqeuclidean")
    A = np.zeros((n, n))
    for a in range(n):
        near = sorted((squared[a, b], b) for b in range(n) if b != a)[:k]
        for distance, b in near:
            A[a, b] = A[b, a] = np.exp(-distance / squared.mean())
    np.testing.assert_allclose(
        heat_kernel_laplacian(X, k).toarray(),
        np.diag(A.sum(axis=1)) - A,
        atol=1e-8 if d > 1 else 1e-6,
    )


def test_an_isolated_sample_has_a_row_of_zeros():
    X = np.concatenate([np.linspace(0.0, 1.0, 1999), [1e6]])[:, None]
    L = heat_kernel_laplacian(X, 3).toarray()
    assert not L[-1].any()
    assert not L[:, -1].any()
    assert (np.diag(L)[:-1] > 0).all()


def test_equal_samples_and_no_features():
    np.testing.assert_array_equal(
        heat_kernel_laplacian(np.ones((3, 2)), 7).toarray(), 3 * np.eye(3) - 1
    )
    assert heat_kernel_laplacian(np.ones((3, 0)), 7).nnz == 0
    assert heat_kernel_laplacian(np.ones((1, 4)), 7).shape == (1, 1)


TIGHT = {"tol": 1e-13, "max_iter": 5000}


def samples(seed, n, d, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    spread = rng.uniform(0.5, 5.0, d)
    return (rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d))) * spread + 7.0, y


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(12, 20), (30, 6)]),
    local=st.sampled_from([0.0, 0.01, 0.5]),
    sparsity=st.sampled_from([0.02, 0.1, 0.2]),
)
def test_the_optimum_is_that_of_a_conic_solver(seed, size, local, sparsity):
    X, y = samples(seed, *size)
    glspfs = GLSPFS(local, sparsity, n_neighbors=3, **TIGHT).fit(X, y)
    Z, T, n = zscore(X, ddof=1), np.eye(3)[y], len(X)
    root = np.real(sqrtm(heat_kernel_laplacian(Z, 3).toarray() + 1e-14 * np.eye(n)))
    W = cp.Variable((size[1], 3))
    smooth = local * cp.sum_squares(root @ Z @ W)
    conic = cp.Problem(
        cp.Minimize(cp.sum_squares(Z @ W - T) / n + smooth + sparsity * cp.sum(cp.norm(W, axis=1)))
    )
    conic.solve(solver=cp.CLARABEL)
    assert glspfs.objective_path_[-1] == pytest.approx(conic.value, rel=1e-6)
    np.testing.assert_allclose(glspfs.scores_, np.linalg.norm(W.value, axis=1), atol=2e-4)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(4, 20),
    d=st.integers(1, 20),
    local=st.sampled_from([0.0, 0.1, 10.0]),
    sparsity=st.sampled_from([1e-3, 0.05, 0.3]),
)
def test_the_objective_never_rises(seed, n, d, local, sparsity):
    path = GLSPFS(local, sparsity, max_iter=60, tol=0.0)
    values = np.array(list(path.iterate(*samples(seed, n, d))))
    assert (np.diff(values) <= 1e-10 * values[:-1]).all()


@settings(max_examples=4)
@given(seed=st.integers(0, 2**16), size=st.sampled_from([(20, 30), (40, 10)]))
def test_without_the_local_term_it_is_sparse_matrix_regression_of_full_rank(seed, size):
    X, y = samples(seed, *size)
    Z, n = zscore(X, ddof=1), len(X)
    ours = GLSPFS(0.0, 0.05, tol=1e-9, max_iter=1000).fit(X, y)
    smr = SMR(
        (size[1], 1), alpha=0.05 * n, alpha_scale="absolute", zeta=1e-14, tol=1e-8, max_iter=500
    ).fit(Z, y)
    # SMR centres the targets, which takes their means from the loss.
    means = np.bincount(y) / n
    assert ours.objective_path_[-1] == pytest.approx(
        smr.objective_path_[-1] / n + (means**2).sum(), rel=1e-5
    )
    np.testing.assert_allclose(ours.scores_, smr.scores_, atol=0.01 * smr.scores_.max())
    np.testing.assert_allclose(ours.decision_function(X), smr.decision_function(Z), atol=0.01)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_largest_sparsity_is_where_the_solution_becomes_zero(classes):
    X, y = samples(4, 30, 12, classes)
    Z, T = zscore(X, ddof=1), np.eye(classes)[y]
    largest = np.linalg.norm(Z.T @ T, axis=1).max() * 2 / len(X)
    prepared = GLSPFS().prepare(X, y)
    assert prepared.sparsity_max == pytest.approx(largest)
    assert largest <= 2 * np.sqrt(np.bincount(y).max() / len(y))
    below = GLSPFS(sparsity=0.98 * largest, **TIGHT).fit(X, y)
    assert below.scores_.max() > 1e-4
    for above in (GLSPFS(sparsity=1.02 * largest), GLSPFS(sparsity=1.02, sparsity_scale="max")):
        assert not above.fit(X, y).scores_.any()
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 5, 0, 1)  # most samples are of class 0
    np.testing.assert_array_equal(
        GLSPFS(sparsity=1.02, sparsity_scale="max").fit(X, y).predict(X), 0
    )


def test_the_objective_is_that_of_the_scores_and_an_isolated_sample_adds_nothing_local():
    X, y = samples(5, 2000, 2)
    X[-1] = 1e7
    glspfs = GLSPFS(local=1.0, sparsity=0.01).fit(X, y)
    Z = zscore(X, ddof=1)
    L = heat_kernel_laplacian(Z, 7).toarray()
    assert not L[-1].any()
    # decision_function is Z W plus the shares of the classes.
    fitted, T = glspfs.decision_function(X) - np.bincount(y) / len(y), np.eye(3)[y]
    local = np.trace(fitted.T @ L @ fitted)
    value = ((fitted - T) ** 2).sum() / len(X) + local + 0.01 * glspfs.scores_.sum()
    assert value == pytest.approx(glspfs.objective_path_[-1], rel=1e-9)


def test_features_that_hardly_vary_are_left_out():
    X, y = samples(6, 20, 6)
    X[:, 2] = 3.0 + 1e-9 * (X[:, 2] - 7.0) / X[:, 2].std()
    X[:, 4] = 1.0 / 3.0
    glspfs = GLSPFS(n_features_to_select=6).fit(X, y)
    assert not glspfs.scores_[[2, 4]].any()
    assert not glspfs.coef_[:, [2, 4]].any()
    others = GLSPFS().fit(np.delete(X, [2, 4], axis=1), y)
    np.testing.assert_allclose(np.delete(glspfs.scores_, [2, 4]), others.scores_, rtol=1e-9)
    constant = GLSPFS().fit(np.ones_like(X), y)
    assert not constant.scores_.any()
    assert len(np.unique(constant.predict(X))) == 1


def test_leaving_out_all_features_is_warned_of():
    X, y = samples(6, 20, 6)
    with pytest.warns(
        UserWarning,
        match=r"standard deviations are below 1e-08; the largest is .*Scale the features",
    ):
        assert not GLSPFS().fit(1e-12 * X, y).scores_.any()
