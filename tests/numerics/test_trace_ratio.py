"""The reduction to the range of the total scatter and Newton's method, against dense forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from raysel.numerics.discriminants import LARGEST_RATIO, Scatters, maximize_trace_ratio, scatter_range, shared_ratio


@given(st.integers(0, 10**6), st.integers(4, 25), st.integers(1, 25), st.integers(2, 4), st.integers(0, 3))
@settings(max_examples=60)
def test_the_range_loses_nothing(seed, n, D, c, copies):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) + 10
    X = np.concatenate([X, X[:, [0] * copies], np.full((n, 2), 3.3)], axis=1)  # dependent and constant features
    codes = np.arange(n) % c
    reduced = scatter_range(X, codes, c)
    centred = X - X.mean(axis=0)
    T = centred.T @ centred / n
    B = sum((codes == k).mean() * np.outer(m, m) for k in range(c) for m in [centred[codes == k].mean(axis=0)])
    Q = reduced.lift(centred, np.eye(reduced.rank))
    assert reduced.rank == np.linalg.matrix_rank(T, tol=1e-9 * np.linalg.norm(T, 2), hermitian=True)
    assert reduced.dual == (n < X.shape[1] and reduced.rank == min(n - 1, D + copies))
    np.testing.assert_allclose(Q.T @ Q, np.eye(reduced.rank), atol=1e-7)
    np.testing.assert_allclose(Q @ np.diag(reduced.total) @ Q.T, T, atol=1e-9)
    np.testing.assert_allclose(Q @ reduced.between @ reduced.between.T @ Q.T, B, atol=1e-9)
    np.testing.assert_allclose(reduced.embed(centred, np.eye(reduced.rank)), centred @ Q, atol=1e-6)
    assert reduced.within_trace == pytest.approx(np.trace(T - B), abs=1e-9)
    np.testing.assert_array_equal(reduced.class_counts, np.bincount(codes, minlength=c))


def test_constant_features_of_any_size_have_no_range():
    assert scatter_range(np.full((7, 30), 1e8 / 3), np.arange(7) % 2, 2).rank == 0
    assert scatter_range(np.full((70, 3), 1e8 / 3), np.arange(70) % 2, 2).rank == 0


@given(st.integers(0, 10**6), st.floats(0, 1), st.integers(1, 3))
@settings(max_examples=40)
def test_newton_finds_the_root(seed, overlap, count):
    rng = np.random.default_rng(seed)
    problems, sizes = [], []
    for _ in range(count):
        r = int(rng.integers(2, 12))
        H = rng.standard_normal((r, 3)) / r
        # T is at least B, as total scatter is at least the scatter between classes
        problems.append(Scatters(H, (1 - overlap) * (H**2).sum() + rng.uniform(0.1, 2, r), overlap))
        sizes.append(int(rng.integers(1, r + 1)))
    weights = rng.uniform(0.1, 2, count)

    def difference(x):
        value = 0.0
        for problem, size, weight in zip(problems, sizes, weights, strict=True):
            B = problem.between @ problem.between.T
            T = np.diag(problem.total) + overlap * B
            value += weight * np.linalg.eigvalsh(B - x * T)[-size:].sum()
        return value

    steps = maximize_trace_ratio(problems, sizes, weights)
    path = [next(steps) for _ in range(12)]
    ratios = np.array([ratio for ratio, _ in path])
    assert (np.diff(ratios) >= -1e-13).all()
    assert ratios[-1] == pytest.approx(brentq(difference, 0, 1, xtol=1e-15), abs=1e-10)
    assert shared_ratio(problems, path[-1][1], weights) == ratios[-1]
    for problem, V, size in zip(problems, path[-1][1], sizes, strict=True):
        np.testing.assert_allclose(V.T @ V, np.eye(size), atol=1e-12)
        turned = problem.principal(V @ np.linalg.qr(rng.standard_normal((size, size)))[0], ratios[-1])
        np.testing.assert_allclose(turned @ turned.T, V @ V.T, atol=1e-10)
        inner = turned.T @ problem.difference(ratios[-1]) @ turned
        np.testing.assert_allclose(inner, np.diag(np.sort(np.diag(inner))[::-1]), atol=1e-10)
        between, total = problem.traces(V)
        B = problem.between @ problem.between.T
        np.testing.assert_allclose(between, np.trace(V.T @ B @ V), atol=1e-12)
        np.testing.assert_allclose(total, np.trace(V.T @ (np.diag(problem.total) + overlap * B) @ V), atol=1e-12)


def test_a_ratio_of_one_is_taken_as_the_limit_from_below():
    H = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    problem = Scatters(H, np.array([1.0, 0.5, 0.5]))  # B = T on e1 and on e2 + e3; T exceeds B on e2 - e3
    steps = maximize_trace_ratio([problem], [1], np.ones(1))
    ratio, (V,) = [next(steps) for _ in range(6)][-1]
    assert LARGEST_RATIO < ratio <= 1 + 1e-15
    np.testing.assert_allclose(np.abs(V[:, 0]), [1, 0, 0], atol=1e-7)


def test_the_separating_directions_are_the_limit_of_newtons():
    rng = np.random.default_rng(1)
    X, codes = rng.standard_normal((20, 40)) * np.linspace(0.1, 3, 40), np.arange(20) % 5
    reduced = scatter_range(X, codes, 5)
    problem = Scatters(reduced.between, reduced.total)
    for size in (1, 4):
        V, near = problem.separating(size), problem.leading(LARGEST_RATIO, size)
        np.testing.assert_allclose(V @ V.T, near @ near.T, atol=1e-6)
    assert problem.separating(5) is None
    assert Scatters(reduced.between, reduced.total, overlap=0.1).separating(1) is None
    few = scatter_range(X[:, :10], codes, 5)
    assert Scatters(few.between, few.total).separating(1) is None
