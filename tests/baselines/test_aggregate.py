"""Aggregate with an intermediate dimension and by the ratio trace, against dense matrices."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.decomposition import PCA
from task_sets import make_task

from raysel.baselines.aggregate import Aggregate
from raysel.baselines.linear_projections import LDA, TraceRatioLDA
from raysel.core.errors import ConfigError


def pooled(tasks, dim):
    """Samples of all tasks reduced by scikit-learn's PCA, scaled and padded, and their classes."""
    rows, codes = [], []
    for X, y in tasks:
        Z = X - X.mean(axis=0)
        if dim is not None:
            pca = PCA(min(dim, *X.shape, len(X) - 1), svd_solver="full").fit(X)
            V = pca.components_.T
            Z = Z @ (V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]))
        rows.append(Z / np.sqrt((Z**2).sum() / len(Z)))
        codes.append(y + 100 * len(codes))
    width = max(Z.shape[1] for Z in rows)
    return np.concatenate(
        [np.pad(Z, ((0, 0), (0, width - Z.shape[1]))) for Z in rows]
    ), np.concatenate(codes)


def scatters(X, y):
    centred = X - X.mean(axis=0)
    means = {c: centred[y == c].mean(axis=0) for c in set(y)}
    B = sum((y == c).mean() * np.outer(m, m) for c, m in means.items())
    return B, centred.T @ centred / len(X) - B


def require_same_directions(model, projected):
    """Each column is the same but for its scale, and in each task for its sign."""
    stop, lengths = (
        0,
        np.linalg.norm(projected, axis=0)
        / np.linalg.norm(np.concatenate(model.embeddings_), axis=0),
    )
    for Z in model.embeddings_:
        own = projected[stop : stop + len(Z)] / lengths
        np.testing.assert_allclose(Z * np.sign((Z * own).sum(axis=0)), own, atol=1e-6)
        stop += len(Z)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), dim=st.sampled_from([None, 4, 7]), size=st.integers(1, 4))
def test_the_ratio_trace_has_the_eigenvectors_of_the_dense_matrices(seed, dim, size):
    tasks = [make_task(seed), make_task(seed + 1, n=40, D=7, c=3)]
    X, y = pooled(tasks, dim)
    B, W = scatters(X, y)
    values, vectors = scipy.linalg.eig(np.linalg.solve(W, B))
    order = np.argsort(-values.real)[:size]
    model = Aggregate(n_components=size, intermediate_dim=dim, criterion="ratio_trace").fit_tasks(
        tasks
    )
    require_same_directions(model, X @ vectors[:, order].real)
    ratios = values.real[order] / (1 + values.real[order])
    assert model.objective_path_[0] == pytest.approx(ratios.sum(), rel=1e-8)
    assert (model.n_iter_, model.converged_) == (1, True)
    for i, (own, _) in enumerate(tasks):
        np.testing.assert_allclose(model.transform_task(i, own), model.embeddings_[i], atol=1e-9)


def test_shrinkage_of_the_ratio_trace_is_that_of_the_dense_matrix():
    tasks = [make_task(1), make_task(2, n=40, D=7, c=3)]
    X, y = pooled(tasks, 6)
    B, W = scatters(X, y)
    W = 0.8 * W + 0.2 * np.trace(W) / len(W) * np.eye(len(W))
    _, vectors = scipy.linalg.eigh(B, W)
    model = Aggregate(
        n_components=3, shrinkage=0.2, intermediate_dim=6, criterion="ratio_trace"
    ).fit_tasks(tasks)
    require_same_directions(model, X @ vectors[:, :-4:-1])


def test_the_trace_ratio_of_reduced_tasks_is_that_of_the_pooled_samples():
    tasks = [make_task(3), make_task(4, n=30, D=90, c=3)]
    X, y = pooled(tasks, 6)
    expected, model = Aggregate().fit(X, y), Aggregate(intermediate_dim=6).fit_tasks(tasks)
    # One task of the pooled samples has one class more than the tasks' classes less one of each.
    fewer = Aggregate(n_components=5).fit(X, y)
    assert model.objective_path_[-1] == pytest.approx(fewer.objective_path_[-1], abs=1e-10)
    assert expected.projections_[0].shape == (6, 6)
    assert [U.shape for U in model.projections_] == [(10, 5), (90, 5)]


def test_one_task_by_the_ratio_trace_is_lda():
    X, y = make_task(5)
    ours, lda = (
        m.fit(X, y) for m in (Aggregate(shrinkage=0.1, criterion="ratio_trace"), LDA(shrinkage=0.1))
    )
    np.testing.assert_array_equal(ours.predict(X[::2]), lda.predict(X[::2]))
    U, V = (m.projections_[0] / np.linalg.norm(m.projections_[0], axis=0) for m in (ours, lda))
    np.testing.assert_allclose(U, V, atol=1e-9)


