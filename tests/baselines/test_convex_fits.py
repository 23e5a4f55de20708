"""RFS and GLSPFS converge where they are proved to be near their optimum: against a conic
solver, and on faces.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from raysel.baselines.glspfs import GLSPFS
from raysel.baselines.rfs import RFS


def optimum(method, X, y):
    """Smallest objective, by Clarabel."""
    T, W = np.eye(y.max() + 1)[y], cp.Variable((X.shape[1], y.max() + 1))
    rows = cp.sum(cp.norm(W, axis=1))
    if isinstance(method, RFS):
        loss = cp.sum(
            cp.norm(X @ W + np.ones((len(X), 1)) @ cp.Variable((1, T.shape[1])) - T, axis=1)
        )
        problem = cp.Minimize(loss + method.alpha * rows)
    else:
        Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
        problem = cp.Minimize(cp.sum_squares(Z @ W - T) / len(X) + method.sparsity * rows)
    return cp.Problem(problem).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    "method",
    [RFS(0.1, "absolute"), RFS(1.0, "absolute"), GLSPFS(0.0, 0.02), GLSPFS(0.0, 0.15)],
    ids=repr,
)
@settings(max_examples=5)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(12, 20), (30, 7)]),
    tol=st.sampled_from([1e-2, 1e-3, 1e-4]),
)
def test_a_converged_fit_is_within_tol_of_the_optimum(method, seed, size, tol):
    rng = np.random.default_rng(seed)
    y = np.arange(size[0]) % 3
    X = rng.standard_normal((3, size[1]))[y] + rng.standard_normal(size)
    least = optimum(method, X, y)
    fit = clone(method).set_params(tol=tol, max_iter=2000)
    rounding = 2e-6  # of the conic solver
    rounding += (
        1e-6 * len(X) / least if isinstance(method, RFS) else 0
    )  # the norms of residuals are smoothed by 1e-6
    for J in fit.iterate(X, y):
        assert fit.dual_gap_ >= J / least - 1 - rounding
        assert fit.converged_ == (fit.dual_gap_ <= tol)
    assert fit.converged_
    assert least * (1 - rounding) <= J <= least * (1 + tol + rounding)


@pytest.mark.slow
@pytest.mark.parametrize("method", [RFS(0.1), GLSPFS(sparsity=0.1, sparsity_scale="max")], ids=repr)
def test_on_faces_a_converged_fit_ranks_as_the_optimum_does(method, orl_images):
    X, y, _ = orl_images
    fit = clone(method).fit(X, y)
    best = clone(method).set_params(tol=1e-7, max_iter=2000).fit(X, y)
    assert fit.converged_
    assert best.converged_
    assert fit.objective_path_[-1] <= best.objective_path_[-1] * (1 + fit.tol)
    assert len(set(np.argsort(-fit.scores_)[:20]) & set(np.argsort(-best.scores_)[:20])) >= 19
