"""Process that reads files by libraries that damaged files crash; it imports nothing of raysel.

The HDF5 library crashes, or never returns, on some damaged files, and SciPy uses codes of a MATLAB
file as an index without a check. A few bytes of a Parquet or Arrow file can stand for billions of
values, which only decoding shows. An Arrow file that is mapped to memory and cut short ends this
process alone. Each file is read under limits of memory and of processor time.

A request is a line of JSON; so is the answer, followed by the bytes of the array that was asked
for. A table is a line, a stream of Arrow IPC, and a line with the answer, which may be an error.
"""

from __future__ import annotations

import importlib
import json
import math
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

#: Bytes of address space besides the content and what the libraries have before they read.
_OTHER = 2**28
#: Seconds to wait for another file.
_IDLE = 5
#: Least bytes at which each number is counted: samples are used in double precision.
_NUMBER = 8
#: Bytes of an array for each stored byte: compression by deflate reaches 1032.
_COMPRESSION = 1100
_SMALL = 2**24
#: MATLAB's own groups, which hold the content of cell arrays and objects.
_OF_MATLAB = ("#refs#", "#subsystem#")
_CELLS = "is a cell array or a struct; save it as a matrix of numbers"
#: Memory that a column takes besides its values, measured with tables of 100,000 columns, and a
#: row, as its label.
_COLUMN, _ROW = 24 * 2**10, 24
#: Columns of a Parquet file that are read at a time; each time takes .4 s with 100,000 columns.
_AT_A_TIME = 20_000
#: Bytes that a file may allocate and still count as memory-mapped: its schema and dictionaries.
_MAPPED = 2**20


class RefusedError(Exception):
    """A valid file or array that is not read; ``answer`` says why."""

    def __init__(self, **answer: Any) -> None:
        super().__init__(*answer.values())
        self.answer = answer


def check_size(n_values: int, size: int, what: str, limit: int) -> None:
    """Raise RefusedError if values of ``size`` bytes are more than the limit."""
    _check_bytes(int(n_values) * max(size, _NUMBER), what, limit)


def _check_bytes(claimed: int, what: str, limit: int) -> None:
    if claimed > limit:
        raise RefusedError(claimed=claimed, what=what)


# Arrays of HDF5 files, and of MATLAB files of version 7.3


def read_hdf5(path: str, limit: int, name: str | None) -> dict[str, Any] | np.ndarray:
    """Names of the arrays of an HDF5 file, or one of them."""
    import h5py  # noqa: PLC0415 - a library is loaded for its own files only

    with h5py.File(path, "r", locking="best-effort") as file:
        if name is None:
            return {"names": hdf5_names(file)}
        return hdf5_array(file, name, limit)


def hdf5_names(file: Any) -> list[str]:
    """List the arrays, links and variables of MATLAB of a file."""
    import h5py  # noqa: PLC0415

    names: list[str] = []
    variables: list[str] = []

    def visit(name: str, link: Any) -> None:
        if name.startswith((*_OF_MATLAB, *variables)) or any(
            "\ud800" <= sign <= "\udfff" for sign in name
        ):
            return
        if isinstance(link, h5py.HardLink) and isinstance(file[name], h5py.Group):
            if "MATLAB_class" not in file[name].attrs:
                return
            variables.append(f"{name}/")
        names.append(name)

    file.visititems_links(visit)
    return names


def hdf5_array(file: Any, name: str, limit: int) -> np.ndarray:
    """Read an array as `scipy.io.loadmat` does from version 7, or as h5py does if not MATLAB's."""
    import h5py  # noqa: PLC0415

    link = file.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise RefusedError(
            refused=(
                f"{name} is a link to {link.path}, and links are not followed; store the array"
                " itself"
            )
        )
    entry = file[name]
    matlab = entry.attrs.get("MATLAB_class")
    kind = matlab.decode("latin1") if isinstance(matlab, bytes) else ""
    if "MATLAB_sparse" in entry.attrs and isinstance(entry, h5py.Group):
        return _sparse_columns(entry, name, limit)
    if kind in {"cell", "struct"} or isinstance(entry, h5py.Group):
        raise RefusedError(refused=f"{name} {_CELLS}")
    values = _hdf5_values(entry, name, limit)
    if not kind:
        return values
    if "MATLAB_empty" in entry.attrs:
        return np.zeros((0, 0))
    values = values.T
    if kind == "char":
        return _text(values)
    if kind == "logical":
        return values.astype(np.bool_)
    return values


