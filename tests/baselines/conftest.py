"""Real data for the tests of the baselines: few images of each class, and scaled descriptors of
photographs.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score
from sklearn.model_selection import KFold

from raysel.data.loading import load_dataset
from raysel.data.scaling import ModalityScaler, make_scaler


def first_of_each(X, y, n):
    chosen = np.concatenate([np.flatnonzero(y == label)[:n] for label in np.unique(y)])
    X = np.ascontiguousarray(X.reshape(len(y), -1)[chosen], dtype=np.float64)
    X.flags.writeable = False
    return X, y[chosen]


@pytest.fixture(scope="session")
def orl(real_data):
    """Five images of each of the 40 persons, 1024 pixels in [0, 1]."""
    with np.load(real_data("ORL.npz")) as file:
        return first_of_each(file["X"] / 255.0, file["y"], 5)


@pytest.fixture(scope="session")
def usps(real_data):
    """Four images of each of the 10 digits, 256 pixels in [0, 1]."""
    with np.load(real_data("USPS.npz")) as file:
        return first_of_each((file["X"].astype(np.float64) + 1.0) / 2.0, file["y"], 4)


def images_of_each(path, per_class, low, high):
    """The first images of each class, in [0, 1] and flat, with their labels and shape."""
    with np.load(path) as file:
        X, y = (file["X"].astype(float) - low) / (high - low), file["y"]
    chosen = np.concatenate([np.flatnonzero(y == value)[:per_class] for value in np.unique(y)])
    return X[chosen].reshape(len(chosen), -1), y[chosen], X.shape[1:]


@pytest.fixture(scope="session")
def orl_images(real_data):
    """Five images of each person, their labels and shape."""
    return images_of_each(real_data("ORL.npz"), 5, 0.0, 255.0)


@pytest.fixture(scope="session")
def usps_images(real_data):
    """Forty images of each digit, their labels and shape."""
    return images_of_each(real_data("USPS.npz"), 40, -1.0, 1.0)


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


@pytest.fixture(scope="session")
def msrcv1(real_data):
    """z-scores of the samples, in an order without structure, their labels, and the modalities."""
    dataset = load_dataset(str(real_data("MSRCv1_6v.npz")))
    order = np.random.default_rng(0).permutation(len(dataset.X))
    X = make_scaler("zscore", dataset.layout).fit_transform(dataset.X[order])
    return X, dataset.y[order], dict(dataset.layout.modalities)
