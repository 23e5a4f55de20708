"""Training sets of real images, as the filters' papers draw them: few of each class."""

from __future__ import annotations

import numpy as np
import pytest


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
