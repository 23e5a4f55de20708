"""Files of named arrays: NumPy's, checked and never unpickled, MATLAB's and HDF5."""

from __future__ import annotations

import math
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from raysel.core.errors import DataError
from raysel.core.machine import BYTES_OF_A_NUMBER, MOST_CHARACTERS, check_data_bytes
from raysel.data.formats.files import ArrayFile, reading
from raysel.data.formats.isolated import isolated_arrays

_KINDS = {
    ".npz": "a NumPy archive (.npz)",
    ".npy": "a NumPy array (.npy)",
    ".mat": "a MATLAB file (.mat)",
    ".h5": "an HDF5 file",
    ".hdf5": "an HDF5 file",
}

#: First bytes of an HDF5 file, which MATLAB precedes by 512 bytes of its own.
_SIGNATURE = b"\x89HDF\r\n\x1a\n"

#: Suffixes of the files that `open_arrays` opens.
ARRAY_SUFFIXES = tuple(_KINDS)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
#: Members of an archive, as many as the format had at first.
_MOST_MEMBERS = 2**16 - 1
#: Bytes for each compressed byte: deflate reaches 1032. A member's own header has 30 bytes and its
#: name.
_COMPRESSION, _LOCAL_HEADER = 1100, 30


@contextmanager
def open_arrays(path: Path, alone: str = "X") -> Iterator[ArrayFile]:
    """Open a file of named arrays for reading."""
    suffix = path.suffix.lower()
    with reading(path, _KINDS[suffix]):
        if suffix == ".npy":
            opened: AbstractContextManager[ArrayFile] = open_npy(path, alone)
        elif suffix == ".npz":
            opened = open_npz(path)
        else:
            kind = "hdf5"
            if suffix == ".mat" and not _is_hdf5(path):
                kind = "mat"
            opened = nullcontext(isolated_arrays(path, kind))
        with opened as file:
            taken: dict[str, int] = {}

            def get(name: str) -> Any:
                values = file.get(name)
                taken[name] = max(np.asarray(values).nbytes, BYTES_OF_A_NUMBER * np.size(values))
                check_data_bytes(path, sum(taken.values()), f"the {len(taken)} arrays up to {name}")
                return values

            yield ArrayFile(file.names, get)


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(520)
    return start.startswith((_SIGNATURE, b"MATLAB 7.3")) or start[512:] == _SIGNATURE


@contextmanager
def open_npz(path: Path) -> Iterator[ArrayFile]:
    """Open a NumPy archive for reading."""
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} is not a complete .npz archive: it is truncated or of another format; write it"
            " again."
        )
    with zipfile.ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info for info in check_archive(archive, path)
        }

        def get(name: str) -> Any:
            info = members[name]
            what = f"{path}: the array {name}"
            if not info.filename.endswith(".npy"):
                raise DataError(
                    f"{what} is no array: its member of the archive does not end in .npy."
                )
            try:
                with archive.open(info) as file:
                    check_array(file, info.file_size, path, f"the array {name}")
                with archive.open(info) as file:
                    return _checked_text(np.lib.format.read_array(file, allow_pickle=False))
            except ValueError as error:
                raise _unpickled(error, what) from error

        yield ArrayFile(tuple(members), get)


@contextmanager
def open_npy(path: Path, name: str = "X") -> Iterator[ArrayFile]:
    """Open a file of one array for reading."""
    with path.open("rb") as file:
        try:
            check_array(file, path.stat().st_size, path, "the array")
            file.seek(0)
            values = _checked_text(np.lib.format.read_array(file, allow_pickle=False))
        except ValueError as error:
            raise _unpickled(error, f"{path}: the array") from error
    yield ArrayFile((name,), {name: values}.__getitem__)


def check_array(file: IO[bytes], size: int, path: object, what: str) -> None:
    """Read the header of an array in NumPy's format, and check what it claims."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"a header of version {version}, which only records have")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:  # which NumPy refuses
        return
    n_values = math.prod(shape)
    stored = n_values * dtype.itemsize
    if min(shape, default=0) < 0 or (n_values and not dtype.itemsize):
        raise ValueError(f"an array of shape {shape} whose values have {dtype.itemsize} bytes")
    held = size - file.tell()
    if stored > held:
        raise ValueError(
            f"an array of shape {shape} claims {stored} bytes, of which the file holds {held}"
        )
    if dtype.kind == "S":  # becomes text of four bytes a character
        stored *= 4
    check_data_bytes(path, max(stored, n_values * BYTES_OF_A_NUMBER), f"{what} of shape {shape}")


def check_archive(archive: zipfile.ZipFile, path: object) -> list[zipfile.ZipInfo]:
    """Check the members of a zip archive before any is read."""
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if len(members) > _MOST_MEMBERS:
        raise DataError(
            f"{path} has {len(members)} members; the most that is read is {_MOST_MEMBERS}."
        )
    for info in members:
        if fault := _fault(info):
            raise DataError(
                f"{path}: the member {info.filename[:80]!r} {fault}; write the archive again."
            )
    twice = Counter(info.filename.removesuffix(".npy") for info in members).most_common(1)
    if twice and twice[0][1] > 1:
        raise DataError(
            f"{path} has {twice[0][1]} members called {twice[0][0]}; give each a different name."
        )
    ends = [info.header_offset + _LOCAL_HEADER + info.compress_size for info in members]
    for (first, second), end in zip(pairwise(members), ends, strict=False):
        if end > second.header_offset:
            raise DataError(
                f"{path}: the members {first.filename} and {second.filename} share bytes of the"
                " file, as in an archive that is made to exhaust the memory; write it again."
            )
    check_data_bytes(path, sum(info.file_size for info in members), f"its {len(members)} members")
    return archive.infolist()


def _fault(info: zipfile.ZipInfo) -> str:
    """Reason for which a member is not read; empty if there is none."""
    name = PurePosixPath(info.filename)
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    most = info.compress_size * (_COMPRESSION if deflated else 1)
    faults = {
        "has a name that leads out of the archive": (
            name.is_absolute() or ".." in name.parts or "\\" in info.filename
        ),
        "has a name that cannot be printed": not info.filename.isprintable(),
        f"has a name of more than {MOST_CHARACTERS} characters": (
            len(info.filename) > MOST_CHARACTERS
        ),
        "is encrypted": info.flag_bits & 1,
        "is a symbolic link": stat.S_ISLNK(info.external_attr >> 16),
        "is compressed by another method than deflate": (
            not deflated and info.compress_type != zipfile.ZIP_STORED
        ),
        f"claims {info.file_size} bytes, more than its {info.compress_size} bytes can hold": (
            info.file_size > most
        ),
    }
    return next((fault for fault, is_there in faults.items() if is_there), "")


def _unpickled(error: ValueError, what: str) -> Exception:
    """Return a DataError if NumPy refused to unpickle, or else the error itself."""
    if isinstance(error, DataError) or "Object arrays" not in str(
        error
    ):  # NumPy names pickle for long headers too
        return error
    return DataError(
        f"{what} holds pickled Python objects, which raysel does not load; save it as numbers or"
        " text, e.g. y.astype(str)."
    )


def _checked_text(values: Any) -> Any:
    """Return the values; ValueError for text with code points that are none."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        points = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).view(np.uint32)
        if np.any((points > 0x10FFFF) | (points >= 0xD800) & (points < 0xE000)):
            raise ValueError("text with invalid Unicode code points")
    return values
