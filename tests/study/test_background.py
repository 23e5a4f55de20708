"""The mean sample of a study's data is kept for pictures of images."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from small_studies import raw_config, run_offline, write_digits
from small_volumes import write_volumes

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import MaskedVolume, Matrix, Modalities, Tensor
from raysel.results.displays.ranking import read_background_image
from raysel.study.background import read_background, read_image, write_mean_sample


def images(shape=(3, 2), n=8, seed=0):
    X = np.random.default_rng(seed).random((n, shape[0] * shape[1]))
    return Dataset(X, np.arange(n) % 2, Matrix(*shape))


def test_it_is_the_mean_of_each_cell_of_images_and_of_each_tasks_samples(tmp_path):
    path, data, other = tmp_path / "mean.npy", images(), images((2, 2), 6, seed=1)
    write_mean_sample(data, path)
    np.testing.assert_array_equal(read_image(path, 6), data.X.mean(axis=0))
    write_mean_sample(join_tasks({"a": data, "b": other}, "both"), path)
    expected = np.concatenate([data.X.mean(axis=0), other.X.mean(axis=0)])
    np.testing.assert_allclose(read_image(path, 10), expected)
    path.unlink()
    for layout in (Tensor((6,)), Tensor((6, 1)), Tensor((1, 6)), Modalities({"a": 4, "b": 2})):
        write_mean_sample(Dataset(data.X, data.y, layout), path)
        assert not path.exists()


def test_what_is_no_mean_is_not_read(tmp_path):
    path = tmp_path / "mean.npy"
    assert read_image(path, 6) is None
    for content in (
        np.zeros(5),
        np.full(6, np.nan),
        np.array(["a"] * 6),
        np.zeros(6, dtype=object),
    ):
        np.save(path, content, allow_pickle=True)
        assert read_image(path, 6) is None
    path.write_bytes(b"")
    assert read_image(path, 6) is None


def test_the_mean_of_masked_volumes_lies_in_the_mask_only(tmp_path):
    mask = np.random.default_rng(0).random((2, 3, 4)) < 0.5
    layout = MaskedVolume(mask)
    data = Dataset(np.random.default_rng(1).random((4, mask.sum())), [0, 1, 0, 1], layout)
    write_mean_sample(data, tmp_path / "mean.npy")
    volume = layout.arranged(read_image(tmp_path / "mean.npy", data.n_features), outside=np.nan)
    np.testing.assert_array_equal(volume[mask], data.X.mean(axis=0))
    assert np.isnan(volume[~mask]).all()


GREY = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20


def test_arrays_and_images_of_a_samples_shape_are_read(tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    Image.fromarray(GREY).save(tmp_path / "a.png")
    Image.fromarray(np.stack([GREY] * 3, -1)).save(tmp_path / "rgb.png")
    Image.fromarray(GREY.astype(np.uint16) * 256).save(tmp_path / "deep.png")
    for name, factor in (("a.npy", 1), ("a.png", 1), ("rgb.png", 1), ("deep.png", 256)):
        found = read_background(tmp_path / name, Matrix(3, 4))
        np.testing.assert_array_equal(found, factor * GREY.ravel().astype(float))
        of_colours = read_background(tmp_path / name, Tensor((3, 4, 3))).reshape(3, 4, 3)
        np.testing.assert_array_equal(of_colours, np.repeat(found.reshape(3, 4, 1), 3, axis=2))


def test_values_that_are_not_finite_are_drawn_as_the_smallest(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[np.nan, 2.0], [np.inf, -1.0]]))
    np.testing.assert_array_equal(
        read_background(tmp_path / "a.npy", Matrix(2, 2)), [-1, 2, -1, -1]
    )


def test_what_does_not_fit_is_refused(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "a.png")
    Image.fromarray(np.zeros((100, 100), np.uint8)).save(tmp_path / "large.png")
    objects, texts, unknown = (
        np.array([[{}] * 4] * 3),
        np.full((3, 4), "a"),
        np.full((3, 4), np.nan),
    )
    for key, values in (("a", GREY), ("object", objects), ("text", texts), ("nan", unknown)):
        np.save(tmp_path / f"{key}.npy", values, allow_pickle=True)
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:40])
    (tmp_path / "empty.npy").touch()
    (tmp_path / "a.jpg").write_bytes(b"x")
    for name, layout, message in (
        ("none.npy", Matrix(3, 4), "no data file"),
        ("a.npy", Matrix(4, 3), r"\(3, 4\), but a sample has \(4, 3\)"),
        ("a.png", Matrix(2, 4), r"\(3, 4\), but a sample has \(2, 4\)"),
        ("large.png", Matrix(3, 4), r"\(100, 100\), but a sample"),
        ("broken.png", Matrix(3, 4), "broken.png cannot be read"),
        ("empty.npy", Matrix(3, 4), "empty.npy is empty"),
        ("object.npy", Matrix(3, 4), "holds pickled Python objects"),
        ("text.npy", Matrix(3, 4), "not an array of real numbers"),
        ("nan.npy", Matrix(3, 4), "no finite value"),
        ("a.jpg", Matrix(3, 4), "unknown suffix"),
        ("a.npy", Tensor((12,)), "neither matrices nor volumes"),
        ("a.npy", Modalities({"a": 6, "b": 6}), "neither matrices nor volumes"),
    ):
        with pytest.raises(ConfigError, match=rf"dataset.background: .*{message}"):
            read_background(tmp_path / name, layout)


def test_a_volume_must_lie_where_the_mask_lies(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    volumes = write_volumes(tmp_path / "v", n=2)
    layout = MaskedVolume(volumes.mask, volumes.affine)
    found = read_background(tmp_path / "v" / "scans" / "1.nii.gz", layout)
    np.testing.assert_array_equal(found, volumes.values[1].ravel())
    nibabel.save(nibabel.Nifti1Image(volumes.values[1], np.eye(4)), tmp_path / "moved.nii.gz")
    with pytest.raises(ConfigError):
        read_background(tmp_path / "moved.nii.gz", layout)


def test_a_study_keeps_its_background_and_the_numbers_do_not_depend_on_it(tmp_path):
    write_digits(tmp_path / "few.npz", each=8)
    np.save(tmp_path / "bg.npy", np.arange(64.0).reshape(8, 8))
    raw = raw_config(tmp_path / "few.npz", dataset__background=str(tmp_path / "bg.npy"))
    raw["solver"] = {"name": "variance"}
    result = run_offline(raw, tmp_path / "study")
    (tmp_path / "bg.npy").unlink()
    image, what = read_background_image(result.facts)
    np.testing.assert_array_equal(image.ravel(), np.arange(64.0))
    assert what == "image bg.npy"
    assert read_image(result.directory.mean_sample, 64) is not None
    plain = {**raw, "dataset": {"path": str(tmp_path / "few.npz")}}
    assert config_from_dict(raw).hash == config_from_dict(plain).hash


def test_a_photograph_is_turned_upright_and_shown_in_grey(tmp_path):
    colours = np.random.default_rng(0).integers(0, 256, (4, 3, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # stored on its side
    stored = Image.fromarray(np.rot90(colours))
    stored.save(tmp_path / "a.png", exif=exif)
    shown = read_background(tmp_path / "a.png", Matrix(4, 3)).reshape(4, 3)
    np.testing.assert_allclose(shown, np.asarray(Image.fromarray(colours).convert("L")), atol=1)
