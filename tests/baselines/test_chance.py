"""No embedded selector predicts or ranks better than chance where the labels are permuted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from raysel.baselines.dfs import DFS
from raysel.baselines.gbr import BilinearRegression
from raysel.baselines.glspfs import GLSPFS
from raysel.baselines.rfs import RFS


@pytest.mark.parametrize("selector", [RFS(), GLSPFS(), DFS(), BilinearRegression((8, 8))], ids=repr)
def test_permuted_labels(selector):
    X, y = load_digits(return_X_y=True)
    X, y = X[:900] / 16.0, y[:900]
    permuted = np.random.default_rng(0).permutation(y)
    accuracies = []
    for labels in (y, permuted):
        selector.set_params(n_features_to_select=20).fit(X[:300], labels[:300])
        nearest = KNeighborsClassifier(1).fit(selector.transform(X[:300]), labels[:300])
        found = [nearest.score(selector.transform(X[300:]), labels[300:])]
        if hasattr(selector, "predict"):
            found.append(selector.score(X[300:], labels[300:]))
        accuracies.append(found)
    assert min(accuracies[0]) > 0.6
    assert max(accuracies[1]) < 0.15  # chance .1, standard deviation .012