def _hdf5_values(dataset: Any, name: str, limit: int) -> np.ndarray:
    import h5py  # noqa: PLC0415

    if dataset.external or dataset.is_virtual:
        raise RefusedError(
            refused=(
                f"{name} has its data in other files, which are not read; store the array itself"
            )
        )
    if dataset.shape is None:
        raise RefusedError(refused=f"{name} is empty")
    kind = dataset.dtype
    is_text = h5py.check_string_dtype(kind) is not None
    if not is_text and kind.kind not in "biufc":
        raise RefusedError(
            refused=(
                f"{name} holds records, references or lists; save it as a matrix of numbers or as"
                " text"
            )
        )
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > max(_SMALL, _COMPRESSION * stored):
        raise ValueError(f"{name} claims {dataset.nbytes} bytes, of which the file holds {stored}")
    check_size(dataset.size, kind.itemsize, f"the array {name} of shape {dataset.shape}", limit)
    if not is_text:
        return np.asarray(dataset[()])
    words = np.asarray(dataset.asstr()[()])
    longest = max(map(len, words.ravel().tolist()), default=0)
    check_size(
        words.size, 4 * longest, f"the array {name} of texts of up to {longest} characters", limit
    )
    return words.astype(np.str_)


def _sparse_columns(group: Any, name: str, limit: int) -> np.ndarray:
    """Array from MATLAB's columns: ``data[jc[j]:jc[j + 1]]`` of column j are in rows of ``ir``."""
    starts = _hdf5_values(group["jc"], "jc", limit).astype(np.int64).ravel()
    data, rows = (
        _hdf5_values(group[key], key, limit).ravel() if key in group else np.empty(0)
        for key in ("data", "ir")
    )
    shape = int(group.attrs["MATLAB_sparse"]), len(starts) - 1
    check_size(math.prod(shape), _NUMBER, f"the matrix {name} of shape {shape}", limit)
    if (
        len(data) != len(rows)
        or starts[0] != 0
        or starts[-1] != len(data)
        or np.any(np.diff(starts) < 0)
    ):
        raise ValueError("the column starts of a sparse matrix do not fit its values")
    if min(shape) < 0 or np.any((rows < 0) | (rows >= shape[0])):
        raise ValueError("the rows of a sparse matrix lead out of it")
    matrix = np.zeros(shape)
    matrix[rows.astype(np.int64), np.repeat(np.arange(shape[1]), np.diff(starts))] = data
    return matrix


def _text(codes: np.ndarray) -> np.ndarray:
    """Text from UTF-16 codes: one text for each row of a matrix of characters."""
    rows = np.ascontiguousarray(codes.astype("<u2")).reshape(-1, codes.shape[-1])
    return np.array([row.tobytes().decode("utf-16-le") for row in rows], dtype=np.str_).reshape(
        codes.shape[:-1]
    )


# Arrays of MATLAB files of version 7 or older


def read_mat(path: str, limit: int, name: str | None) -> dict[str, Any] | np.ndarray:
    """Names of the variables of a MATLAB file, or one of them if it is a matrix."""
    from scipy import io, sparse  # noqa: PLC0415 - as above

    variables: dict[str, tuple[tuple[int, ...], str]] = {}
    listing: list[Any] = io.whosmat(path)
    for variable, shape, kind in listing:
        if variable and variable in variables:
            raise ValueError(f"two variables are called {variable}")
        variables[variable] = shape, kind
    if name is None:
        return {
            "names": [
                variable for variable in variables if variable and not variable.startswith("__")
            ]
        }
    shape, kind = variables[name]
    if kind in {"cell", "struct", "object", "function", "opaque", "unknown"}:
        raise RefusedError(refused=f"{name} {_CELLS}")
    if min(shape, default=0) < 0:
        raise ValueError(f"a variable of shape {shape}")
    check_size(math.prod(shape), _NUMBER, f"the matrix {name} of shape {shape}", limit)
    values = io.loadmat(path, variable_names=[name])[name]
    if sparse.issparse(values):
        return _dense(values, name, limit)
    return np.asarray(values)


