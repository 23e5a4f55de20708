"""Process that reads Parquet and Arrow files once, to see what they take; a script that imports nothing of raysel.

A few bytes of such a file can stand for billions of values or for texts of gigabytes, which only decoding shows. This
process decodes under a limit of memory, and checks all offsets, before raysel's own process reads the file.
"""

from __future__ import annotations

import json
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

#: Bytes of address space besides the table and what the libraries have before they read.
_OTHER = 2**28
#: Memory of this process by the limit of one file: the table, and what is decompressed of it at a time.
_COPIES = 2
#: Memory that a column takes besides its values, measured with tables of 100,000 columns, and that a value takes.
_COLUMN, _NUMBER = 24 * 2**10, 8
#: Bytes that a file may allocate and still count as memory-mapped: its schema and dictionaries.
_SMALL = 2**20
#: Seconds to wait for another file.
_IDLE = 5


#: Bytes of address space of this process before it reads.
_USED = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def claimed_bytes(schema: Any, n_rows: int) -> int:
    """Memory of a table with numbers in double precision, without the length of its texts."""
    return sum(_COLUMN + _NUMBER * n_rows * _width(kind) for kind in schema.types)


def read_bytes(table: Any) -> int:
    """Memory of a table that was read, with categories written out."""
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
    """Return the answer for a file."""
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


def _answer(path: str, seconds: int, limit: int) -> dict[str, Any]:
    """Read a file under limits of processor time in seconds and of bytes of memory, and say what it takes."""
    resource.setrlimit(resource.RLIMIT_CPU, (round(time.process_time()) + seconds, resource.RLIM_INFINITY))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _USED + _OTHER + _COPIES * limit + Path(path).stat().st_size
    resource.setrlimit(resource.RLIMIT_AS, (min(most, sys.maxsize if hard == resource.RLIM_INFINITY else hard), hard))
    try:
        return _read(path, limit)
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 - PyArrow raises any exception for a damaged file
        memory = "bad_alloc" in str(error) or "malloc" in str(error)
        return {"memory": True} if memory else {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}


def main() -> None:
    """Answer line after line."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    while select.select([sys.stdin], [], [], _IDLE)[0] and (line := sys.stdin.readline()):
        sys.stdout.write(json.dumps(_answer(**json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
