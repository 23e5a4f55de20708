"""Layouts: columns, parts, arrays and descriptions of each kind, and of a further one that one
class adds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from small_studies import make_study, run_offline

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import (
    Layout,
    MaskedVolume,
    Matrix,
    Modalities,
    Tasks,
    Tensor,
    WithConfounds,
    layout,
    layout_from_json,
)
from raysel.data.loading import load_dataset, save_dataset

AFFINE = np.array([[2, 0.1, 0, -90], [0, 2.5, 0, 7.3], [0, 0, -3, 1 / 3], [0, 0, 0, 1]])
MASKS = arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=5)).filter(np.any)
NAMES = st.text("abc", min_size=1, max_size=3)
SIDES = st.integers(1, 4)
LAYOUTS = st.one_of(
    st.lists(SIDES, min_size=1, max_size=4).map(lambda sides: Tensor(tuple(sides))),
    st.dictionaries(NAMES, SIDES, min_size=1, max_size=4).map(Modalities),
    st.dictionaries(NAMES, st.one_of(SIDES, st.tuples(SIDES, SIDES)), min_size=1, max_size=4).map(
        Tasks
    ),
    st.builds(MaskedVolume, MASKS, st.sampled_from([None, AFFINE])),
)


@settings(max_examples=100)
@given(LAYOUTS)
def test_columns_parts_and_arrays_of_every_layout_agree(layout):
    n = layout.n_features
    assert len(set(layout.default_names())) == n
    assert list(layout.coordinates()) == layout.axes()
    places = list(zip(*(values.tolist() for values in layout.coordinates().values()), strict=True))
    assert len(set(places)) == n
    for parts in (
        layout.slices(),
        {name: columns for name, (columns, _) in layout.blocks().items()},
    ):
        if parts:
            assert np.concatenate(
                [np.arange(n)[columns] for columns in parts.values()]
            ).tolist() == list(range(n))
    for name, columns in layout.slices().items():
        assert set(layout.coordinates()[layout.part][columns]) == {name}
    values = np.arange(1.0, n + 1)
    array = layout.arranged(values, outside=-1)
    assert array.shape == layout.shape
    assert sorted(array[array > 0]) == values.tolist()
    assert layout.grid in ((), array.shape)
    assert sorted(layout.permutation(np.random.default_rng(0))) == list(range(n))
    assert all(
        block.n_features == columns.stop - columns.start
        for columns, block in layout.blocks().values()
    )
    assert layout.has_images == any(block.is_image for _, block in layout.blocks().values())
    assert set(layout.parameters()) <= {"shape", "mask", "modalities", "tasks"}
    assert layout.describe()


@settings(max_examples=100)
@given(LAYOUTS)
def test_descriptions_give_the_layout_back(layout):
    again = layout_from_json(json.loads(json.dumps(layout.to_json())))
    assert again == layout
    assert list(again.slices()) == list(layout.slices())
    np.testing.assert_array_equal(
        again.arranged(np.arange(layout.n_features)), layout.arranged(range(layout.n_features))
    )
    if layout.affine is not None:
        assert hash(again) == hash(layout)
        np.testing.assert_array_equal(again.affine, layout.affine)


@given(st.lists(SIDES, min_size=1, max_size=4), MASKS)
def test_cells_are_those_of_a_reshaped_row_and_voxels_those_that_lie_in_the_mask(sides, mask):
    layout = Tensor(tuple(sides))
    cells = np.arange(layout.n_features).reshape(
        sides if len(sides) > 1 else (-1, 1)
    )  # a vector is one column
    np.testing.assert_array_equal(
        cells[tuple(layout.coordinates().values())], np.arange(layout.n_features)
    )
    volume, box, inside = MaskedVolume(mask), Tensor(mask.shape), np.flatnonzero(mask)
    indices = [values[inside].tolist() for values in box.coordinates().values()]
    cells = zip(*indices, strict=True)
    assert volume.default_names() == [f"i{i}j{j}k{k}" for i, j, k in cells]
    for index, values in zip(indices, volume.coordinates().values(), strict=True):
        assert values.tolist() == index


@given(LAYOUTS.filter(lambda layout: not layout.is_multitask), st.integers(1, 3))
def test_confounds_stand_behind_the_features_and_in_no_map(features, n_beside):
    layout = WithConfounds(features, n_beside)
    n = features.n_features
    assert layout.n_features == n + n_beside == len(set(layout.default_names()))
    assert layout_from_json(json.loads(json.dumps(layout.to_json()))) == layout
    for name, values in layout.coordinates().items():
        np.testing.assert_array_equal(values[:n], features.coordinates()[name])
    values = np.arange(1.0, n + n_beside + 1)
    np.testing.assert_array_equal(layout.arranged(values), features.arranged(values[:n]))
    drawn = layout.permutation(np.random.default_rng(0))
    assert sorted(drawn[:n]) == list(range(n))
    assert drawn[n:].tolist() == list(range(n, n + n_beside))
    assert layout.taken_as == features.taken_as
    assert str(layout.parameters()) == str(features.parameters())


def test_large_masks_have_short_descriptions_and_affines_single_precision():
    mask = np.zeros((60, 60, 60), bool)
    mask[5:55, 5:55, 5:55] = True
    assert len(json.dumps(MaskedVolume(mask).to_json())) < mask.sum() / 4
    one = MaskedVolume(np.ones((1, 1, 2), bool), AFFINE)
    assert one == MaskedVolume(one.mask, AFFINE * (1 + 1e-12))  # equal as NIfTI keeps it
    assert one != MaskedVolume(one.mask, AFFINE + 0.1)
    np.testing.assert_allclose(one.affine, AFFINE, rtol=1e-7)
    assert (
        MaskedVolume(one.mask, -0.0 * np.eye(4)).to_json()
        == MaskedVolume(one.mask, 0.0 * np.eye(4)).to_json()
    )


@pytest.mark.parametrize(
    ("layout", "scaling", "has_axes", "noun"),
    [
        (Tensor((4,)), "zscore", False, "table"),
        (Matrix(4, 1), "zscore", False, "table"),
        (Matrix(4, 2), "unit", True, "matrices"),
        (Tensor((2, 3, 2)), "unit", True, "arrays of order 3 or more"),
        (Modalities({"a": 2}), "zscore_sqrt_width", False, "modalities"),
        (Tasks({"a": (2, 2)}), "unit", False, "tasks"),
        (Tasks({"a": (2, 2), "b": 3}), "zscore", False, "tasks"),
        (MaskedVolume(np.ones((2, 2, 2), bool)), "zscore", False, "table"),
    ],
)
def test_defaults_fit_the_layout(layout, scaling, has_axes, noun):
    assert (layout.default_scaling, layout.has_axes, layout.noun) == (scaling, has_axes, noun)


ONES = np.ones((2, 2, 2), bool)


INVALID = [
    *(
        (lambda shape=shape: Tensor(shape), "positive whole numbers")
        for shape in ((), (2, 0), (2.0,))
    ),
    (lambda: Modalities({}), "modalities is empty"),
    *((lambda n=n: Modalities({"a": n}), f"'a' has {n} columns") for n in (0, 2.5, True)),
    (lambda: Modalities([("a", 1), ("a", 2)]), "'a' is named twice"),
    *((lambda n=n: Tasks({"a": n}), "task 'a' has") for n in (0, (2, -1), True, (), 1.5)),
    (lambda: Tasks({}), "name each task"),
    (lambda: WithConfounds(Matrix(2, 2), 0), "give one or more"),
    (lambda: WithConfounds(Tasks({"a": 2}), 1), "features of one task"),
    (lambda: MaskedVolume(ONES[0]), "three axes"),
    (lambda: MaskedVolume(1.0 * ONES), "boolean"),
    (lambda: MaskedVolume(~ONES), "without a voxel"),
    (lambda: MaskedVolume(ONES, np.eye(3)), "affine"),
    (lambda: MaskedVolume(ONES, np.full((4, 4), np.nan)), "affine"),
    (lambda: layout_from_json({"kind": "graph"}), "known: tensor, volume, modalities, tasks"),
    *(
        (lambda runs=runs: layout_from_json(VOLUME | {"runs": runs}), "runs")
        for runs in ([3], [0, 9], [-1, 9], [[8]])
    ),
    (lambda: layout_from_json(VOLUME | {"shape": [2**20, 2**20, 2]}), "voxels"),
]


def test_invalid_layouts_are_refused():
    for make, message in INVALID:
        with pytest.raises(DataError, match=message):
            make()


VOLUME = {"kind": "volume", "shape": [2, 2, 2], "affine": np.eye(4).tolist()}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_data_sets_of_volumes_are_saved_and_read(tmp_path, suffix):
    mask = np.random.default_rng(0).random((3, 4, 2)) < 0.5
    data = Dataset(
        np.random.default_rng(1).normal(size=(6, mask.sum())),
        list("ababab"),
        MaskedVolume(mask, AFFINE),
    )
    save_dataset(data, tmp_path / f"volumes.{suffix}")
    read = load_dataset(tmp_path / f"volumes.{suffix}")
    assert (read.content_hash, read.layout, read.feature_names) == (
        data.content_hash,
        data.layout,
        data.feature_names,
    )


@pytest.fixture
def curves(monkeypatch):
    """A layout that only this test knows: curves of several channels, which methods take as
    matrices.
    """
    monkeypatch.setattr(layout, "_KINDS", dict(layout._KINDS))

    @dataclass(frozen=True)
    class Curves(Layout):
        kind = "curves"
        taken_as = "tensor"

        n_channels: int
        n_times: int

        @property
        def n_features(self):
            return self.n_channels * self.n_times

        @property
        def shape(self):
            return self.n_channels, self.n_times

        grid = shape
        is_image = True

        def coordinates(self):
            return dict(
                zip(("channel", "time"), np.indices(self.shape).reshape(2, -1), strict=True)
            )

        def default_names(self):
            return [f"c{c}t{t}" for c in range(self.n_channels) for t in range(self.n_times)]

        def parameters(self):
            return {"shape": self.shape}

        def to_json(self):
            return {"kind": self.kind, "shape": list(self.shape)}

        @classmethod
        def from_json(cls, description):
            return cls(*description["shape"])

    return Curves


def test_one_class_adds_a_layout(tmp_path, curves):
    y = np.arange(48) % 2
    X = np.random.default_rng(0).normal(size=(48, 3, 8))
    X[:, 1, 2:4] += 2 * y[:, None]
    save_dataset(Dataset(X.reshape(48, -1), y, curves(3, 8)), tmp_path / "curves.arrow")
    study = make_study(tmp_path / "curves.arrow", solver={"name": "smr", "space": {"alpha": [0.1]}})
    assert study.dataset.layout == curves(3, 8)
    result = run_offline(study.config.to_dict(), tmp_path / "study")
    assert result.layout == curves(3, 8)
    best = result.ranking().to_frame().head(2)
    assert set(zip(best["channel"], best["time"], strict=True)) == {(1, 2), (1, 3)}
    assert result.plot_ranking().get_xlabel() == "time"
