"""Process that reads a Parquet or Arrow file once, to see what it takes; run as a script, it imports nothing of raysel.

A few bytes of such a file can stand for billions of values or for texts of gigabytes, which only decoding shows.
This process decodes under a limit of memory, and checks all offsets, before raysel's own process reads the file. It
prints one line of JSON: ``{"claimed": bytes, "what": ...}``, ``{"memory": true}`` if the limit of its own memory was
reached, or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # others reserve address space, which is limited here

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

#: Bytes of address space besides the table, for the libraries.
_LIBRARIES = 2**31
#: Memory of this process by the limit of one file: the table, and what is decompressed of it at a time.
_COPIES = 2
#: Memory that a column takes besides its values, measured with tables of 100,000 columns, and that a value takes.
_COLUMN, _NUMBER = 24 * 2**10, 8
#: Bytes that a file may allocate and still count as memory-mapped: its schema and dictionaries.
_SMALL = 2**20


def claimed_bytes(schema: Any, n_rows: int) -> int:
    """Memory of a table with numbers in double precision, without the length of its texts.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns.
    n_rows : int
        Number of rows.

    Returns
    -------
    int
        Bytes.
    """
    return sum(_COLUMN + _NUMBER * n_rows * _width(kind) for kind in schema.types)


def read_bytes(table: Any) -> int:
    """Memory of a table that was read, with categories written out.

    Parameters
    ----------
    table : pyarrow.Table
        The table.

    Returns
    -------
    int
        Bytes.
    """
    texts = 0
    for column in table.columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            kind = chunk.dictionary.type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                texts += len(chunk) * (pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0)
    return texts + max(table.nbytes, claimed_bytes(table.schema, table.num_rows))


def _width(kind: Any) -> int:
    """Number of values of a cell; 1 if its type does not say."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    return kind.list_size * _width(kind.value_type) if pa.types.is_fixed_size_list(kind) else 1


def _read(path: str, limit: int) -> dict[str, Any]:
    """What to say of a file."""
    if path.lower().endswith(".parquet"):
        with pa.parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file:
            claimed = claimed_bytes(file.schema_arrow, file.metadata.num_rows)
            what = f"its table of {file.metadata.num_rows} rows and {len(file.schema_arrow.names)} columns"
            if claimed <= limit:
                claimed = read_bytes(file.read(use_threads=False))
            return {"claimed": claimed, "what": what}
    table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    table.validate(full=True)
    claimed = read_bytes(table)
    if pa.total_allocated_bytes() < _SMALL and claimed <= Path(path).stat().st_size:
        claimed = 0
    return {"claimed": claimed, "what": f"its table of {table.num_rows} rows and {table.num_columns} columns"}


def main(path: str, seconds: int, limit: int) -> None:
    """Read a file and print what it takes.

    Parameters
    ----------
    path : str
        Path of the file.
    seconds : int
        Processor time after which the process is ended.
    limit : int
        Bytes of memory that the table may take.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = min(_LIBRARIES + _COPIES * limit + Path(path).stat().st_size, sys.maxsize)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        answer = _read(path, limit)
    except MemoryError:
        answer = {"memory": True}
    except Exception as error:  # noqa: BLE001 - PyArrow raises any exception for a damaged file
        memory = "bad_alloc" in str(error) or "malloc" in str(error)
        answer = {"memory": True} if memory else {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
