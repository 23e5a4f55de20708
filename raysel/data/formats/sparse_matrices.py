"""Refusal of files of sparse matrices, and how to save them, as all values are needed."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path, PurePath

from raysel.core.errors import DataError

#: Arrays of a matrix of compressed rows or columns, also in a group of HDF5 or behind a prefix,
#: e.g. X_indptr.
_COMPRESSED = ("data", "indices", "indptr")
#: Arrays that `scipy.sparse.save_npz` writes of a matrix in any format.
_SAVED = {"data", "format", "shape"}
_BY_SCIPY = "scipy.sparse.load_npz(...)"
_OF_ARRAYS = f"scipy.sparse.csr_matrix(({', '.join(_COMPRESSED)}))"
_MATRIX_MARKET = ("in Matrix Market's format", "scipy.io.mmread(...)")
_SVMLIGHT = ("in SVMlight's format", "sklearn.datasets.load_svmlight_file(...)[0]")
#: Suffixes of files of sparse matrices: the format and what reads it.
_SUFFIXES = {
    ".mtx": _MATRIX_MARKET,
    ".mm": _MATRIX_MARKET,
    ".svm": _SVMLIGHT,
    ".libsvm": _SVMLIGHT,
    ".svmlight": _SVMLIGHT,
}
#: A line of a label and the numbers of columns with their values, e.g. "1 3:0.5 7:2".
_LINE = re.compile(rb"[-+.,\deE]+((?:[ \t]+(?:qid|\d+):[-+.\deE]+)+)[ \t]*(?:#.*)?")
#: Lines that are looked at, and bytes that they are looked for in.
_LINES, _START = 20, 2**20


def sparse_matrices(names: Collection[str]) -> dict[str, set[str]]:
    """Return the arrays of each sparse matrix by its name; that of a whole file is empty."""
    found = {}
    if set(names) >= _SAVED:
        found[""] = set(names)
    for name in names:
        start = name.removesuffix(_COMPRESSED[-1])
        arrays = {start + part for part in _COMPRESSED}
        if name.endswith(_COMPRESSED[-1]) and arrays <= set(names):
            found.setdefault(start.rstrip("/_.-"), arrays)
    return found


def refuse_sparse_arrays(path: Path, names: Collection[str], name: str = "X") -> None:
    """Refuse a file of arrays, or a file of one array, that is part of a sparse matrix."""
    if path.suffix.lower() == ".npy":
        beside = {file.stem for file in path.parent.glob("*.npy")}
        names = next((s for s in sparse_matrices(beside).values() if path.stem in s), ())
    for matrix, arrays in sparse_matrices(names).items():
        place = f"{path}: {matrix}" if matrix else path
        if arrays >= _SAVED:
            raise _error(place, "as SciPy saves it", _BY_SCIPY, name)
        raise _error(place, f"({', '.join(_COMPRESSED)})", _OF_ARRAYS, name)


def refuse_sparse_text(path: Path, text: bytes, name: str = "X") -> None:
    """Refuse a text that is a sparse matrix, whatever the file is called."""
    if text[:14].lower() == b"%%matrixmarket":
        raise _error(path, *_MATRIX_MARKET, name)
    lines = [line.strip() for line in text[:_START].splitlines()[:_LINES]]
    rows = [line for line in lines if line and not line.startswith(b"#")]
    pairs = [found[1].count(b":") for row in rows if (found := _LINE.fullmatch(row))]
    if rows and len(pairs) == len(rows) and max(pairs) > 1:  # "1 12:30" is a time
        raise _error(path, *_SVMLIGHT, name)


def refuse_sparse_files(path: Path) -> None:
    """Refuse a file of a sparse matrix, or a folder with one, as sequencing programs write."""
    files = [path]
    if path.is_dir():
        files = sorted(path.iterdir())
    if not all(file.is_file() for file in files):
        return
    for file in files:
        suffixes = PurePath(file.name.lower()).suffixes[-2:]
        for suffix in set(suffixes) & set(_SUFFIXES):
            raise _error(file, *_SUFFIXES[suffix])


def _error(place: object, what: str, reader: str, name: str = "X") -> DataError:
    """Make the error for a sparse matrix."""
    saved = "X, samples as rows, and y" if name == "X" else name
    return DataError(
        f"{place} is a sparse matrix {what}: save {reader}.toarray() as {saved} in an .npz file."
    )
