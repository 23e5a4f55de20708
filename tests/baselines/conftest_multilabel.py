"""MSRC-v2 with several labels: five folds, scaled by the training samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score
from sklearn.model_selection import KFold

from raysel.data.scaling import ModalityScaler


@pytest.fixture(scope="session")
def msrcv2(real_data):
    """(X_train, Y_train, X_test, Y_test) of each fold; the 22 labels of the paper."""
    with np.load(real_data("MSRCv2_6v_multilabel.npz")) as file:
        views = [file[f"view_{i}"] for i in range(6)]
        X, Y = np.hstack(views).astype(np.float64), file["Y"].astype(np.int64)
    Y = Y[:, Y.sum(axis=0) > 3]
    widths = {str(i): view.shape[1] for i, view in enumerate(views)}
    folds = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        scaler = ModalityScaler(widths).fit(X[train])
        folds.append((scaler.transform(X[train]), Y[train], scaler.transform(X[test]), Y[test]))
    return folds


@pytest.fixture(scope="session")
def figures():
    """Mean over folds of macro precision, macro F1, micro precision and micro F1 of a model."""

    def measure(model, folds):
        found = []
        for X, Y, X_test, Y_test in folds:
            predicted = model.fit(X, Y).predict(X_test)
            found.append(
                [
                    metric(Y_test, predicted, average=average, zero_division=0)
                    for average in ("macro", "micro")
                    for metric in (precision_score, f1_score)
                ]
            )
        return np.mean(found, axis=0)

    return measure
