"""Arrays of NumPy's .npy and .npz files, without unpickling."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from raysel.data.formats.files import ArrayFile
from raysel.errors import DataError


@contextmanager
def open_npz(path: Path) -> Iterator[ArrayFile]:
    """Open a NumPy archive for reading.

    Parameters
    ----------
    path : Path
        Path of an .npz file.

    Yields
    ------
    ArrayFile
        Names of the arrays, and a function that reads one.

    Raises
    ------
    DataError
        If the file is not a complete archive, or an array holds pickled objects.
    """
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not a complete .npz archive: it is truncated or of another format; write it again.")
    with np.load(path, allow_pickle=False) as archive:

        def get(name: str) -> Any:
            try:
                return _checked_text(archive[name])
            except ValueError as error:
                raise _unpickled(error, f"{path}: the array {name}") from error

        yield ArrayFile(tuple(archive.files), get)


@contextmanager
def open_npy(path: Path, name: str = "X") -> Iterator[ArrayFile]:
    """Open a file of one array for reading.

    Parameters
    ----------
    path : Path
        Path of an .npy file.
    name : str, default="X"
        Name that the array is given.

    Yields
    ------
    ArrayFile
        The name, and a function that reads the array.

    Raises
    ------
    DataError
        If the array holds pickled objects.
    """
    with path.open("rb") as file:
        try:
            values = _checked_text(np.lib.format.read_array(file, allow_pickle=False))
        except ValueError as error:
            raise _unpickled(error, f"{path}: the array") from error
    yield ArrayFile((name,), {name: values}.__getitem__)


def _unpickled(error: ValueError, what: str) -> Exception:
    """Return a DataError if NumPy refused to unpickle, or else the error itself."""
    if "Object arrays" not in str(error):  # NumPy names pickle also for a header that is too long
        return error
    return DataError(
        f"{what} holds pickled Python objects, which raysel does not load; save it as numbers or text, e.g. "
        "y.astype(str)."
    )


def _checked_text(values: Any) -> Any:
    """Return the values; raise ValueError for text with invalid code points, which Python cannot write."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        points = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).view(np.uint32)
        if np.any((points > 0x10FFFF) | (points >= 0xD800) & (points < 0xE000)):
            raise ValueError("text with invalid Unicode code points")
    return values
