"""The mean sample of a study's data is kept for pictures of images."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.data.dataset import Dataset
from raysel.data.layouts import MaskedVolume, Matrix, Modalities, Tensor
from raysel.data.tasks import join_tasks
from raysel.study.background import has_images, in_cells, read_image, write_mean_sample


def images(shape=(3, 2), n=8, seed=0):
    X = np.random.default_rng(seed).random((n, shape[0] * shape[1]))
    return Dataset(X, np.arange(n) % 2, Matrix(*shape))


def test_it_is_the_mean_of_each_cell(tmp_path):
    data = images()
    write_mean_sample(data, tmp_path / "mean.npy")
    np.testing.assert_array_equal(read_image(tmp_path / "mean.npy", 6), data.X.mean(axis=0))


def test_tasks_have_means_of_their_own_samples(tmp_path):
    first, second = images(), images((2, 2), 6, seed=1)
    write_mean_sample(join_tasks({"a": first, "b": second}, "both"), tmp_path / "mean.npy")
    expected = np.concatenate([first.X.mean(axis=0), second.X.mean(axis=0)])
    np.testing.assert_allclose(read_image(tmp_path / "mean.npy", 10), expected)


@pytest.mark.parametrize("layout", [Tensor((6,)), Tensor((6, 1)), Tensor((1, 6)), Modalities({"a": 4, "b": 2})])
def test_samples_that_are_no_images_have_none(tmp_path, layout):
    assert not has_images(layout)
    write_mean_sample(Dataset(images().X, images().y, layout), tmp_path / "mean.npy")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_mean_is_not_read(tmp_path):
    path = tmp_path / "mean.npy"
    assert read_image(path, 6) is None
    for content in (np.zeros(5), np.full(6, np.nan), np.array(["a"] * 6), np.zeros(6, dtype=object)):
        np.save(path, content, allow_pickle=True)
        assert read_image(path, 6) is None
    path.write_bytes(b"")
    assert read_image(path, 6) is None


def test_the_mean_of_masked_volumes_lies_in_the_mask_only(tmp_path):
    mask = np.random.default_rng(0).random((2, 3, 4)) < 0.5
    layout = MaskedVolume(mask)
    data = Dataset(np.random.default_rng(1).random((4, mask.sum())), [0, 1, 0, 1], layout)
    write_mean_sample(data, tmp_path / "mean.npy")
    volume = in_cells(layout, read_image(tmp_path / "mean.npy", data.n_features)).reshape(mask.shape)
    np.testing.assert_array_equal(volume[mask], data.X.mean(axis=0))
    assert np.isnan(volume[~mask]).all()
