"""Training sets of real images for the tests of embedded selectors."""

from __future__ import annotations

import numpy as np
import pytest


def training_set(path, per_class, low, high):
    """The first images of each class, in [0, 1] and flat, with their labels and shape."""
    with np.load(path) as file:
        X, y = (file["X"].astype(float) - low) / (high - low), file["y"]
    chosen = np.concatenate([np.flatnonzero(y == value)[:per_class] for value in np.unique(y)])
    return X[chosen].reshape(len(chosen), -1), y[chosen], X.shape[1:]


@pytest.fixture(scope="package")
def orl(real_data):
    return training_set(real_data("ORL.npz"), 5, 0.0, 255.0)


@pytest.fixture(scope="package")
def usps(real_data):
    return training_set(real_data("USPS.npz"), 40, -1.0, 1.0)
