"""The planted truth is there, and nowhere else."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from raysel.core.errors import ConfigError
from raysel.data.layouts import Matrix
from raysel.data.synthetic import make_matrix_classification, make_multimodal_classification


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


WIDTHS = {"a": 6, "b": 4, "noise": 5}
MULTIMODAL = partial(make_multimodal_classification, WIDTHS)


@pytest.mark.parametrize("multilabel", [False, True])
def test_labels_explain_planted_features_of_named_modalities_and_no_others(multilabel):
    dataset, mask = make_multimodal_classification(
        WIDTHS, {"a": 3, "b": 1}, 90, 4, noise=0.0, multilabel=multilabel, random_state=2
    )
    assert dataset.is_multilabel == multilabel
    assert [int(mask[columns].sum()) for columns in dataset.layout.slices().values()] == [3, 1, 0]
    assert (dataset.X[:, ~mask] == 0).all()
    indicator = dataset.y if multilabel else np.eye(4)[dataset.y]
    effects, residual, rank, _ = np.linalg.lstsq(indicator, dataset.X[:, mask], rcond=None)
    assert rank == 4
    np.testing.assert_allclose(residual, 0, atol=1e-20)
    np.testing.assert_allclose(effects.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(effects.std(axis=0), 1)


def test_shared_noise_correlates_features_of_one_modality_only():
    data = [
        make_multimodal_classification(WIDTHS, {}, 5000, noise=2.0, shared=part, random_state=0)[0] for part in (0, 1)
    ]
    inside = np.zeros((15, 15), dtype=bool)
    for columns in data[0].layout.slices().values():
        inside[columns, columns] = True
    independent, common = (np.abs(np.corrcoef(dataset.X.T) - np.eye(15)) for dataset in data)
    chance = 5 / np.sqrt(5000)
    assert independent.max() < chance
    assert common[~inside].max() < chance
    assert common[inside].max() > 0.5
    for dataset in data:
        np.testing.assert_allclose(dataset.X.std(axis=0), 2.0, rtol=0.05)
    assert [np.linalg.matrix_rank(dataset.X[:, :6]) for dataset in data] == [6, 5]


@pytest.mark.parametrize(
    ("make", "options", "culprit"),
    [
        *((make_matrix_classification, {"n_informative": n}, f"n_informative={n}") for n in (13, 0, 65)),
        (make_matrix_classification, {"n_classes": 1}, "n_classes=1"),
        (make_matrix_classification, {"n_samples": 2}, "n_samples=2"),
        (MULTIMODAL, {"informative": {"c": 1}}, r"\{'c': 1\} does not fit modalities; the modalities are a, b"),
        (MULTIMODAL, {"informative": {"a": 7}}, r"\{'a': 7\} does not fit modalities; give at most its 6"),
        (MULTIMODAL, {"informative": {}, "n_classes": 1}, "n_classes=1"),
        (MULTIMODAL, {"informative": {}, "shared": 1.5}, "shared=1.5"),
    ],
)
def test_refuses_what_it_cannot_plant(make, options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make(**options)
