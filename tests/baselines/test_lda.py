"""LDA by ratio trace against scikit-learn's and a dense generalised eigenproblem."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from task_sets import dense_scatters, make_task

from raysel.baselines.lda import LDA


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
