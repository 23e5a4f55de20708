"""Pixels of an image file, read by Pillow."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from raysel.arrays import LabelArray
from raysel.data.formats.files import reading
from raysel.errors import DataError
from raysel.limits import BYTES_OF_A_NUMBER, check_data_bytes

#: Pillow's names of the formats that are read: no other of its decoders is used.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "PPM")
#: Modes of Pillow of one channel whose numbers are grey values.
_GREY = ("L", "I;16", "I;16B", "I;16L", "I;16N", "I", "F")
_CONVERTED = {"1": "L", "P": "RGB", "PA": "RGBA", "La": "LA", "RGBa": "RGBA", "CMYK": "RGB", "YCbCr": "RGB"}
#: Pixels of an image for each byte of its file: deflate compresses up to 1032 to 1, with 8 pixels in a byte.
_COMPRESSION = 8 * 1032
#: Number of pixels that any file may claim.
_SMALL = 2**20
#: Tag of the orientation in EXIF data, and its values of an upright image.
_ORIENTATION, _UPRIGHT = 0x0112, (0, 1)


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
                f"{path} has more than the {Image.MAX_IMAGE_PIXELS} pixels that Pillow reads of one image; make it "
                "smaller."
            ) from error
        with opened as image:
            width, height = image.size
            if width * height > max(_SMALL, _COMPRESSION * path.stat().st_size):
                raise DataError(
                    f"{path} claims {height} x {width} pixels, more than its {path.stat().st_size} bytes can hold: it "
                    "is damaged; write or copy it again."
                )
            check_data_bytes(path, BYTES_OF_A_NUMBER * width * height, f"an image of {height} x {width} pixels")
            if (pages := getattr(image, "n_frames", 1)) > 1:
                raise DataError(f"{path} holds {pages} pages; save each as an image of its own.")
            turned = image.getexif().get(_ORIENTATION, 1) not in _UPRIGHT
            upright: Image.Image = ImageOps.exif_transpose(image) if turned else image.copy()
    mode = _CONVERTED.get(upright.mode, upright.mode)
    if mode == "RGB" and "transparency" in upright.info:
        mode = "RGBA"
    pixels = np.asarray(upright if mode == upright.mode else upright.convert(mode))
    if mode in _GREY:
        return Pixels(pixels.astype(pixels.dtype.newbyteorder("=")), turned, False)
    if mode not in {"RGB", "RGBA", "LA"}:
        raise DataError(f"{path} is an image of Pillow's mode {mode}, which is not read; save it as grey or RGB.")
    if mode == "RGB":
        return Pixels(pixels, turned, False)
    if pixels[..., -1].min() < 255:
        raise DataError(f"{path} is partly transparent; save it without transparency, on the background you want.")
    return Pixels(pixels[..., 0] if mode == "LA" else pixels[..., :3], turned, True)
