"""The planted truth is there, and nowhere else."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Tensor
from raysel.data.loading import load_dataset
from raysel.data.synthetic import (
    make_matrix_classification,
    make_multimodal_classification,
    make_tensor_classification,
)
from raysel.data.targets import Labels


@given(
    st.integers(2, 5),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_class_means_are_of_rank_one_on_the_planted_cells_only(n_classes, shape, seed, data):
    rows, columns = data.draw(st.integers(1, shape[0])), data.draw(st.integers(1, shape[1]))
    dataset, mask = make_matrix_classification(
        3 * n_classes, shape, n_classes, rows * columns, 0.0, seed
    )
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
    one, other, third = (
        make_matrix_classification(random_state=seed)[0].content_hash for seed in (3, 3, 4)
    )
    assert one == other
    assert one != third


WIDTHS = {"a": 6, "b": 4, "noise": 5}
MULTIMODAL = partial(make_multimodal_classification, WIDTHS)


@pytest.mark.parametrize("multilabel", [False, True])
def test_labels_explain_planted_features_of_named_modalities_and_no_others(multilabel):
    dataset, mask = make_multimodal_classification(
        WIDTHS, {"a": 3, "b": 1}, 90, 4, noise=0.0, multilabel=multilabel, random_state=2
    )
    assert (dataset.target == Labels()) == multilabel
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
        make_multimodal_classification(WIDTHS, {}, 5000, noise=2.0, shared=part, random_state=0)[0]
        for part in (0, 1)
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
        *(
            (make_matrix_classification, {"n_informative": n}, f"n_informative={n}")
            for n in (13, 0, 65)
        ),
        (make_matrix_classification, {"n_classes": 1}, "n_classes=1"),
        (make_matrix_classification, {"n_samples": 2}, "n_samples=2"),
        (
            MULTIMODAL,
            {"informative": {"c": 1}},
            r"\{'c': 1\} does not fit modalities; the modalities are a, b",
        ),
        (
            MULTIMODAL,
            {"informative": {"a": 7}},
            r"\{'a': 7\} does not fit modalities; give at most its 6",
        ),
        (MULTIMODAL, {"informative": {}, "n_classes": 1}, "n_classes=1"),
        (MULTIMODAL, {"informative": {}, "shared": 1.5}, "shared=1.5"),
    ],
)
def test_refuses_what_it_cannot_plant(make, options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        make(**options)


@pytest.mark.parametrize(
    ("shape", "block", "rank"),
    [((5, 4, 3), (2, 3, 2), 1), ((4, 6), (3, 3), 2), ((3, 2, 3, 2), (2, 1, 3, 2), 1)],
)
def test_class_means_of_tensors_are_of_the_rank_on_adjacent_cells_only(shape, block, rank):
    dataset, mask = make_tensor_classification(shape, block, 3, 4, rank, 0.0, 7)
    inside = [np.unique(cells) for cells in np.nonzero(mask.reshape(shape))]
    assert [len(cells) for cells in inside] == list(block)
    assert all((np.diff(cells) == 1).all() for cells in inside)
    for label in dataset.classes:
        mean = dataset.X[dataset.y == label].mean(axis=0).reshape(shape)
        assert not mean[~mask.reshape(shape)].any()
        assert (mean[mask.reshape(shape)] ** 2).mean() == pytest.approx(1)
        for axis, side in enumerate(shape):
            assert (
                np.linalg.matrix_rank(np.moveaxis(mean, axis, 0).reshape(side, -1), tol=1e-8)
                <= rank
            )


def test_planted_tensors_are_a_built_in_data_set_with_parameters():
    one = load_dataset(
        "planted-tensor",
        params={"seed": 3, "shape": [4, 3, 3], "block": [2, 2, 1]},
        modes=["band", "row", "column"],
    )
    assert one.layout == Tensor((4, 3, 3), ("band", "row", "column"))
    assert one.feature_names[13] == "band1 row1 column1"
    assert one.layout.axes() == ["band", "row", "column"]
    assert one.layout.from_json(one.layout.to_json()) == one.layout
    np.testing.assert_array_equal(
        one.X, make_tensor_classification((4, 3, 3), (2, 2, 1), random_state=3)[0].X
    )
    for params, message in [
        ({"noise": "x"}, r"params\.noise: 'x' is not a number >= 0, as 1\.0"),
        ({"noise": -1}, r"params\.noise: -1 is not a number >= 0"),
        ({"sides": [2]}, r"params\.sides: .* has no such parameter; it has shape, block"),
        ({"block": [9, 1, 1]}, r"block=\[9, 1, 1\] does not fit into shape=\[8, 8, 6\]"),
    ]:
        with pytest.raises(DataError, match=message):
            load_dataset("planted-tensor", params=params)
    with pytest.raises(DataError, match="params is for generated data sets"):
        load_dataset("iris", params={"seed": 1})


@pytest.mark.parametrize(
    ("modes", "message"),
    [
        (["row"], "2 different names"),
        (["a", "a"], "2 different names"),
        (["score", "a"], "score is a column of every ranking"),
    ],
)
def test_names_of_axes_that_do_not_fit_are_refused(modes, message):
    with pytest.raises(DataError, match=message):
        load_dataset("digits", modes=modes)
