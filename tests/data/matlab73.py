"""Writing of MATLAB files of version 7.3 as MATLAB lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse

_CLASSES = {"float64": "double", "float32": "single", "bool": "logical"}
_USERBLOCK = 512


def savemat73(path: Path, variables: Mapping[str, Any]) -> None:
    """Write variables as MATLAB 7.3 does: axes reversed, text as UTF-16 codes, 512 bytes of
    header.
    """
    with h5py.File(path, "w", userblock_size=_USERBLOCK) as file:
        for name, value in variables.items():
            if scipy.sparse.issparse(value):
                _write_sparse(file.create_group(name), value.tocsc())
            elif isinstance(value, list):
                cells = [
                    file.create_dataset(f"#refs#/{name}{i}", data=cell).ref
                    for i, cell in enumerate(value)
                ]
                file.create_dataset(name, data=np.array([cells], h5py.ref_dtype))
                file[name].attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                _write_array(file, name, np.asarray(value))
    with path.open("r+b") as file:
        text = (
            b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Thu Jan  1 00:00:00 2026 HDF5"
            b" schema 1.00 ."
        )
        file.write(text.ljust(124) + b"\x00\x02IM")


def _write_array(file: Any, name: str, array: np.ndarray) -> None:
    kind = _CLASSES.get(array.dtype.name, array.dtype.name)
    attributes: dict[str, Any] = {}
    if array.dtype.kind == "U":
        width = max(map(len, array.ravel()), default=0)
        rows = [[ord(letter) for letter in str(text).ljust(width)] for text in array.ravel()]
        array, kind, attributes = (
            np.array(rows, np.uint16),
            "char",
            {"MATLAB_int_decode": np.int32(2)},
        )
    elif array.dtype == np.bool_:
        array, attributes = array.astype(np.uint8), {"MATLAB_int_decode": np.int32(1)}
    array = np.atleast_2d(array)
    if array.size:
        file.create_dataset(name, data=array.T)
    else:
        file.create_dataset(name, data=np.array(array.shape, np.uint64))
        attributes["MATLAB_empty"] = np.uint8(1)
    file[name].attrs.update({"MATLAB_class": np.bytes_(kind), **attributes})


def _write_sparse(group: Any, matrix: Any) -> None:
    group.attrs.update(
        {"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": np.uint64(matrix.shape[0])}
    )
    group["jc"] = matrix.indptr.astype(np.uint64)
    if matrix.nnz:
        group["data"], group["ir"] = matrix.data, matrix.indices.astype(np.uint64)
