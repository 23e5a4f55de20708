"""Arrays of MATLAB files of version 7 or older, which are validated before SciPy reads them.

SciPy 1.17 uses type codes in the file as an index without checking them, so that a damaged file crashes the process.
`plain_variables` checks the assumptions of SciPy's reader (MAT-File Format, The MathWorks, 2025: level 5).
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.io

from raysel.core.errors import DataError
from raysel.core.limits import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.data.formats.files import ArrayFile

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}  # (u)int8 to 64, single, double, UTF-8 to 32
_CHARACTERS, _SPARSE, _NUMERIC = 4, 5, range(6, 16)
_COMPLEX, _DIMENSIONS = 1 << 11, (5, 6)  # type codes of dimensions: int32 and uint32


@contextmanager
def open_mat5(path: Path) -> Iterator[ArrayFile]:
    """Read a MATLAB file of version 7 or older."""
    plain = plain_variables(path) if scipy.io.matlab.matfile_version(path)[0] == 1 else None
    matrices = None if plain is None else [name for name, is_matrix in plain.items() if is_matrix]
    variables = scipy.io.loadmat(path, variable_names=matrices)

    def get(name: str) -> Any:
        if name not in variables:
            raise DataError(f"{path}: {name} is a cell array or a struct; save it as a matrix of numbers.")
        return _dense(variables[name], path, name)

    names = variables if plain is None else plain
    yield ArrayFile(tuple(name for name in names if name and not name.startswith("__")), get)


def plain_variables(path: Path) -> dict[str, bool]:
    """List the variables of a file with their kind, and check that the file is valid."""
    variables: dict[str, bool] = {}
    unpacked = claimed = 0
    with path.open("rb") as file:
        file.seek(126)
        order = "<" if file.read(2) == b"IM" else ">"
        size_of_file = path.stat().st_size
        while file.tell() < size_of_file:
            code, size = _tag(file, order)
            end = file.tell() + size
            if end > size_of_file:
                raise ValueError(f"a variable of {size} bytes ends outside the file")
            content: BinaryIO = file
            if code == _COMPRESSED:
                packed = file.read(size)
                code, size = struct.unpack(f"{order}II", _unpacked(packed, 8))
                unpacked += size  # SciPy unpacks again, and holds all variables
                check_data_bytes(path, unpacked, "its variables")
                content = io.BytesIO(_unpacked(packed, 8 + size))
                content.seek(8)
            if code != _MATRIX:
                raise ValueError(f"an element of type {code} where a variable is expected")
            name, n_values = _variable(content, content.tell() + size, order)
            if name and name in variables:
                raise ValueError(f"two variables are called {name}")
            variables[name] = n_values is not None
            claimed += BYTES_OF_A_NUMBER * (n_values or 0)
            check_data_bytes(path, claimed, f"the matrix {name}, with those before it,")
            file.seek(end)
    return variables


def _unpacked(packed: bytes, size: int) -> bytes:
    """Decompress the first bytes of a variable, as many as it claims to have."""
    content = zlib.decompressobj().decompress(packed, size)
    if len(content) < size:
        raise ValueError(f"a compressed variable of {len(content)} bytes claims {size}")
    return content


def _variable(file: BinaryIO, end: int, order: str) -> tuple[str, int | None]:
    """Read a variable's name and, if it is a matrix, the number of its values, else None."""
    # A matrix is stored as flags, dimensions and name, followed by one element of numbers, or three if it is sparse.
    flags = struct.unpack(f"{order}4I", _read(file, 16))[2]
    kind = flags & 255
    if kind not in (_CHARACTERS, _SPARSE, *_NUMERIC):
        elements = _elements(file, end, order)
        next(elements)
        return next(elements)[1].decode("latin1"), None
    codes, parts = zip(*_elements(file, end, order), strict=True)
    needed = 2 + (3 if kind == _SPARSE else 1) + bool(flags & _COMPLEX)
    if len(codes) < needed or not set(codes) <= _NUMBERS:
        raise ValueError(f"a variable of {len(codes)} elements of types {sorted(set(codes))}")
    if codes[0] not in _DIMENSIONS or len(parts[0]) < 8 or len(parts[0]) % 4:
        raise ValueError(f"the dimensions of a variable in {len(parts[0])} bytes of type {codes[0]}")
    sides = struct.unpack(f"{order}{len(parts[0]) // 4}i", parts[0])
    if min(sides) < 0:
        raise ValueError(f"a variable of shape {sides}")
    return parts[1].decode("latin1"), math.prod(sides)


def _elements(file: BinaryIO, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Type code and content of the elements before position ``end``; content above 999 bytes is skipped."""
    while file.tell() + 8 <= end:
        start = _read(file, 8)
        code, size = struct.unpack(f"{order}II", start)
        if code >> 16:  # small element: code and size in four bytes, content in the other four
            code, size = code & 0xFFFF, code >> 16
            yield code, start[4 : 4 + size]
            continue
        after = file.tell() + size + -size % 8
        if file.tell() + size > end:
            raise ValueError(f"an element of {size} bytes ends outside its variable")
        yield code, _read(file, size) if size < 1000 else b""
        file.seek(after)


def _tag(file: BinaryIO, order: str) -> tuple[int, int]:
    code, size = struct.unpack(f"{order}II", _read(file, 8))
    return code, size


def _read(file: BinaryIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise ValueError("the file ends within a variable")
    return content


def _dense(values: Any, path: Path, name: str) -> Any:
    check_data_bytes(path, BYTES_OF_A_NUMBER * math.prod(np.shape(values)), f"the matrix {name}")
    if getattr(values, "format", "") == "csc":
        # SciPy would access memory outside the arrays by a damaged index. check_format checks nothing if the last
        # of the column starts is 0, because the matrix then counts as empty.
        values.check_format()
        if np.any(np.diff(values.indptr) < 0):
            raise ValueError("the column starts of a sparse matrix decrease")
    return values.toarray() if hasattr(values, "toarray") else values
