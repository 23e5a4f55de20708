"""The search for kernel weights: after every step its bounds enclose the optimum of a conic solver."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_references import draw, kernels_of, signs_of, yu_dual

from raysel.baselines.kernel_classifier import pairs_of
from raysel.baselines.mkl import KernelWeights


def problem(seed=0, n=18):
    X, y, modalities = draw(n=n, seed=seed)
    return kernels_of(X, list(modalities.values())), signs_of(y)


@pytest.mark.parametrize("C", [None, 2.0])
@pytest.mark.parametrize("q", [1, 2, np.inf])
def test_the_bounds_enclose_the_optimum_and_only_improve(q, C):
    kernels, signs = problem()
    optimum, _ = yu_dual(kernels, signs, q, C)
    search = KernelWeights(np.stack([pairs_of(K) for K in kernels]), signs, q, C, tol=1e-5)
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
    search = KernelWeights(np.stack([pairs_of(K) for K in kernels]), signs, 2, C, tol=1e-4)
    for _ in range(3):
        found = search.step()
    own = found.weights[: len(kernels)]
    values = found.dual @ np.tensordot(own, kernels, 1)
    norms = [np.einsum("ji,il,jl->", found.dual, K, found.dual) for K in kernels]
    margins = signs * (values + found.intercept[:, None])
    losses = C * np.maximum(0, 1 - margins) if C else 0.5 * (1 - margins) ** 2 / found.weights[-1]
    assert found.objective == pytest.approx(0.5 * own @ norms + losses.sum(), rel=1e-9)
    np.testing.assert_allclose(found.dual.sum(axis=1), 0, atol=1e-6)
