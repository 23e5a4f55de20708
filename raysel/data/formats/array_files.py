"""Opening of files of named arrays by their suffix: NumPy's, MATLAB's and HDF5."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.limits import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.data.formats.files import ArrayFile, reading
from raysel.data.formats.hdf5 import is_hdf5, open_hdf5
from raysel.data.formats.mat5 import open_mat5
from raysel.data.formats.numpy_files import open_npy, open_npz

_KINDS = {
    ".npz": "a NumPy archive (.npz)",
    ".npy": "a NumPy array (.npy)",
    ".mat": "a MATLAB file (.mat)",
    ".h5": "an HDF5 file",
    ".hdf5": "an HDF5 file",
}

#: Suffixes of the files that `open_arrays` opens.
ARRAY_SUFFIXES = tuple(_KINDS)


@contextmanager
def open_arrays(path: Path, alone: str = "X") -> Iterator[ArrayFile]:
    """Open a file of named arrays for reading."""
    suffix = path.suffix.lower()
    with reading(path, _KINDS[suffix]):
        if suffix == ".npy":
            opened = open_npy(path, alone)
        elif suffix == ".npz":
            opened = open_npz(path)
        else:
            opened = open_hdf5(path) if suffix != ".mat" or is_hdf5(path) else open_mat5(path)
        with opened as file:
            taken: dict[str, int] = {}

            def get(name: str) -> Any:
                values = file.get(name)
                taken[name] = max(np.asarray(values).nbytes, BYTES_OF_A_NUMBER * np.size(values))
                check_data_bytes(path, sum(taken.values()), f"the {len(taken)} arrays up to {name}")
                return values

            yield ArrayFile(file.names, get)
