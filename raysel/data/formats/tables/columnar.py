"""Parquet and Arrow IPC files as Arrow tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from raysel.data.formats.files import ReadOptions
from raysel.errors import DataError
from raysel.limits import MAX_DATA_BYTES, check_data_bytes, in_words, max_data_bytes

_CHILD = Path(__file__).with_name("child.py")
#: Processor time for a file in seconds, and seconds more for each byte: 20 to 200 times what valid files take.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-7


def parquet_table(path: Path, options: ReadOptions | None = None) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read a Parquet file, after a process of its own has read it under a limit of memory.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions, default=None
        Not used.

    Returns
    -------
    table : pyarrow.Table
    notes : tuple of str
        None.

    Raises
    ------
    DataError
        If the table would take too much memory.
    ValueError
        If the file is damaged.
    """
    _check(path)
    with pa.parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file:
        return file.read(), ()


def arrow_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read an Arrow IPC file (Feather version 2), memory-mapped, after a process of its own has validated it.

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

    Raises
    ------
    DataError
        If the table would take too much memory; an uncompressed table that is memory-mapped takes none.
    ValueError
        If the file is damaged, e.g. by an offset that leads out of it.
    """
    _check(path)
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all(), ()


def _check(path: Path) -> None:
    """Read a file in a process of its own, and check what it takes."""
    limit = max_data_bytes()
    seconds = round(_SECONDS + _SECONDS_PER_BYTE * (path.stat().st_size + limit))
    # -P: the script's own folder is not searched for modules.
    command = [sys.executable, "-P", str(_CHILD), str(path), str(seconds), str(limit)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode or not done.stdout:
        raise ValueError(f"the process that read it by PyArrow ended early, with status {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "memory" in answer:
        raise DataError(
            f"{path} takes more memory to read than the limit of {in_words(limit)} for its content allows: it is "
            f"too large, damaged or an attack. If you trust it, set the environment variable {MAX_DATA_BYTES} to more."
        )
    if "error" in answer:
        raise ValueError(answer["error"])
    check_data_bytes(path, answer["claimed"], answer["what"])
