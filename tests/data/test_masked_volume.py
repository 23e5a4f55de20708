"""The layout MaskedVolume: the voxels of a mask in C order, read back from a short JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.formats.writers import save_dataset
from raysel.data.layouts import MaskedVolume, Tensor, layout_from_json
from raysel.data.loading import load_dataset

MASKS = arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=5)).filter(np.any)
AFFINE = np.array([[2, 0.1, 0, -90], [0, 2.5, 0, 7.3], [0, 0, -3, 1 / 3], [0, 0, 0, 1]])


@settings(max_examples=40)
@given(mask=MASKS, affine=st.sampled_from([None, AFFINE]))
def test_the_features_are_the_cells_of_the_mask_in_c_order_and_json_keeps_them(mask, affine):
    layout = MaskedVolume(mask, affine)
    inside = np.flatnonzero(mask.ravel())
    assert layout.n_features == len(inside)
    whole = Tensor(mask.shape)
    assert layout.default_names() == [whole.default_names()[i] for i in inside]
    coordinates = layout.coordinates()
    assert list(coordinates) == whole.axes() == layout.axes()
    for axis, index in whole.coordinates().items():
        np.testing.assert_array_equal(coordinates[axis], index[inside])
    values = np.arange(1.0, len(inside) + 1)
    volume = layout.arranged(values, outside=-1)
    np.testing.assert_array_equal(volume[mask], values)
    assert (volume[~mask] == -1).all()
    read = layout_from_json(json.loads(json.dumps(layout.to_json())))
    assert read == layout
    assert hash(read) == hash(layout)
    np.testing.assert_array_equal(read.mask, mask)
    np.testing.assert_array_equal(read.affine, layout.affine)


def test_the_json_of_a_large_mask_is_short():
    mask = np.zeros((60, 60, 60), bool)
    mask[5:55, 5:55, 5:55] = True
    assert len(json.dumps(MaskedVolume(mask).to_json())) < mask.sum() / 4


def test_the_affine_is_kept_as_nifti_keeps_it():
    one = MaskedVolume(np.ones((1, 1, 2), bool), AFFINE)
    other = MaskedVolume(one.mask, AFFINE * (1 + 1e-12))
    assert one == other  # equal in single precision
    assert one != MaskedVolume(one.mask, AFFINE + 0.1)
    np.testing.assert_allclose(one.affine, AFFINE, rtol=1e-7)
    assert MaskedVolume(one.mask, -0.0 * np.eye(4)).to_json() == MaskedVolume(one.mask, 0.0 * np.eye(4)).to_json()


@pytest.mark.parametrize(
    ("mask", "affine", "message"),
    [
        (np.ones((2, 2), bool), None, "three axes"),
        (np.ones((2, 2, 2)), None, "boolean"),
        (np.zeros((2, 2, 2), bool), None, "without a voxel"),
        (np.ones((2, 2, 2), bool), np.eye(3), "affine"),
        (np.ones((2, 2, 2), bool), np.full((4, 4), np.nan), "affine"),
    ],
)
def test_what_is_no_mask_is_refused(mask, affine, message):
    with pytest.raises(DataError, match=message):
        MaskedVolume(mask, affine)


@pytest.mark.parametrize("runs", [[3], [0, 9], [-1, 9], [[8]]])
def test_runs_that_do_not_fill_the_shape_are_refused(runs):
    with pytest.raises(DataError, match="runs"):
        layout_from_json({"kind": "volume", "shape": [2, 2, 2], "runs": runs, "affine": np.eye(4).tolist()})


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_data_set_of_volumes_is_saved_and_read(tmp_path, suffix):
    mask = np.random.default_rng(0).random((3, 4, 2)) < 0.5
    layout = MaskedVolume(mask, AFFINE)
    data = Dataset(np.random.default_rng(1).normal(size=(6, mask.sum())), list("ababab"), layout)
    path = tmp_path / f"volumes.{suffix}"
    save_dataset(data, path)
    read = load_dataset(path)
    assert (read.content_hash, read.layout, read.feature_names) == (data.content_hash, layout, data.feature_names)
