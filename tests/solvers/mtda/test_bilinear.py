"""Half-steps and traces of matrix-valued tasks against dense Kronecker products and a direct ascent."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize
from task_sets import dense_scatters, matrix_tasks, task_samples_of

from raysel.core.errors import ConfigError, DataError
from raysel.solvers.mtda.bilinear_mtda import alternate_sides, climb, matrix_task


@pytest.fixture(scope="module")
def reduced():
    tasks, shapes = matrix_tasks(0)
    return tasks, [matrix_task(t, s) for t, s in zip(task_samples_of(tasks), shapes.values(), strict=True)]


def orthonormal(rows, columns, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((rows, columns)))[0]


def test_traces_and_embeddings_are_those_of_the_kronecker_product(reduced):
    tasks, matrices = reduced
    for (X, y), matrix, (a, b) in zip(tasks, matrices, ((6, 5), (7, 4)), strict=True):
        factors = orthonormal(a, 3), orthonormal(b, 2, 1)
        U = matrix.lift(factors)
        np.testing.assert_allclose(U, np.kron(matrix.rows @ factors[0], matrix.columns @ factors[1]))
        B, T = dense_scatters(X, y)
        np.testing.assert_allclose(matrix.traces(factors), [np.trace(U.T @ B @ U), np.trace(U.T @ T @ U)])
        np.testing.assert_allclose(matrix.embed(factors), (X - X.mean(axis=0)) @ U, atol=1e-10)
        np.testing.assert_allclose(matrix.column_ratios(factors), np.diag(U.T @ B @ U) / np.diag(U.T @ T @ U))


def test_constant_rows_and_columns_are_left_out():
    (X, y), *_ = matrix_tasks(1)[0]
    images = X.reshape(-1, 6, 5).copy()
    images[:, 2], images[:, :, 4] = 7.0, -1.0
    (task,) = task_samples_of([(images.reshape(len(y), -1), y)])
    matrix = matrix_task(task, (6, 5))
    assert matrix.samples.shape == (50, 5, 4)
    assert np.abs(matrix.rows[2]).max() < 1e-12 > np.abs(matrix.columns[4]).max()
    (flat,) = task_samples_of([(np.ones((4, 6)), np.array([0, 0, 1, 1]))])
    with pytest.raises(DataError, match="task 't0': all features are constant"):
        matrix_task(flat, (2, 3))


def test_the_best_of_many_climbs_is_that_of_a_direct_ascent(reduced):
    _, (matrix, _) = reduced
    ratio, n = 0.2, len(matrix.samples)

    def loss(flat):
        L, R = np.linalg.qr(flat[:12].reshape(6, 2))[0], np.linalg.qr(flat[12:].reshape(5, 2))[0]
        between, total = (((L.T @ part @ R) ** 2).sum() / n for part in (matrix.classes, matrix.samples))
        return ratio * total - between

    rng = np.random.default_rng(0)
    ascended = max(-minimize(loss, rng.standard_normal(22)).fun for _ in range(10))
    climbed = [climb(matrix, orthonormal(5, 2, seed), (2, 2), ratio) for seed in range(10)]
    values = [value for value, _ in climbed]
    assert max(values) == pytest.approx(ascended, abs=1e-6)
    for value, (L, R) in climbed:
        between, total = matrix.traces((L, R))
        assert value == pytest.approx(between - ratio * total, abs=1e-9)


def test_the_shared_ratio_never_falls(reduced):
    _, matrices = reduced
    weights = np.array([0.3, 1.0])
    steps = islice(alternate_sides(matrices, ["a", "b"], (2, 2), weights, 3, np.random.RandomState(0)), 15)
    ratios = []
    for ratio, factors in steps:
        between, total = weights @ np.array([m.traces(f) for m, f in zip(matrices, factors, strict=True)])
        assert ratio == pytest.approx(between / total)
        ratios.append(ratio)
    assert (np.diff(ratios) >= -1e-12).all()
    with pytest.raises(ConfigError, match=r"bilinear=\(2, 5\) does not fit b: give at most \(7, 4\)"):
        next(alternate_sides(matrices, ["a", "b"], (2, 5), weights, 1, np.random.RandomState(0)))
