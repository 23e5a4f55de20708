"""A folder of images: one folder for each class, read by Pillow."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import refusals
from PIL import Image

from raysel.data.layouts import Matrix, Tensor
from raysel.data.loading import load_dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (6, 4, 3)).astype(np.uint8)
COLOURS = RNG.integers(0, 256, (6, 4, 3, 3)).astype(np.uint8)


pytestmark = pytest.mark.usefixtures("here")


def write(images, suffix="png", classes=("cat", "dog"), folder="faces", **options):
    """Write images in turn into the folders of the classes; return them in the order of the
    reader.
    """
    for i, image in enumerate(images):
        path = Path(folder, classes[i % len(classes)], f"{i}.{suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
    order = [i for c in range(len(classes)) for i in range(c, len(images), len(classes))]
    return [images[i] for i in order]


def refused(*culprits, source="faces", **options):
    return refusals.refused(source, *culprits, **options)


DEEP, FRACTIONS = (
    (RNG.random((6, 4, 3)) * 65535).astype(np.uint16),
    RNG.random((6, 4, 3)).astype(np.float32),
)


@pytest.mark.parametrize(
    ("suffix", "images"),
    [
        *((suffix, IMAGES) for suffix in ("png", "tif", "bmp", "pgm", "PNG")),
        *((suffix, DEEP) for suffix in ("png", "tif", "pgm")),
        ("tif", FRACTIONS),
        ("png", COLOURS),
    ],
)
def test_images_keep_their_values(suffix, images):
    expected = np.stack(write(images, suffix))
    data = load_dataset("faces/" if suffix == "PNG" else Path("faces"))
    assert (data.layout, data.name) == (Tensor(images.shape[1:]), "faces")
    np.testing.assert_array_equal(data.X, expected.reshape(6, -1))
    assert data.y.tolist() == ["cat"] * 3 + ["dog"] * 3
    assert [note[:24] for note in data.notes] == (
        ["the images are in colour"] if images is COLOURS else []
    )


def test_jpeg_images_are_those_of_pillow_and_a_folder_is_found_in_raysel_data(
    tmp_path, monkeypatch
):
    write(IMAGES, "jpg", folder="store/v1.5")
    monkeypatch.setenv("RAYSEL_DATA", str(tmp_path / "store"))
    expected = [
        np.asarray(Image.open(path)).ravel() for path in sorted(Path("store").rglob("*.jpg"))
    ]
    np.testing.assert_array_equal(load_dataset("v1.5").X, expected)


def test_grey_images_stored_in_colour_are_grey():
    images = [*IMAGES[:3], *np.repeat(IMAGES[3:, :, :, None], 3, axis=3)]
    write(images)
    data = load_dataset("faces")
    assert data.layout == Matrix(4, 3)
    np.testing.assert_array_equal(data.X, IMAGES[[0, 2, 4, 1, 3, 5]].reshape(6, -1))
    assert any("3 images are stored in colour" in note for note in data.notes)


@pytest.mark.parametrize("mode", ["1", "P", "LA", "RGBA", "CMYK"])
def test_other_modes_are_converted(mode):
    images = [
        Image.fromarray(image).convert(mode)
        for image in (COLOURS if mode in {"P", "RGBA", "CMYK"} else IMAGES)
    ]
    expected = [
        np.asarray(image.convert("L" if mode in {"1", "LA"} else "RGB"))
        for image in write(images, "tif")
    ]
    np.testing.assert_array_equal(load_dataset("faces").X, np.stack(expected).reshape(6, -1))


def test_an_image_is_turned_as_its_camera_says():
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees clockwise
    write(IMAGES, exif=exif)
    data = load_dataset("faces")
    assert data.layout == Matrix(3, 4)
    np.testing.assert_array_equal(data.X[0].reshape(3, 4), np.rot90(IMAGES[0], -1))
    assert any("6 images were turned upright" in note for note in data.notes)


def test_folders_of_numbers_are_numbers_in_the_order_of_names():
    write(IMAGES, classes=("10", "9"))
    assert load_dataset("faces").y.tolist() == [10, 10, 10, 9, 9, 9]


def test_other_files_are_named():
    write(IMAGES)
    for name in ("README.txt", "cat/notes.md", "cat/.DS_Store", "dog/Thumbs.db"):
        Path("faces", name).write_text("a")
    Path("faces/.git").mkdir()
    [note] = load_dataset("faces").notes
    for name in (".git", "README.txt", "cat/.DS_Store", "cat/notes.md", "dog/Thumbs.db"):
        assert name in note


def test_folders_that_cannot_be_used():
    Path("faces").mkdir()
    refused("faces", "holds no folders")
    write(IMAGES[:1], classes=("cat",))
    refused("one class only (cat)")
    Path("faces/empty").mkdir()
    refused("the folder empty holds no images", ".png")
    Path("faces/empty").rmdir()
    write(IMAGES, folder="faces/train")
    refused("train, a class, holds the folder cat", "Give", "faces/train")
    refused("no-faces", "nor a folder of images", source="no-faces")
    refused("label", "faces", label="y")
    refused("groups", "faces", groups="person")
    np.save("y.npy", [0, 1])
    refused("labels", "faces", labels="y.npy")


def test_images_that_do_not_fit_together_name_both():
    write([*IMAGES, IMAGES[0].T])
    refused("cat/0.png", "4 x 3", "cat/6.png", "3 x 4")
    Path("faces/cat/6.png").unlink()
    write([IMAGES[0], IMAGES[0].astype(np.uint16)], "tif", folder="faces")
    refused("different depths", "uint8", "uint16")


def transparent():
    Image.fromarray(np.dstack([COLOURS[0], np.full((4, 3), 100, np.uint8)])).save("faces/cat/0.png")


def several_pages():
    first, *others = map(Image.fromarray, IMAGES[:3])
    first.save("faces/cat/0.png", "TIFF", save_all=True, append_images=others)


def many_claimed_pixels():
    chunk = b"IHDR" + struct.pack(">II5B", 30000, 30000, 8, 0, 0, 0, 0)
    head = (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )
    Path("faces/cat/0.png").write_bytes(head + Path("faces/cat/0.png").read_bytes()[33:])


def another_format():
    Image.fromarray(IMAGES[0]).save("faces/cat/0.png", format="GIF")


@pytest.mark.parametrize(
    ("spoil", "culprit"),
    [
        (transparent, "transparent"),
        (several_pages, "3 pages"),
        (many_claimed_pixels, "pixels that Pillow reads of one image"),
        (another_format, "cannot be read as an image"),
    ],
)
def test_an_image_that_cannot_be_used_is_refused(spoil, culprit):
    write(IMAGES)
    spoil()
    refused("0.png", culprit)


def test_an_image_above_pillows_limit_is_not_called_damaged(monkeypatch):
    write([np.zeros((10, 20), np.uint8)] * 2)
    for limit in (199, 99):  # Pillow warns above its limit, and raises above twice of it
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        assert "damaged" not in refused(f"0.png has more than the {limit} pixels that Pillow reads")
