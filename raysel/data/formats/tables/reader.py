"""The reader of all files that hold a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet

from raysel.core.files import is_local
from raysel.data.formats.files import RawData, ReadOptions, reading
from raysel.data.formats.isolated import check_columnar
from raysel.data.formats.tables.columns import prepared
from raysel.data.formats.tables.contents import raw_data
from raysel.data.formats.tables.text import text_table

_OpenTable: TypeAlias = Callable[[Path, ReadOptions], tuple[Any, tuple[str, ...]]]


def _parquet_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    check_columnar(path)
    with pa.parquet.ParquetFile(path, memory_map=is_local(path), page_checksum_verification=True) as file:
        return file.read(), ()


def _arrow_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read an Arrow IPC file (Feather version 2), memory-mapped if it is on this machine's own disk."""
    check_columnar(path)
    return pa.ipc.open_file(pa.memory_map(str(path)) if is_local(path) else pa.OSFile(str(path))).read_all(), ()


_TEXT: tuple[str, _OpenTable] = ("a text table", text_table)
_ARROW: tuple[str, _OpenTable] = ("an Arrow IPC file", _arrow_table)

#: Kind of the file, for messages, and the function that opens it, by suffix.
_KINDS: dict[str, tuple[str, _OpenTable]] = {
    ".csv": _TEXT,
    ".tsv": _TEXT,
    ".txt": _TEXT,
    ".data": _TEXT,
    ".parquet": ("a Parquet file", _parquet_table),
    ".arrow": _ARROW,
    ".feather": _ARROW,
}

#: Suffixes of the files that hold a table.
TABLE_SUFFIXES = tuple(_KINDS)


def open_table(path: Path, options: ReadOptions | None = None) -> tuple[Any, tuple[str, ...]]:
    """Open a file as an Arrow table, without a choice of labels and features."""
    kind, opened = _KINDS[path.suffix.lower()]
    with reading(path, kind):
        table, notes = opened(path, options or ReadOptions())
        table, called = prepared(table)
        return table, (*notes, *called)


def read_table(path: Path, options: ReadOptions) -> RawData:
    """Read a file that holds a table, or that `save_dataset` wrote.

    The features of an Arrow IPC file that `save_dataset` wrote are memory-mapped, not copied, if the file is on this
    machine's own disk.
    """
    kind, opened = _KINDS[path.suffix.lower()]
    with reading(path, kind):
        table, notes = opened(path, options)
        return raw_data(table, options, str(path), notes)
