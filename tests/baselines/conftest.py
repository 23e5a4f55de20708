"""MSRC-v1, scaled."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.data.loading import load_dataset
from raysel.data.scaling import make_scaler


@pytest.fixture(scope="session")
def msrcv1(real_data):
    """z-scores of the samples, in an order without structure, their labels, and the modalities."""
    dataset = load_dataset(str(real_data("MSRCv1_6v.npz")))
    order = np.random.default_rng(0).permutation(len(dataset.X))
    X = make_scaler("zscore", dataset.layout).fit_transform(dataset.X[order])
    return X, dataset.y[order], dict(dataset.layout.modalities)
