"""Opening of files of named arrays by their suffix: NumPy's, MATLAB's and HDF5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.data.formats.files import ArrayFile, reading
from raysel.data.formats.isolated import isolated_arrays
from raysel.data.formats.numpy_files import open_npy, open_npz

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
            kind = "hdf5" if suffix != ".mat" or _is_hdf5(path) else "mat"
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
