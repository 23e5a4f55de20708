"""The scatter matrices of partly labelled tasks against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from task_sets import dense_scatters, make_task

from raysel.base.projections.task_samples import task_samples
from raysel.core.errors import DataError
from raysel.solvers.mtda.semisupervised_mtda import partly_labelled


def partly(seed=0, n=50, D=6, units=1.0):
    X, y = make_task(seed, n, D)
    known = np.arange(n) % 3 > 0
    return X, y, known, partly_labelled(task_samples("", X * units, np.where(known, y, -1), -1))


def in_features(task, X, matrix):
    """A matrix of the range in the original features."""
    Q = task.reduced.lift(X - task.reduced.mean, np.eye(task.reduced.rank))
    return Q @ matrix @ Q.T


def test_the_labelled_samples_make_the_numerator_and_all_of_them_the_range():
    X, y, known, task = partly()
    B, labelled = dense_scatters(X[known], y[known])
    between = task.reduced.between
    np.testing.assert_allclose(in_features(task, X, between @ between.T), B, atol=1e-10)
    np.testing.assert_allclose(in_features(task, X, task.labelled), labelled, atol=1e-10)
    np.testing.assert_allclose(in_features(task, X, np.diag(task.reduced.total)), np.cov(X.T, bias=True), atol=1e-10)
    assert task.reduced.class_counts.tolist() == np.bincount(y[known]).tolist()


@pytest.mark.parametrize(("eta", "mu", "n_neighbors"), [(0.5, 0.0, 5), (2.0, 30.0, 4), (0.1, 5.0, 1000)])
def test_the_denominator_is_the_weighted_sum(eta, mu, n_neighbors):
    X, y, known, task = partly(1)
    near = NearestNeighbors(n_neighbors=min(n_neighbors, 49)).fit(X).kneighbors(return_distance=False)
    A = np.zeros((50, 50))
    np.put_along_axis(A, near, 1.0, axis=1)
    A = (A + A.T) / 2
    graph = X.T @ (np.diag(A.sum(axis=1)) - A) @ X / 50**2
    expected = dense_scatters(X[known], y[known])[1] + eta * np.cov(X.T, bias=True) + mu * graph
    values, turn = task.denominator(eta, mu, n_neighbors)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(in_features(task, X, turn * values @ turn.T), expected, atol=1e-9)


def test_small_eigenvalues_of_the_denominator_are_right():
    """T of features in other units is T with its rows and columns scaled, however far apart the units are."""
    units = np.array([1.0, 1e-5, 1.0, 1e-7, 1e-3])
    X, _, known, task = partly(7, n=40, D=5, units=units)
    plain = np.cov(X[known].T, bias=True) + 0.5 * np.cov(X.T, bias=True)
    values, turn = task.denominator(0.5, 0.0, 5)
    U = task.reduced.lift(X * units - task.reduced.mean, turn)
    assert values.min() > 0
    np.testing.assert_allclose(U * values @ U.T / np.outer(units, units), plain, atol=1e-6)


def test_samples_that_do_not_vary_are_refused():
    with pytest.raises(DataError, match="the data: all features are constant"):
        partly_labelled(task_samples("", np.ones((6, 2)), np.array([0, 0, 1, 1, -1, -1]), -1))