def _dense(matrix: Any, name: str, limit: int) -> np.ndarray:
    check_size(
        math.prod(matrix.shape), _NUMBER, f"the matrix {name} of shape {matrix.shape}", limit
    )
    if matrix.format == "csc":
        # check_format checks nothing if the last of the column starts is 0, because the matrix then
        # counts as empty.
        matrix.check_format()
        if np.any(np.diff(matrix.indptr) < 0):
            raise ValueError("the column starts of a sparse matrix decrease")
    return np.asarray(matrix.toarray())


# Parquet and Arrow files


def write_table(path: str, limit: int) -> dict[str, Any]:
    """Read a Parquet or Arrow file whole, check what its table takes, and write it."""
    with _opened(path) as file:
        if _is_parquet(path):
            shape = file.metadata.num_rows, len(file.schema_arrow.names)
            _check_table(_claimed_bytes(file.schema_arrow, shape[0]), shape, limit)
            table = _read_columns(file)
        else:
            table = file.read_all()
    table.validate(full=True)
    _check_table(_table_bytes(table), table.shape, limit)
    with _stream(table.schema) as stream:
        stream.write_table(table)
    return {}


def _read_columns(file: Any) -> Any:
    """Read a Parquet file; of many columns some at a time, as their readers take 12 KiB each."""
    import pyarrow as pa  # noqa: PLC0415

    schema = file.schema_arrow
    names = schema.names
    # A name also stands for the columns within it, and for others of the same name.
    is_flat = len(set(names)) == len(file.schema) and not any("." in name for name in names)
    if len(names) <= _AT_A_TIME or not is_flat:
        return file.read(use_threads=False)
    columns: list[Any] = []
    for start in range(0, len(names), _AT_A_TIME):
        some = names[start : start + _AT_A_TIME]
        columns += file.read(columns=some, use_threads=False).columns
    return pa.Table.from_arrays(columns, schema=schema)


def write_batches(path: str, limit: int, n_bytes: int) -> dict[str, Any]:
    """Read a Parquet or Arrow file batch by batch, and write rows of about so many bytes each."""
    largest = 0
    with _opened(path) as file:
        schema = file.schema_arrow if _is_parquet(path) else file.schema
        rows = batch_rows(schema, n_bytes)
        with _stream(schema) as stream:
            for batch in _batches(path, file, rows):
                batch.validate(full=True)
                if _is_parquet(path) or _takes_memory():
                    _check_bytes(batch.nbytes, "one of its batches of rows", limit)
                largest = max(largest, batch.nbytes)
                for start in range(0, len(batch), rows):
                    stream.write_batch(batch.slice(start, rows))
    return {"largest": largest}


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _opened(path: str) -> Any:
    """Open a Parquet or Arrow file, mapped to memory."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet  # noqa: PLC0415

    if _is_parquet(path):
        return pa.parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True)
    _refuse_stream(path)
    return pa.ipc.open_file(pa.memory_map(path))


def _refuse_stream(path: str) -> None:
    """Refuse Arrow data in the format of streams, e.g. the files of Hugging Face's data sets."""
    with Path(path).open("rb") as file:
        if file.read(4) == b"\xff\xff\xff\xff":
            raise RefusedError(
                refused=(
                    "it is an Arrow IPC stream; write its table as a file, by"
                    " pyarrow.feather.write_feather"
                )
            )


