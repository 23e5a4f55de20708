"""Tables: opened from files and data frames, and read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.files import is_local
from raysel.data.formats.columns import prepared
from raysel.data.formats.files import RawData, ReadOptions, reading
from raysel.data.formats.isolated import check_columnar
from raysel.data.formats.table_contents import raw_data
from raysel.data.formats.text_tables import text_table

#: An Arrow table, and phrases on what was recognised.
_Opened: TypeAlias = tuple[Any, tuple[str, ...]]


def _parquet_table(path: Path, _: ReadOptions) -> _Opened:
    check_columnar(path)
    with pa.parquet.ParquetFile(path, memory_map=is_local(path), page_checksum_verification=True) as file:
        return file.read(), ()


def _arrow_table(path: Path, _: ReadOptions) -> _Opened:
    """Read an Arrow IPC file (Feather version 2), memory-mapped if it is on this machine's own disk."""
    check_columnar(path)
    return pa.ipc.open_file(pa.memory_map(str(path)) if is_local(path) else pa.OSFile(str(path))).read_all(), ()


#: Kind of the file, for messages, and the function that opens it, by suffix.
_KINDS: dict[str, tuple[str, Callable[[Path, ReadOptions], _Opened]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data"), ("a text table", text_table)),
    ".parquet": ("a Parquet file", _parquet_table),
    **dict.fromkeys((".arrow", ".feather"), ("an Arrow IPC file", _arrow_table)),
}

#: Suffixes of the files that hold a table.
TABLE_SUFFIXES = tuple(_KINDS)


def open_table(path: Path, options: ReadOptions | None = None) -> _Opened:
    """Open a file as an Arrow table, without a choice of labels and features."""
    kind, opened = _KINDS[path.suffix.lower()]
    with reading(path, kind):
        table, notes = opened(path, options or ReadOptions())
        table, renamed = prepared(table)
        return table, (*notes, *renamed)


def read_table(path: Path, options: ReadOptions) -> RawData:
    """Read a file that holds a table, or that `save_dataset` wrote.

    The features of an Arrow IPC file that `save_dataset` wrote are memory-mapped, not copied, if the file is on this
    machine's own disk.
    """
    with reading(path, _KINDS[path.suffix.lower()][0]):
        table, notes = open_table(path, options)
        raw = raw_data(table, options, str(path), notes)
        del table
        pa.default_memory_pool().release_unused()  # as much as the data, which it would keep
        return raw


#: Name of a data frame in error messages.
SOURCE = "the data frame"


def frame_table(frame: Any) -> Any:
    """Return a data frame as an Arrow table."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            f"a data frame is needed (pandas, polars, or an Arrow table), not {type(frame).__name__}; arrays are for "
            "Dataset(X, y, layout)."
        )
    try:
        if isinstance(frame, pd.DataFrame):
            if not isinstance(frame.columns, pd.MultiIndex):
                frame = frame.rename(columns=str)
            return pa.Table.from_pandas(frame)
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        # PyArrow's message names the column and its type.
        raise DataError(f"{SOURCE} cannot be used: {' '.join(map(str, error.args))}") from error
    if not isinstance(table, pa.Table):
        raise DataError(f"{SOURCE} of type {type(frame).__name__} holds no columns; give a data frame.")
    return table


def frame_data(
    frame: Any,
    label: Any,
    y: Any,
    groups: Any,
    drop: Collection[str],
    name: str,
    *,
    unprepared: bool = False,
    drop_unlabelled: bool = False,
) -> RawData:
    """Content of a data frame."""
    if y is not None and label is not None:
        raise DataError(f"label={label!r} and y are both given; give the labels once.")
    if not isinstance(label, (str, int, tuple, list, type(None))):
        raise DataError(
            f"label is the name of a column, not {type(label).__name__}; give labels apart from the frame as y."
        )
    several = isinstance(label, list) or (isinstance(label, tuple) and label not in set(frame.columns))
    table, notes = prepared(frame_table(frame))
    apart = groups is not None and not isinstance(groups, (str, int))
    options = ReadOptions(
        label=None if several or label is None else str(label),
        quantities=tuple(map(str, label)) if isinstance(label, list | tuple) and several else (),
        groups=None if apart or groups is None else str(groups),
        drop=tuple(map(str, [drop] if isinstance(drop, (str, int)) else drop)),
        unprepared=unprepared,
        drop_unlabelled=drop_unlabelled,
    )
    if apart and drop_unlabelled:
        raise DataError("drop_unlabelled leaves rows out, and groups are given apart; give them as a column.")
    raw = raw_data(table, options, SOURCE, notes, None if y is None else _aligned(y, frame, "y"))
    if apart:
        raw = replace(raw, groups=_aligned(groups, frame, "groups"))
    if y is not None:
        columns, title = getattr(y, "columns", None), getattr(y, "name", None)
        names = () if columns is None else tuple(map(str, columns))
        raw = replace(raw, label=None if title is None else str(title), label_names=names)
    return replace(raw, name=name, unprepared=unprepared)


def _aligned(values: Any, frame: Any, role: str) -> LabelArray:
    """Values of each row as an array; refuse those of pandas whose index is another than the frame's."""
    index, rows = getattr(values, "index", None), getattr(frame, "index", None)
    if isinstance(index, pd.Index) and isinstance(rows, pd.Index) and not index.equals(rows):
        raise DataError(
            f"{role} and {SOURCE} have different indices, so their rows may not belong together; give "
            f"{role}.loc[frame.index], or {role}.to_numpy() if the rows are in the same order."
        )
    array = np.asarray(values)
    if role == "y" and array.dtype.kind == "f":  # samples without a label are left out
        return array
    if (missing := np.argwhere(pd.isna(array))).size:
        raise DataError(
            f"{role} has no value in row {missing[0][0]} (counted from 0); fill it in or remove the sample."
        )
    if array.dtype.kind != "O":
        return array
    # Text, categories and pandas' own types of integers come as objects.
    n_texts = sum(isinstance(value, str) for value in array.ravel())
    return np.array(array.tolist()) if n_texts in (0, array.size) else array
