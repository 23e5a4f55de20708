"""PCA against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.decomposition
from task_sets import make_task

from raysel.baselines.pca import PCA


@pytest.mark.parametrize("D", [10, 90])
def test_pca_is_scikit_learns(D):
    X, y = make_task(0, D=D)
    ours, theirs = PCA(n_components=3).fit(X, y), sklearn.decomposition.PCA(n_components=3).fit(X)
    np.testing.assert_allclose(np.abs(ours.projections_[0].T @ theirs.components_.T), np.eye(3), atol=1e-8)
    assert ours.objective_path_[0] == pytest.approx(theirs.explained_variance_ratio_.sum())
    expected = np.sqrt(((theirs.components_.T * theirs.explained_variance_ratio_) ** 2).sum(axis=1))
    np.testing.assert_allclose(ours.scores_, expected, atol=1e-8)