def test_a_singular_within_class_scatter_is_warned_of():
    tasks = [make_task(9, n=12, D=30), make_task(10, n=9, D=40, c=3)]
    exceeds = "intermediate_dim=12 exceeds the number of samples minus 1 of every task"
    with pytest.warns(
        LinAlgWarning, match=f"within-class scatter is singular in 12 dimensions: {exceeds}"
    ):
        Aggregate(intermediate_dim=12, criterion="ratio_trace").fit_tasks(tasks)
    few = [make_task(11, n=8, D=30), make_task(12, n=40, D=40, c=20)]
    freedom = "the pooled data have rank 30, but only 24 degrees of freedom within classes"
    with pytest.warns(LinAlgWarning, match=freedom):
        Aggregate(intermediate_dim=30, criterion="ratio_trace").fit_tasks(few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Aggregate(intermediate_dim=5, criterion="ratio_trace").fit_tasks(tasks)
        Aggregate(intermediate_dim=12, criterion="ratio_trace", shrinkage=0.1).fit_tasks(tasks)
        Aggregate(intermediate_dim=12).fit_tasks(tasks)
        # Nothing is singular where the tasks have fewer columns than samples, whatever dimension
        # they are reduced to.
        Aggregate(intermediate_dim=300, criterion="ratio_trace").fit_tasks(
            [make_task(9), make_task(10, n=40, D=7)]
        )


def test_a_scatter_that_is_singular_in_the_columns_of_one_task_is_warned_of():
    # 96 degrees of freedom for 30 directions, but 12 samples of 4 classes for the 20 columns that
    # one task has alone.
    tasks = [make_task(14, n=12, D=30), make_task(15, n=92, D=10)]
    X, y = pooled(tasks, None)
    B, W = scatters(X, y)
    assert len(y) - len(set(y)) > np.linalg.matrix_rank(B + W) > np.linalg.matrix_rank(W)
    with pytest.warns(LinAlgWarning, match="a task has too few samples for the columns"):
        Aggregate(criterion="ratio_trace").fit_tasks(tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Aggregate(criterion="ratio_trace", intermediate_dim=8).fit_tasks(tasks)


def test_bad_parameters_are_named():
    X, y = make_task(13)
    with pytest.raises(ConfigError, match="n_components=6 exceeds intermediate_dim=5"):
        Aggregate(n_components=6, intermediate_dim=5).check(10)
    with pytest.raises(ConfigError):
        Aggregate(criterion="trace").check(10)
    with pytest.raises(ConfigError):
        Aggregate(n_components=5, criterion="ratio_trace").fit(X, y)
    with pytest.raises(ConfigError):
        Aggregate(n_components=5, criterion="ratio_trace").check_training(y)
    Aggregate(n_components=5).check_training(y)
    two = Aggregate({"a": 5, "b": 5}, n_components=4, criterion="ratio_trace")
    codes, tasks = np.array([0, 1, 2] * 2 + [0, 1, 2] * 2), np.repeat([0, 1], 6)
    two.check_training(codes, tasks)
    with pytest.raises(ConfigError):
        two.set_params(n_components=5).check_training(codes, tasks)


def test_aggregate_is_one_trace_ratio_lda_of_the_padded_samples():
    tasks = [make_task(6), make_task(7, n=40, D=7, c=3)]
    padded = np.zeros((100, 10))
    for (X, _), rows in zip(tasks, (slice(0, 60), slice(60, 100)), strict=True):
        centred = X - X.mean(axis=0)
        padded[rows, : X.shape[1]] = centred / np.sqrt((centred**2).sum() / len(X))
    classes = np.concatenate([tasks[0][1], tasks[1][1] + 4])
    expected = TraceRatioLDA(n_components=5).fit(padded, classes)
    ours = Aggregate().fit_tasks(tasks)
    assert ours.objective_path_[-1] == pytest.approx(expected.objective_path_[-1], abs=1e-10)
    Z = expected.transform(padded)
    for i, rows in enumerate((slice(0, 60), slice(60, 100))):
        own = ours.transform_task(i, tasks[i][0])
        np.testing.assert_allclose(own @ own.T, Z[rows] @ Z[rows].T, atol=1e-8)
        np.testing.assert_allclose(own, ours.embeddings_[i], atol=1e-10)


def test_aggregate_warns_of_directions_that_pooling_loses():
    tasks = [make_task(14, D=4), make_task(15, n=40, D=3, c=3)]
    lost = [(X * [1.0, 1.0, 1e-17, 1.0][: X.shape[1]], y) for X, y in tasks]
    with pytest.warns(LinAlgWarning):
        assert Aggregate().fit_tasks(lost).ranks_.tolist() == [3]
