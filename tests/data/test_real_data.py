"""The loader against what is known of real files: their README's, and accuracies that were
measured without it.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from raysel.data.loading import load_dataset


@pytest.mark.parametrize(
    ("name", "n", "widths", "n_classes"),
    [
        ("MSRCv1_6v.npz", 210, [1302, 48, 512, 100, 256, 200], 7),
        ("Handwritten_mfeat.npz", 2000, [240, 76, 216, 47, 64, 6], 10),
        ("MSRCv2_6v_multilabel.npz", 591, [48, 256, 100, 1230, 512, 1302], 23),
        ("Scene_multilabel.npz", 2407, [49] * 6, 6),
    ],
)
def test_real_files_are_what_their_readme_says(real_data, name, n, widths, n_classes):
    data = load_dataset(real_data(name))
    assert (data.n_samples, list(data.layout.modalities.values()), len(data.classes)) == (
        n,
        widths,
        n_classes,
    )


@pytest.mark.parametrize(
    ("name", "per_class", "accuracy"),
    [
        ("ORL.npz", 5, 0.883),
        ("UMIST.npz", 4, 0.775),
        ("USPS.npz", 4, 0.686),
        ("ORL_28x23.npz", 5, 0.945),
    ],
)
def test_accuracy_of_the_nearest_image_is_that_measured_without_the_loader_and_images_stand_upright(
    real_data, name, per_class, accuracy
):
    data = load_dataset(real_data(name))
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        drawn = [
            rng.choice(np.flatnonzero(data.y == label), per_class, replace=False)
            for label in data.classes
        ]
        train = np.concatenate(drawn)
        test = np.setdiff1d(np.arange(data.n_samples), train)
        model = KNeighborsClassifier(1, algorithm="brute").fit(data.X[train], data.y[train])
        scores.append(model.score(data.X[test], data.y[test]))
    assert np.mean(scores) == pytest.approx(accuracy, abs=0.02)
    # A mean face or digit is more like its left-right mirror image than like its top-down one.
    mean = data.X.mean(axis=0).reshape(data.layout.shape)
    alike = [
        np.corrcoef(mean.ravel(), other.ravel())[0, 1] for other in (mean[:, ::-1], mean[::-1])
    ]
    assert name == "UMIST.npz" or alike[0] > alike[1]
