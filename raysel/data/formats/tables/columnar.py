"""Parquet and Arrow IPC files as Arrow tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from raysel.data.formats.files import ReadOptions
from raysel.files import is_local


def parquet_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions
        Not used.

    Returns
    -------
    table : pyarrow.Table
    notes : tuple of str
        None.
    """
    with pa.parquet.ParquetFile(path, memory_map=is_local(path), page_checksum_verification=True) as file:
        return file.read(), ()


def arrow_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read an Arrow IPC file (Feather version 2), which is memory-mapped if it is on this machine's own disk.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions
        Not used.

    Returns
    -------
    table : pyarrow.Table
    notes : tuple of str
        None.
    """
    table = pa.ipc.open_file(pa.memory_map(str(path)) if is_local(path) else pa.OSFile(str(path))).read_all()
    table.validate(full=True)  # Arrow would access memory by a damaged offset
    return table, ()
