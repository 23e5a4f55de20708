"""The planted truth is there, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from raysel.data import Matrix, make_matrix_classification
from raysel.errors import ConfigError


@settings(deadline=None)
@given(st.integers(2, 5), st.tuples(st.integers(1, 6), st.integers(1, 6)), st.integers(0, 2**32 - 1), st.data())
def test_class_means_are_of_rank_one_on_the_planted_cells_only(n_classes, shape, seed, data):
    rows, columns = data.draw(st.integers(1, shape[0])), data.draw(st.integers(1, shape[1]))
    dataset, mask = make_matrix_classification(3 * n_classes, shape, n_classes, rows * columns, 0.0, seed)
    assert dataset.layout == Matrix(*shape)
    assert mask.sum() == rows * columns
    means = np.array([dataset.X[dataset.y == label].mean(axis=0) for label in dataset.classes])
    assert (means[:, ~mask] == 0).all()
    assert (means.std(axis=0)[mask] >= 0.5 - 1e-12).all()
    assert all(np.linalg.matrix_rank(mean.reshape(shape), tol=1e-8) <= 1 for mean in means)


def test_a_univariate_test_finds_the_planted_cells_through_the_noise():
    dataset, mask = make_matrix_classification(600, (12, 10), 4, 20, noise=1.0, random_state=1)
    f, _ = f_classif(dataset.X, dataset.y)
    assert set(np.argsort(-f)[:20]) == set(np.flatnonzero(mask))
    assert np.bincount(dataset.y).tolist() == [150] * 4


def test_the_seed_decides():
    one, other, third = (make_matrix_classification(random_state=seed)[0].content_hash for seed in (3, 3, 4))
    assert one == other
    assert one != third


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"n_classes": 1}, "n_classes=1"),
        ({"n_samples": 2}, "n_samples=2"),
        ({"n_informative": 13}, "n_informative=13"),
        ({"n_informative": 0}, "n_informative=0"),
        ({"n_informative": 65}, "n_informative=65"),
    ],
)
def test_refuses_what_it_cannot_plant(options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make_matrix_classification(**options)
