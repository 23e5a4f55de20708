"""NIfTI files of one volume each, read with checks of their size and written; nibabel is loaded only here."""

from __future__ import annotations

import gzip
import importlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import ConfigError, DataError, RayselError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.data.formats.files import reading

#: Suffixes of NIfTI files.
NIFTI_SUFFIXES = (".nii", ".nii.gz")
#: Class of the image by the size of its header in bytes, which begins with it, and where which magic number stands.
_HEADERS = {348: ("Nifti1Image", 344, b"n+1\0"), 540: ("Nifti2Image", 4, b"n+2\0")}
_MOST_CELLS = 2**28  # 2 GiB in double precision; the largest brain images have a third of it
_MOST_OTHER = 2**24  # bytes of header extensions, or behind the voxels
_AXES, _SIDE = 7, 32767  # limits of the format NIfTI-1


@dataclass(frozen=True)
class Volume:
    """Content of a NIfTI file of one volume."""

    #: Values of the voxels, with the slope and the intercept of the file's header applied; shape (a, b, c).
    values: LabelArray
    #: Map from the indices of a voxel to its position in space; shape (4, 4).
    affine: FloatArray


def is_nifti(name: str | Path) -> bool:
    """Return whether the name of a file ends as that of a NIfTI file: in .nii or .nii.gz."""
    return str(name).lower().endswith(NIFTI_SUFFIXES)


def load_nibabel(what: str, kind: type[RayselError] = ConfigError) -> Any:
    """Import nibabel."""
    try:
        return importlib.import_module("nibabel")
    except ImportError as error:
        raise kind(f"{what} needs nibabel, which is not installed: pip install 'raysel[neuro]'.") from error


def read_volume(path: Path) -> Volume:
    """Read a NIfTI file of one volume.

    The size that the header claims is compared with that of the file before memory is taken, a compressed file is
    decompressed no further than that size, and its checksum is verified.
    """
    if not is_nifti(path):
        raise DataError(f"{path} is no NIfTI file by its name; give one that ends in {' or '.join(NIFTI_SUFFIXES)}.")
    nibabel = load_nibabel(f"the NIfTI file {path}", DataError)
    with reading(path, "a NIfTI file"):
        compressed = path.name.lower().endswith(".gz")
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            kind, shape, content = _content(nibabel, path, file)
        image = kind.from_bytes(content)
        values = np.asanyarray(image.dataobj).reshape(shape)
        affine = np.asarray(image.affine, dtype=np.float64)
        if not np.isfinite(affine).all():
            raise DataError(f"{path} has an affine that holds NaN or infinity; write it again with a valid one.")
        return Volume(values, affine)


def _content(nibabel: Any, path: Path, file: IO[bytes] | gzip.GzipFile) -> tuple[Any, tuple[int, ...], bytes]:
    """Class of the image, shape of its volume, and bytes of the file, no more than its header claims."""
    head = file.read(max(_HEADERS))
    size = next((n for n in _HEADERS for order in ("little", "big") if int.from_bytes(head[:4], order) == n), None)
    name, place, magic = _HEADERS.get(size or 0, ("", 0, b""))
    if size is None or len(head) < size or head[place : place + 4] != magic:
        raise DataError(f"{path} cannot be read as NIfTI: it has no valid header; it is damaged or of another format.")
    kind = getattr(nibabel, name)
    header = kind.header_class(head[:size], check=False)
    sides, number = tuple(map(int, header.get_data_shape())), header.get_data_dtype()
    if number.kind not in "biuf":
        raise DataError(f"{path} holds values of type {number}, not real numbers; convert them, e.g. to float32.")
    if len(sides) < 3 or min(sides) < 1 or math.prod(sides[3:]) > 1:
        axes = " x ".join(map(str, sides)) or "nothing"
        raise DataError(f"{path} holds {axes}; give a file of one volume of three axes for each sample.")
    if math.prod(sides) > _MOST_CELLS:
        raise DataError(f"{path} claims {math.prod(sides)} voxels; the most that is read is {_MOST_CELLS}.")
    check_data_bytes(path, BYTES_OF_A_NUMBER * math.prod(sides), f"a volume of shape {sides}")
    offset = float(header["vox_offset"])
    if not 0 <= offset <= _MOST_OTHER:
        raise DataError(f"{path} claims that its voxels begin at byte {offset:g}: its header is damaged.")
    needed = int(offset) + math.prod(sides) * number.itemsize
    # Deflate compresses at most about 1030 to 1.
    if path.stat().st_size * (1100 if isinstance(file, gzip.GzipFile) else 1) < needed:
        raise DataError(f"{path} is truncated: its header claims {needed} bytes, more than it can hold.")
    content = head + file.read(max(0, needed - len(head)))
    if len(content) < needed:
        raise DataError(f"{path} is truncated: it holds {len(content)} of {needed} bytes.")
    left = _MOST_OTHER
    while part := file.read(2**20):  # to the end, where the checksum stands
        left -= len(part)
        if left < 0:
            raise DataError(f"{path} holds more bytes than the {needed} of its volume: it is damaged.")
    return kind, sides[:3], content


def nifti_content(values: LabelArray, affine: FloatArray | None, path: str | Path) -> bytes:
    """Return the content of a compressed NIfTI-1 file."""
    if not 2 <= values.ndim <= _AXES or max(values.shape) > _SIDE:
        raise ConfigError(
            f"{path} cannot hold an array of shape {values.shape}: NIfTI has 2 to {_AXES} axes of up to {_SIDE}."
        )
    nibabel = load_nibabel(f"the file {path}")
    stored = values.astype(np.uint8) if values.dtype == bool else values
    image = nibabel.Nifti1Image(stored, np.eye(4) if affine is None else affine)
    return gzip.compress(image.to_bytes(), mtime=0)
