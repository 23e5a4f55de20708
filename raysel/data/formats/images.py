"""Images, read by Pillow: one file, and folders with one folder of images for each class."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.core.printing import listed
from raysel.data.formats.confounds import beside_files
from raysel.data.formats.files import RawData, ReadOptions, reading

#: Pillow's names of the formats that are read: no other of its decoders is used.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "PPM")
#: Modes of Pillow of one channel whose numbers are grey values.
_GREY = ("L", "I;16", "I;16B", "I;16L", "I;16N", "I", "F")
_CONVERTED = {
    "1": "L",
    "P": "RGB",
    "PA": "RGBA",
    "La": "LA",
    "RGBa": "RGBA",
    "CMYK": "RGB",
    "YCbCr": "RGB",
}
#: Pixels of an image for each byte of its file: deflate compresses up to 1032 to 1, with 8 pixels
#: in a byte.
_COMPRESSION = 8 * 1032
#: Number of pixels that any file may claim.
_SMALL = 2**20
#: Tag of the orientation in EXIF data, and its values of an upright image.
_ORIENTATION, _UPRIGHT = 0x0112, (0, 1)

#: Suffixes of the files that are read.
_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm", ".pnm", ".pbm")
#: Number of ignored files that a note names.
_SHOWN = 5


class Pixels(NamedTuple):
    """Pixels of an image."""

    #: Grey values, or red, green and blue; shape (h, w) or (h, w, 3).
    values: LabelArray
    turned: bool
    opaque: bool


def read_pixels(path: Path) -> Pixels:
    """Read an image of one page: PNG, JPEG, TIFF, BMP or one of the PNM formats."""
    with reading(path, "an image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a TIFF's unknown tags
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            opened = Image.open(path, formats=_FORMATS)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path} has more than the {Image.MAX_IMAGE_PIXELS} pixels that Pillow reads of one"
                " image; make it smaller."
            ) from error
        with opened as image:
            width, height = image.size
            if width * height > max(_SMALL, _COMPRESSION * path.stat().st_size):
                raise DataError(
                    f"{path} claims {height} x {width} pixels, more than its {path.stat().st_size}"
                    " bytes can hold: it is damaged; write or copy it again."
                )
            check_data_bytes(
                path, BYTES_OF_A_NUMBER * width * height, f"an image of {height} x {width} pixels"
            )
            if (pages := getattr(image, "n_frames", 1)) > 1:
                raise DataError(f"{path} holds {pages} pages; save each as an image of its own.")
            turned = image.getexif().get(_ORIENTATION, 1) not in _UPRIGHT
            upright: Image.Image = ImageOps.exif_transpose(image) if turned else image.copy()
    mode = _CONVERTED.get(upright.mode, upright.mode)
    if mode == "RGB" and "transparency" in upright.info:
        mode = "RGBA"
    pixels = np.asarray(upright.convert(mode))
    if mode in _GREY:
        return Pixels(pixels.astype(pixels.dtype.newbyteorder("=")), turned, False)
    if mode not in {"RGB", "RGBA", "LA"}:
        raise DataError(
            f"{path} is an image of Pillow's mode {mode}, which is not read; save it as grey or"
            " RGB."
        )
    if mode == "RGB":
        return Pixels(pixels, turned, False)
    if pixels[..., -1].min() < 255:
        raise DataError(
            f"{path} is partly transparent; save it without transparency, on the background you"
            " want."
        )
    return Pixels(pixels[..., 0] if mode == "LA" else pixels[..., :3], turned, True)


def read_image_folder(path: Path, options: ReadOptions) -> RawData:
    """Read a folder that holds one folder of images for each class.

    The classes are the names of the folders, as numbers if all are. Samples are in the order of the
    folders' names, then of the files'. An image is turned upright as its EXIF data say. Grey images
    give X of shape (n, h, w), also if they are stored in colour; colour images (n, h, w, 3), with 8
    bits for each colour.
    """
    for key, name in (("label", options.label), ("groups", options.groups)):
        if name is not None:
            raise DataError(
                f"{key}: {path} is a folder of images, which has no {name}; leave {key} out."
            )
    try:
        images, ignored = _list_images(path)
    except OSError as error:  # a folder may not be entered
        raise DataError(
            f"{error.filename or path} cannot be read: {error.strerror or error}."
        ) from error
    every = [*chain.from_iterable(images.values())]
    X, notes = _stacked(path, every)
    if ignored:
        notes.append(f"files that are hidden or no images are not read: {listed(ignored, _SHOWN)}")
    classes = np.array(list(images))
    if all(map(_is_whole_number, images)):
        classes = np.array(list(map(int, images)))
    y = np.repeat(classes, [len(files) for files in images.values()])
    confounds = None
    if options.confounds:
        paths = [file.relative_to(path).as_posix() for file in every]
        confounds = beside_files(options, paths, str(path))
    return RawData(X=X, y=y, notes=tuple(notes), confounds=confounds)


def _in_colour(image: LabelArray) -> LabelArray:
    if image.ndim == 3:
        return image
    return np.repeat(image[..., None], 3, axis=2)


def _is_whole_number(name: str) -> bool:
    return bool(re.fullmatch(r"0|[1-9][0-9]{,8}", name))


def _list_images(path: Path) -> tuple[dict[str, list[Path]], list[str]]:
    """Images of each class in the order of the names, and the names of other files."""
    images: dict[str, list[Path]] = {}
    ignored = []
    for folder in sorted(path.iterdir()):
        if not folder.is_dir() or _hidden(folder):
            ignored.append(folder.name)
            continue
        if any("\ud800" <= sign <= "\udfff" for sign in folder.name):
            raise DataError(
                f"{path}: the name of the folder {folder.name!r} is not UTF-8; rename it."
            )
        images[folder.name] = []
        for file in sorted(folder.iterdir()):
            if not _hidden(file) and file.is_dir():
                raise DataError(
                    f"{path}: {folder.name}, a class, holds the folder {file.name} beside images."
                    f" Give {folder} as the path if its folders are the classes, or move the"
                    " images."
                )
            if not _hidden(file) and file.suffix.lower() in _SUFFIXES:
                images[folder.name].append(file)
            else:
                ignored.append(f"{folder.name}/{file.name}")
        if not images[folder.name]:
            raise DataError(
                f"{path}: the folder {folder.name} holds no images ({', '.join(_SUFFIXES)}); remove"
                " it or fill it."
            )
    if not images:
        raise DataError(
            f"{path} holds no folders; a folder of images holds one folder for each class, and its"
            " images therein."
        )
    return images, ignored


def _hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name == "__MACOSX"


def _stacked(path: Path, files: Sequence[Path]) -> tuple[LabelArray, list[str]]:
    """Stack the images, grey or in colour."""
    images: list[LabelArray] = []
    n_turned, n_opaque, coloured = 0, 0, None
    for file in files:
        image, turned, opaque = read_pixels(file)
        first = (images or [image])[0]
        if not images:  # all are as large
            what = f"its {len(files)} images of {' x '.join(map(str, image.shape))} values"
            check_data_bytes(path, BYTES_OF_A_NUMBER * len(files) * image.size, what)
        if image.shape[:2] != first.shape[:2]:
            raise DataError(
                f"{path}: the images have different sizes: {files[0]} is {first.shape[0]} x"
                f" {first.shape[1]} pixels (height x width), {file} is {image.shape[0]} x"
                f" {image.shape[1]}; scale or cut them to one size."
            )
        if image.dtype != first.dtype:
            raise DataError(
                f"{path}: the images have different depths: {files[0]} has pixels of type"
                f" {first.dtype}, {file} of type {image.dtype}; convert them to one."
            )
        if coloured is None and image.ndim == 3 and np.ptp(image, axis=2).any():
            coloured = file
        n_turned, n_opaque = n_turned + turned, n_opaque + opaque
        images.append(image)
    in_colour = sum(image.ndim == 3 for image in images)
    notes = []
    if coloured is not None:
        X = np.stack([*map(_in_colour, images)])
        notes.append(
            f"the images are in colour, e.g. {coloured.name}: samples of order 3, (height,"
            " width, 3)"
        )
    else:
        X = np.stack([image if image.ndim == 2 else image[..., 0] for image in images])
        if in_colour:
            notes.append(
                f"{in_colour} images are stored in colour with equal channels and are used as grey"
            )
    if n_turned:
        notes.append(f"{n_turned} images were turned upright as their EXIF data say")
    if n_opaque:
        notes.append(f"the transparency of {n_opaque} images, which is none, is left out")
    return X, notes
