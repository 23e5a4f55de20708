"""The range of the total scatter down to rounding level, and trace ratios by Newton's method,
against dense forms.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh

from raysel.numerics.discriminants import (
    LARGE,
    LARGEST_RATIO,
    Scatters,
    maximize_trace_ratio,
    scatter_range,
    shared_ratio,
)


def jacobi_singular_values(A):
    """One-sided Jacobi rotations in extended precision: slow, but right to the last digits of
    the smallest values.
    """
    A = np.array(A if A.shape[0] >= A.shape[1] else A.T, dtype=np.longdouble)
    for _ in range(40):
        worst = 0.0
        for i in range(A.shape[1]):
            for j in range(i):
                a, b, c = A[:, i] @ A[:, i], A[:, j] @ A[:, j], A[:, i] @ A[:, j]
                if c == 0:
                    continue
                worst = max(worst, abs(c) / np.sqrt(a * b))
                z = (b - a) / (2 * c)
                t = (1 if z >= 0 else -1) / (abs(z) + np.sqrt(1 + z * z))
                s = np.sqrt(1 + t * t)
                A[:, i], A[:, j] = (A[:, i] - t * A[:, j]) / s, (t * A[:, i] + A[:, j]) / s
        if worst < 1e-17:
            break
    return np.sort(np.sqrt((A**2).sum(axis=0)))[::-1].astype(float)


def range_of(X):
    return scatter_range(X, np.arange(len(X)) % 2, 2)


@pytest.mark.parametrize(("n", "D"), [(40, 6), (13, 6), (5, 9), (6, 6)])
@pytest.mark.parametrize("smallest", [1e-2, 1e-6, 1e-10])
def test_singular_values_are_those_of_extended_precision(n, D, smallest):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, D)) * np.geomspace(1, smallest, D)
    expected = jacobi_singular_values(X - X.astype(np.longdouble).mean(axis=0))[: min(n - 1, D)]
    reduced = range_of(X)
    assert reduced.rank == reduced.varying == min(n - 1, D)
    found = np.sqrt(reduced.total * n)
    np.testing.assert_allclose(
        found, expected, rtol=1e-8, atol=max(n, D) * np.finfo(float).eps * expected[0]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-14 / smallest)


@pytest.mark.parametrize("n", [40, 5])
@pytest.mark.parametrize("smallest", [1e-3, 1e-5, 1e-7])
def test_both_scatters_keep_the_digits_of_small_features(n, smallest):
    rng = np.random.default_rng(0)
    scale = np.array([1, smallest, 1, smallest, 1, 1e3])
    codes = np.arange(n) % 3
    X = (rng.standard_normal((n, 6)) + 3) * scale
    reduced = scatter_range(X, codes, 3)
    own = X - X.mean(axis=0)
    Q = reduced.lift(own, np.eye(reduced.rank))
    np.testing.assert_allclose(Q.T @ Q, np.eye(reduced.rank), atol=1e-7)
    means = np.stack(
        [own[codes == k].mean(axis=0) * np.sqrt((codes == k).mean()) for k in range(3)]
    )
    units, atol = np.outer(scale, scale), 1e-12 / smallest
    np.testing.assert_allclose(Q * reduced.total @ Q.T / units, own.T @ own / n / units, atol=atol)
    np.testing.assert_allclose(
        Q @ reduced.between @ reduced.between.T @ Q.T / units, means.T @ means / units, atol=atol
    )
    np.testing.assert_allclose(
        reduced.embed(own, np.eye(reduced.rank)) @ Q.T / scale, own / scale, atol=atol
    )


@given(
    st.integers(0, 10**6),
    st.integers(3, 20),
    st.integers(1, 12),
    st.integers(0, 10),
    st.integers(0, 2),
)
@settings(max_examples=80)
def test_the_scale_of_a_feature_changes_no_rank(seed, n, D, power, copies):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) + 10
    X = np.concatenate([X, X[:, [0] * copies], np.full((n, 1), 3.3)], axis=1)
    scaled = X.copy()
    scaled[:, rng.integers(D)] *= 10.0**-power
    before, after = range_of(X), range_of(scaled)
    assert before.rank == after.rank == after.varying == min(n - 1, D)


@pytest.mark.parametrize("n", [50, 4])
def test_what_lies_below_the_rounding_of_others_is_left_out_and_counted(n):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    lost = np.concatenate([X[:, :2], X[:, :1], np.full((n, 1), 1e8 / 3), 1e-17 * X[:, 2:]], axis=1)
    reduced = range_of(lost)
    assert (reduced.rank, reduced.varying) == (2, 3)
    kept = range_of(lost * [1, 1, 1, 1, 1e10])
    assert (kept.rank, kept.varying) == (3, 3)


def test_a_large_offset_hides_no_other_feature():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 2)) * [1, 1e-5] + [1e9, 0]
    assert range_of(X).rank == 2
    assert range_of(np.concatenate([X[:, 1:], np.full((100, 1), 1e9)], axis=1)).rank == 1


def test_the_rounding_of_the_data_is_no_direction():
    """A sum of two features of large offset is a third one only up to the digits that its own
    offset leaves.
    """
    X = np.random.default_rng(3).standard_normal((100, 2)) + np.array([1e8, 2e8])
    reduced = range_of(np.concatenate([X, X.sum(axis=1, keepdims=True)], axis=1))
    assert (reduced.rank, reduced.varying) == (2, 2)


@pytest.mark.parametrize("n", [50, 100_000])
def test_the_rounding_of_a_mean_is_no_direction(n):
    """Multiples of 2^-20 near 10^9: their differences and sums are exact, their means are not."""
    X = 1e9 + np.random.default_rng(4).integers(0, 2**20, (n, 2)) / 2.0**20
    reduced = range_of(np.concatenate([X, X.sum(axis=1, keepdims=True)], axis=1))
    assert (reduced.rank, reduced.varying) == (2, 2)


def test_a_feature_of_few_digits_above_its_own_rounding_varies():
    X = 1e9 + np.random.default_rng(4).integers(0, 512, (20_000, 2)) / 2.0**23
    assert range_of(X).rank == 2


@given(
    st.integers(0, 10**6),
    st.integers(4, 25),
    st.integers(1, 25),
    st.integers(2, 4),
    st.integers(0, 3),
)
@settings(max_examples=60)
def test_the_range_loses_nothing(seed, n, D, c, copies):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) + 10
    X = np.concatenate(
        [X, X[:, [0] * copies], np.full((n, 2), 3.3)], axis=1
    )  # dependent and constant features
    codes = np.arange(n) % c
    reduced = scatter_range(X, codes, c)
    centred = X - X.mean(axis=0)
    T = centred.T @ centred / n
    B = sum(
        (codes == k).mean() * np.outer(m, m)
        for k in range(c)
        for m in [centred[codes == k].mean(axis=0)]
    )
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
        turned = problem.principal(
            V @ np.linalg.qr(rng.standard_normal((size, size)))[0], ratios[-1]
        )
        np.testing.assert_allclose(turned @ turned.T, V @ V.T, atol=1e-10)
        inner = turned.T @ problem.difference(ratios[-1]) @ turned
        np.testing.assert_allclose(inner, np.diag(np.sort(np.diag(inner))[::-1]), atol=1e-10)
        between, total = problem.traces(V)
        B = problem.between @ problem.between.T
        np.testing.assert_allclose(between, np.trace(V.T @ B @ V), atol=1e-12)
        np.testing.assert_allclose(
            total, np.trace(V.T @ (np.diag(problem.total) + overlap * B) @ V), atol=1e-12
        )


@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9, LARGEST_RATIO])
@pytest.mark.parametrize(("equal", "size"), [(False, 5), (False, 9), (True, 2), (True, 5)])
def test_a_few_eigenvectors_of_a_large_problem_are_those_of_the_dense_form(ratio, equal, size):
    """Also where more are wanted than B has, and where eigenvalues are equal, of which
    iterations may miss some.
    """
    rng = np.random.default_rng(size)
    H = np.linalg.qr(rng.standard_normal((LARGE, 6)))[0] * rng.uniform(0.5, 2, 6)
    total = np.geomspace(3, 0.01, LARGE)
    if equal:
        H, total[:6] = np.eye(LARGE, 6) * [2, 2, 1.5, 1.5, 1.5, 1], 3
    problem = Scatters(H, total, overlap=0.0 if equal else 0.2)
    V = problem.leading(ratio, size)
    matrix = problem.difference(ratio)
    values = np.linalg.eigvalsh(matrix)[::-1][:size]
    np.testing.assert_allclose(V.T @ V, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(
        V.T @ matrix @ V, np.diag(values), atol=1e-12 * np.abs(matrix).max() * LARGE
    )


def test_an_eigenvector_that_iterations_miss_is_noticed(monkeypatch):
    rng = np.random.default_rng(0)
    problem = Scatters(rng.standard_normal((LARGE, 4)), rng.uniform(1, 2, LARGE))
    expected = problem.leading(0.5, 2)

    def without_the_first(operator, k, **options):
        values, V = eigsh(operator, k + 1, **options)
        return values[:-1], V[:, :-1]

    monkeypatch.setattr("raysel.numerics.discriminants.eigsh", without_the_first)
    V = problem.leading(0.5, 2)
    np.testing.assert_allclose(V @ V.T, expected @ expected.T, atol=1e-10)


def test_a_ratio_of_one_is_taken_as_the_limit_from_below():
    H = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    problem = Scatters(
        H, np.array([1.0, 0.5, 0.5])
    )  # B = T on e1 and on e2 + e3; T exceeds B on e2 - e3
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
