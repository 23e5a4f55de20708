"""The loader against figures that were measured without it: raw-pixel 1-NN accuracy on real images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from raysel.data.loading import load_dataset


@pytest.mark.parametrize(
    ("name", "per_class", "accuracy"),
    [("ORL.npz", 5, 0.883), ("UMIST.npz", 4, 0.775), ("USPS.npz", 4, 0.686), ("ORL_28x23.npz", 5, 0.945)],
)
def test_raw_pixel_accuracy(real_data, name, per_class, accuracy):
    data = load_dataset(real_data(name))
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        train = np.concatenate(
            [rng.choice(np.flatnonzero(data.y == label), per_class, replace=False) for label in data.classes]
        )
        test = np.setdiff1d(np.arange(data.n_samples), train)
        model = KNeighborsClassifier(1, algorithm="brute").fit(data.X[train], data.y[train])
        scores.append(model.score(data.X[test], data.y[test]))
    assert np.mean(scores) == pytest.approx(accuracy, abs=0.02)


@pytest.mark.parametrize("name", ["ORL.npz", "ORL_28x23.npz", "USPS.npz"])
def test_images_stand_upright(real_data, name):
    """A mean face or digit is more like its left-right mirror image than like its top-down one."""
    data = load_dataset(real_data(name))
    mean = data.X.mean(axis=0).reshape(data.layout.shape)
    alike = [np.corrcoef(mean.ravel(), other.ravel())[0, 1] for other in (mean[:, ::-1], mean[::-1])]
    assert alike[0] > alike[1]
