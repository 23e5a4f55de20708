"""PCA and both kinds of LDA against scikit-learn's and dense eigenproblems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import sklearn.decomposition
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from task_sets import assert_same_spaces, best_ratio, dense_scatters, make_task

from raysel.baselines.linear_projections import LDA, PCA, TraceRatioLDA
from raysel.solvers.mtda.mtda import MTDA


@pytest.mark.parametrize("D", [10, 90])
def test_pca_is_scikit_learns(D):
    X, y = make_task(0, D=D)
    ours, theirs = PCA(n_components=3).fit(X, y), sklearn.decomposition.PCA(n_components=3).fit(X)
    np.testing.assert_allclose(
        np.abs(ours.projections_[0].T @ theirs.components_.T), np.eye(3), atol=1e-8
    )
    assert ours.objective_path_[0] == pytest.approx(theirs.explained_variance_ratio_.sum())
    expected = np.sqrt(((theirs.components_.T * theirs.explained_variance_ratio_) ** 2).sum(axis=1))
    np.testing.assert_allclose(ours.scores_, expected, atol=1e-8)


def test_lda_without_shrinkage_is_scikit_learns():
    X, y = make_task(1)
    ours = LDA(shrinkage=0.0).fit(X, y).transform(X)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    theirs = theirs - theirs.mean(axis=0)
    np.testing.assert_allclose(ours * np.sign((ours * theirs).sum(axis=0)), theirs, atol=1e-8)


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 1.0])
def test_lda_solves_the_generalised_eigenproblem(shrinkage):
    X, y = make_task(2)
    B, T = dense_scatters(X, y)
    W = (1 - shrinkage) * (T - B) + shrinkage * np.trace(T - B) / len(B) * np.eye(len(B))
    values, vectors = scipy.linalg.eigh(B, W)
    lda = LDA(shrinkage=shrinkage).fit(X, y)
    U = lda.projections_[0]
    np.testing.assert_allclose(U.T @ W @ U, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(U @ U.T, vectors[:, -3:] @ vectors[:, -3:].T, atol=1e-8)
    assert lda.objective_path_[0] == pytest.approx((values[-3:] / (1 + values[-3:])).sum())


def test_lda_with_more_features_than_samples_separates_the_classes():
    X, y = make_task(3, n=20, D=50)
    Z = LDA(shrinkage=0.0).fit(X, y).transform(X)
    means = np.stack([Z[y == c].mean(axis=0) for c in range(4)])
    assert np.abs(Z - means[y]).max() < 1e-4 * np.abs(means).max()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_it_is_the_root_of_the_trace_difference(size):
    X, y = make_task(20 + size)
    ratio, bases = best_ratio([dense_scatters(X, y)], [size], [1.0])
    found = TraceRatioLDA(n_components=size).fit(X, y)
    assert found.ratios_ == pytest.approx([ratio], abs=1e-10)
    assert_same_spaces(found.projections_, bases, atol=1e-7)


def test_trace_ratio_lda_is_mtda_of_one_task():
    tasks = [make_task(4), make_task(5, n=40, D=7, c=3)]
    alone = TraceRatioLDA().fit_tasks(tasks)
    for task, ratio, U in zip(tasks, alone.ratios_, alone.projections_, strict=True):
        single = MTDA().fit(*task)
        assert ratio == pytest.approx(single.objective_path_[-1], abs=1e-12)
        np.testing.assert_allclose(
            U @ U.T, single.projections_[0] @ single.projections_[0].T, atol=1e-8
        )
