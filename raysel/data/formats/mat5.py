"""The variables of a MATLAB 5 file, looked through before SciPy reads them.

SciPy 1.17 takes the type code of numbers for an index without looking: a damaged one crashes the process. What is
checked here is what its reader relies on (MAT-File Format, The MathWorks, 2025: level 5).
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}  # (u)int8 to 64, single, double, UTF-8 to 32
_CHARACTERS, _SPARSE, _NUMERIC = 4, 5, range(6, 16)
_COMPLEX, _DIMENSIONS = 1 << 11, (5, 6)  # the latter (u)int32


def plain_variables(path: Path) -> dict[str, bool]:
    """The variables of a file, and whether each is a matrix of numbers or characters that can be read.

    Parameters
    ----------
    path : Path
        A file of version 5 to 7.

    Returns
    -------
    dict of str to bool
        False for cell arrays, structs and the like.

    Raises
    ------
    ValueError
        If the file is damaged.

    Examples
    --------
    >>> import tempfile, scipy.io
    >>> path = Path(tempfile.mkdtemp(), "a.mat")
    >>> scipy.io.savemat(path, {"X": [[1.0, 2.0]], "s": {"a": 1}})
    >>> plain_variables(path)
    {'X': True, 's': False}
    """
    found: dict[str, bool] = {}
    with path.open("rb") as file:
        file.seek(126)
        order = "<" if file.read(2) == b"IM" else ">"
        size_of_file = path.stat().st_size
        while file.tell() < size_of_file:
            code, size = _tag(file, order)
            end = file.tell() + size
            if end > size_of_file:
                raise ValueError(f"a variable of {size} bytes ends outside the file")
            inside: BinaryIO = file
            if code == _COMPRESSED:
                inside = io.BytesIO(zlib.decompress(file.read(size)))
                code, size = _tag(inside, order)
            if code != _MATRIX:
                raise ValueError(f"an element of type {code} where a variable should be")
            name, plain = _variable(inside, inside.tell() + size, order)
            found[name] = plain
            file.seek(end)
    return found


def _variable(file: BinaryIO, end: int, order: str) -> tuple[str, bool]:
    """Name, and whether it is a matrix: flags, dimensions and name, then numbers, of a sparse one three times."""
    flags = struct.unpack(f"{order}4I", _read(file, 16))[2]
    kind = flags & 255
    if kind not in (_CHARACTERS, _SPARSE, *_NUMERIC):
        elements = _elements(file, end, order)
        next(elements)
        return next(elements)[1].decode("latin1"), False
    codes, parts = zip(*_elements(file, end, order), strict=True)
    needed = 2 + (3 if kind == _SPARSE else 1) + bool(flags & _COMPLEX)
    if len(codes) < needed or not set(codes) <= _NUMBERS:
        raise ValueError(f"a variable of {len(codes)} elements of types {sorted(set(codes))}")
    if codes[0] not in _DIMENSIONS or len(parts[0]) < 8 or len(parts[0]) % 4:
        raise ValueError(f"the dimensions of a variable in {len(parts[0])} bytes of type {codes[0]}")
    return parts[1].decode("latin1"), True


def _elements(file: BinaryIO, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Type code and, if it is short, content of the elements up to a place."""
    while file.tell() + 8 <= end:
        start = _read(file, 8)
        code, size = struct.unpack(f"{order}II", start)
        if code >> 16:  # both in four bytes, and the content in the other four
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
    found = file.read(size)
    if len(found) < size:
        raise ValueError("it ends within a variable")
    return found
