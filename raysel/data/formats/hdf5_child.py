"""Process that reads arrays of an HDF5 file for `open_hdf5`; run as a script, it imports nothing of raysel.

The HDF5 library crashes, or never returns, on some damaged files, which only a process of its own survives. It prints
the names of the arrays as a line of JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

#: Bytes of an array for each stored byte: compression by deflate reaches 1032.
_COMPRESSION = 1100
_SMALL = 2**24
#: Bytes of address space besides the arrays and what the libraries have before they read.
_OTHER = 2**28
#: Memory of a reading process by the limit of one file: an array, a turned copy of it, and compressed parts.
_COPIES = 3
#: MATLAB's own groups, which hold the content of cell arrays and objects.
_OF_MATLAB = ("#refs#", "#subsystem#")


class RefusedError(Exception):
    """An array of a valid file that is not read; the message follows the path of the file."""


class LargeError(Exception):
    """An array that would take more bytes than the limit."""

    def __init__(self, claimed: int, what: str) -> None:
        super().__init__(claimed, what)
        self.claimed, self.what = claimed, what


class Budget:
    """Limit of the memory that the arrays of a file take."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def check(self, n_values: int, size: int, what: str) -> None:
        """Raise LargeError if values of ``size`` bytes, and of 8 bytes at least, are more than the limit."""
        if (claimed := int(n_values) * max(size, 8)) > self.limit:
            raise LargeError(claimed, what)


def array_names(file: Any) -> list[str]:
    """List the arrays, links and variables of MATLAB of a file."""
    found: list[str] = []
    variables: list[str] = []

    def visit(name: str, link: Any) -> None:
        if name.startswith((*_OF_MATLAB, *variables)) or not _printable(name):
            return
        if isinstance(link, h5py.HardLink):
            entry = file[name]
            if isinstance(entry, h5py.Group):
                if "MATLAB_class" not in entry.attrs:
                    return
                variables.append(f"{name}/")
        found.append(name)

    file.visititems_links(visit)
    return found


def read_array(file: Any, name: str, budget: Budget) -> np.ndarray:
    """Read an array as `scipy.io.loadmat` returns it from a file of version 7, or as h5py does if not by MATLAB."""
    link = file.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise RefusedError(f"{name} is a link to {link.path}, and links are not followed; store the array itself")
    entry = file[name]
    matlab = entry.attrs.get("MATLAB_class")
    kind = matlab.decode("latin1") if isinstance(matlab, bytes) else ""
    if "MATLAB_sparse" in entry.attrs and isinstance(entry, h5py.Group):
        return _dense(entry, name, budget)
    if kind in {"cell", "struct"} or isinstance(entry, h5py.Group):
        raise RefusedError(f"{name} is a cell array or a struct; save it as a matrix of numbers")
    values = _values(entry, name, budget)
    if not kind:
        return values
    if "MATLAB_empty" in entry.attrs:
        return np.zeros((0, 0))
    values = values.T
    if kind == "char":
        return _text(values)
    return values.astype(np.bool_) if kind == "logical" else values


def _values(dataset: Any, name: str, budget: Budget) -> np.ndarray:
    if dataset.external or dataset.is_virtual:
        raise RefusedError(f"{name} has its data in other files, which are not read; store the array itself")
    if dataset.shape is None:
        raise RefusedError(f"{name} is empty")
    kind = dataset.dtype
    is_text = h5py.check_string_dtype(kind) is not None
    if not is_text and kind.kind not in "biufc":
        raise RefusedError(f"{name} holds records, references or lists; save it as a matrix of numbers or as text")
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > max(_SMALL, _COMPRESSION * stored):
        raise ValueError(f"{name} claims {dataset.nbytes} bytes, of which the file holds {stored}")
    budget.check(dataset.size, kind.itemsize, f"the array {name} of shape {dataset.shape}")
    if not is_text:
        return np.asarray(dataset[()])
    words = np.asarray(dataset.asstr()[()])
    longest = max(map(len, words.ravel().tolist()), default=0)
    budget.check(words.size, 4 * longest, f"the array {name} of texts of up to {longest} characters")
    return words.astype(np.str_)


def _dense(group: Any, name: str, budget: Budget) -> np.ndarray:
    """Array from MATLAB's compressed columns: ``data[jc[j]:jc[j + 1]]`` stand in column j, in the rows of ``ir``."""
    starts = _values(group["jc"], "jc", budget).astype(np.int64).ravel()
    data, rows = (_values(group[key], key, budget).ravel() if key in group else np.empty(0) for key in ("data", "ir"))
    n_rows = int(group.attrs["MATLAB_sparse"])
    if len(data) != len(rows) or starts[0] != 0 or starts[-1] != len(data) or np.any(np.diff(starts) < 0):
        raise ValueError("the column starts of a sparse matrix do not fit its values")
    if n_rows < 0 or np.any((rows < 0) | (rows >= n_rows)):
        raise ValueError("the rows of a sparse matrix lead out of it")
    budget.check(n_rows * (len(starts) - 1), 8, f"the matrix {name} of shape {(n_rows, len(starts) - 1)}")
    matrix = np.zeros((n_rows, len(starts) - 1))
    matrix[rows.astype(np.int64), np.repeat(np.arange(len(starts) - 1), np.diff(starts))] = data
    return matrix


def _text(codes: np.ndarray) -> np.ndarray:
    """Text from UTF-16 codes: one text for each row of a matrix of characters."""
    rows = np.ascontiguousarray(codes.astype("<u2")).reshape(-1, codes.shape[-1])
    return np.array([row.tobytes().decode("utf-16-le") for row in rows], dtype=np.str_).reshape(codes.shape[:-1])


def _printable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _answers(path: str, budget: Budget) -> Iterator[tuple[dict[str, Any], np.ndarray | None]]:
    """The names of the arrays, then an answer to each line of the standard input."""
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield {"names": array_names(file)}, None
            for line in sys.stdin:
                try:
                    yield {}, read_array(file, json.loads(line), budget)
                except RefusedError as error:
                    yield {"error": str(error), "refused": True}, None
                except LargeError as error:
                    yield {"claimed": error.claimed, "what": error.what}, None
                except Exception as error:  # noqa: BLE001 - h5py raises any exception for a damaged file
                    yield {"error": f"{type(error).__name__}: {error}"}, None
    except Exception as error:  # noqa: BLE001 - as above
        yield {"error": f"{type(error).__name__}: {error}"}, None


def limit_process(seconds: int, n_bytes: int) -> None:
    """Limit the processor time and the memory of this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = min(used + _OTHER + n_bytes, sys.maxsize)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(path: str, seconds: int, limit: int) -> None:
    """Answer on the standard output until the standard input ends."""
    limit_process(seconds, _COPIES * limit)
    out = sys.stdout.buffer
    for header, array in _answers(path, Budget(limit)):
        if array is not None:
            header |= {"dtype": array.dtype.str, "shape": array.shape}
        out.write(json.dumps(header).encode() + b"\n")
        if array is not None:
            out.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        out.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