def _batches(path: str, file: Any, rows: int) -> Iterator[Any]:
    """Read a Parquet file by so many rows, or the batches of an Arrow file as they are."""
    if _is_parquet(path):
        yield from file.iter_batches(rows, use_threads=False)
    else:
        yield from map(file.get_batch, range(file.num_record_batches))


def _takes_memory() -> bool:
    """Return whether batches of a mapped file take memory of their own, as compressed ones do."""
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.total_allocated_bytes() > _MAPPED)


def _stream(schema: Any) -> Any:
    """Announce a stream of batches, and open it."""
    import pyarrow as pa  # noqa: PLC0415

    _write_line({"stream": True})
    return pa.ipc.new_stream(sys.stdout.buffer, schema)


def batch_rows(schema: Any, n_bytes: int) -> int:
    """Return how many rows take so many bytes, where numbers count in double precision."""
    return max(1, n_bytes // (_NUMBER * sum(map(_width, schema.types))))


def _check_table(claimed: int, shape: tuple[int, int], limit: int) -> None:
    _check_bytes(claimed, f"its table of {shape[0]} rows and {shape[1]} columns", limit)


def _claimed_bytes(schema: Any, n_rows: int) -> int:
    """Memory of a table with numbers in double precision, without the length of its texts."""
    columns = sum(_COLUMN + _NUMBER * n_rows * _width(kind) for kind in schema.types)
    return columns + _ROW * n_rows


def _table_bytes(table: Any) -> int:
    """Memory of a table that was read, with categories written out."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    texts = 0
    for column in table.columns:
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            kind = chunk.dictionary.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                texts += len(chunk) * (pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0)
    return texts + max(table.nbytes, _claimed_bytes(table.schema, table.num_rows))


def _width(kind: Any) -> int:
    """Number of values of a cell; 1 if its type does not say."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    return 1


# Requests and answers

#: By the kind of a file: what loads the library, before the memory is limited; the function that
#: reads; and the memory of this process by the limit of one file: an array, a turned copy of it,
#: and compressed parts.
_KINDS: dict[str, tuple[Callable[[], object], Callable[..., Any], int]] = {
    "hdf5": (lambda: importlib.import_module("h5py"), read_hdf5, 3),
    "mat": (lambda: importlib.import_module("scipy.io"), read_mat, 3),
    "table": (lambda: importlib.import_module("pyarrow.parquet"), write_table, 2),
    "batches": (lambda: importlib.import_module("pyarrow.parquet"), write_batches, 2),
}


def _answer(
    kind: str, path: str, *, seconds: int, limit: int, **options: Any
) -> dict[str, Any] | np.ndarray:
    """Read a file under limits of processor time in seconds and of bytes of memory."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    load, read, n_copies = _KINDS[kind]
    try:
        load()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + _OTHER + n_copies * limit + Path(path).stat().st_size
        most = min(most, sys.maxsize)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(
            resource.RLIMIT_CPU, (round(time.process_time()) + seconds, resource.RLIM_INFINITY)
        )
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        content: dict[str, Any] | np.ndarray = read(path, limit, **options)
        if isinstance(content, dict):
            return content
        if content.dtype.kind not in "biufcSU":
            raise TypeError(f"{options['name']} holds values of type {content.dtype}")
        return np.ascontiguousarray(content)
    except RefusedError as error:
        return error.answer
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 - damaged files raise any exception
        memory = "bad_alloc" in str(error) or "malloc" in str(error)
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        if kind in {"table", "batches"} and "decrypt" in text:
            return {"refused": "it is encrypted; write it without encryption"}
        return {"memory": True} if memory else {"error": text}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def main() -> None:
    """Answer line after line."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    while select.select([sys.stdin], [], [], _IDLE)[0] and (line := sys.stdin.readline()):
        answer = _answer(**json.loads(line))
        if isinstance(answer, np.ndarray):
            _write_line({"dtype": answer.dtype.str, "shape": answer.shape})
            sys.stdout.buffer.write(answer.reshape(-1).view(np.uint8).data)
        else:
            _write_line(answer)
        sys.stdout.buffer.flush()


def _write_line(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
