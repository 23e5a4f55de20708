"""Tables: opened from files and data frames, and read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError, StorageError
from raysel.core.machine import max_data_bytes
from raysel.data.formats.columns import prepared, text_among_numbers
from raysel.data.formats.compressed import data_suffix
from raysel.data.formats.files import RawData, ReadOptions, reading
from raysel.data.formats.isolated import IsolatedBatches, isolated_table
from raysel.data.formats.isolated_child import batch_rows
from raysel.data.formats.table_contents import has_tensors, raw_data
from raysel.data.formats.text_tables import text_table
from raysel.data.layouts import Tensor
from raysel.data.stored_samples import StoredSamples

#: Bytes of the numbers, in double precision, that are read at a time of a file that stays on the
#: disk.
_BATCH = 2**24
#: Bytes up to which a batch of such an Arrow file is read as a whole.
_READ_WHOLE = 2**28

#: An Arrow table, and phrases on what was recognised.
Opened: TypeAlias = tuple[Any, tuple[str, ...]]
#: Name of a data frame in error messages.
SOURCE = "the data frame"


def _columnar_table(path: Path, _: ReadOptions) -> Opened:
    return isolated_table(path), ()


#: Kind of the file, for messages, and the function that opens it, by suffix.
_KINDS: dict[str, tuple[str, Callable[[Path, ReadOptions], Opened]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".data"), ("a text table", text_table)),
    ".parquet": ("a Parquet file", _columnar_table),
    **dict.fromkeys((".arrow", ".feather"), ("an Arrow IPC file", _columnar_table)),
}

#: Suffixes of the files that hold a table.
TABLE_SUFFIXES = tuple(_KINDS)


def open_table(path: Path, options: ReadOptions | None = None) -> Opened:
    """Open a file as an Arrow table, without a choice of labels and features."""
    kind, opened = _KINDS[data_suffix(path)]
    with reading(path, kind):
        table, notes = opened(path, options or ReadOptions())
        table, renamed = prepared(table)
        return table, (*notes, *renamed)


def read_table(path: Path, options: ReadOptions, opened: Opened | None = None) -> RawData:
    """Read a file that holds a table, or that `save_dataset` wrote, unless it is open already."""
    with reading(path, _KINDS[data_suffix(path)][0]):
        table, notes = opened or open_table(path, options)
        raw = raw_data(table, options, str(path), notes)
        del table
        pa.default_memory_pool().release_unused()  # as much as the data, which it would keep
        return raw


@dataclass(frozen=True)
class FileRows:
    """Rows of a Parquet or Arrow IPC file, a bounded number of which is read at a time."""

    path: Path
    options: ReadOptions
    shape: tuple[int, int]
    #: Size of the file and time of its last change, by which one that was written anew since is
    #: told.
    written: tuple[int, int]
    #: Whether its batches are too large to be read whole, so that another process maps it to
    #: memory.
    mapped: bool = False

    def __repr__(self) -> str:
        return str(self.path)

    def blocks(self) -> Iterator[FloatArray]:
        """Read consecutive rows until all are read; StorageError if the file changes meanwhile."""
        batches = IsolatedBatches(self.path, _BATCH) if self.mapped else _batches(self.path)
        contents = (raw for _, raw in _contents(self.path, self.options, batches))
        while True:
            try:
                self._check_unchanged()
                raw = next(contents, None)
                if raw is None:
                    return
                values = np.ascontiguousarray(raw.X, dtype=np.float64).reshape(len(raw.X), -1)
                self._check_unchanged()
            except DataError as error:
                raise StorageError(str(error)) from error
            yield values

    def _check_unchanged(self) -> None:
        with reading(self.path, _KINDS[data_suffix(self.path)][0]):
            if _written(self.path) != self.written:
                raise DataError(
                    f"{self.path} is not the file that was opened first: it was written anew"
                    " meanwhile, or is another copy on another machine. Restore it, or start again"
                    " with one file for all machines."
                )


def read_stored_table(path: Path, options: ReadOptions) -> RawData:
    """Read the labels of a Parquet or Arrow IPC file, whose samples stay in it."""
    if data_suffix(path) not in (".parquet", ".arrow", ".feather"):
        raise DataError(
            f"dataset.in_memory: false reads Parquet and Arrow files only, and {path} is another:"
            " leave it out, or write the data by save_dataset."
        )
    if options.drop_unlabelled:
        raise DataError(
            "drop_unlabelled is for tables in memory: leave in_memory out, or take rows without a"
            f" label out of {path}."
        )
    with reading(path, _KINDS[data_suffix(path)][0]):
        batches = IsolatedBatches(path, _BATCH)
        first: RawData | None = None
        beside: list[Any] = []
        rounded: set[str] = set()
        for table, raw in _contents(path, options, batches):
            first = first or replace(raw, X=np.empty((0, *raw.X.shape[1:])))
            beside.append(_beside_features(table, raw, options))
            rounded.update(raw.rounded)
        if first is None:
            raise DataError(f"{path} holds no rows: give a file with one for each sample.")
        known = replace(options, drop=tuple(first.places))
        read = raw_data(pa.concat_tables(beside), known, str(path))
        mapped = batches.largest > min(_READ_WHOLE, max_data_bytes())
        sides = first.X.shape[1:]
        shape = (len(read.y), int(np.prod(sides)))
        source = FileRows(
            path=path.absolute(),
            options=options,
            shape=shape,
            written=_written(path),
            mapped=mapped,
        )
        return replace(
            first,
            X=StoredSamples(source),
            y=read.y,
            groups=read.groups,
            places=read.places,
            layout=first.layout or (Tensor(sides) if len(sides) > 1 else None),
            rounded=tuple(name for name in (*first.feature_names, "X") if name in rounded),
        )


def _beside_features(table: Any, raw: RawData, options: ReadOptions) -> Any:
    """Copy the columns of a batch that are no features; a view would keep the batch in memory."""
    left_out = {*raw.feature_names, *options.drop} - raw.places.keys()
    if has_tensors(table):
        left_out.add("X")
    kept = [name for name in table.column_names if name not in left_out]
    return table.select(kept).take(np.arange(len(table)))


def _written(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _contents(
    path: Path, options: ReadOptions, batches: Iterable[Any]
) -> Iterator[tuple[Any, RawData]]:
    """Read consecutive rows of a file: their table, and its content."""
    n_read = 0
    with reading(path, _KINDS[data_suffix(path)][0]):
        for batch in batches:
            try:
                table, renamed = prepared(pa.Table.from_batches([batch]))
                raw = raw_data(table, options, str(path), renamed)
            except DataError as error:
                of_file = re.sub(
                    r"\bin row (\d+)",
                    lambda row: f"in row {n_read + int(row[1])}",  # noqa: B023
                    str(error),
                )
                raise DataError(of_file) from error
            n_read += len(batch)
            if not isinstance(raw.X, np.ndarray):
                raise DataError(
                    f"{path} holds several tasks, which are read into memory: leave"
                    " dataset.in_memory out."
                )
            yield table, raw


def _batches(path: Path) -> Iterator[Any]:
    """Read consecutive rows of a file that was read by a process of its own before."""
    if data_suffix(path) == ".parquet":
        with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches(batch_rows(file.schema_arrow, _BATCH), use_threads=False)
        return
    with pa.ipc.open_file(pa.OSFile(str(path))) as file:
        rows = batch_rows(file.schema, _BATCH)
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            yield from (batch.slice(start, rows) for start in range(0, len(batch), rows))


def frame_table(frame: Any) -> Any:
    """Return a data frame as an Arrow table."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            "a data frame is needed (pandas, polars, or an Arrow table), not"
            f" {type(frame).__name__}; arrays are for Dataset(X, y, layout)."
        )
    try:
        if isinstance(frame, pd.DataFrame):
            if not isinstance(frame.columns, pd.MultiIndex):
                frame = frame.rename(columns=str)
            return pa.Table.from_pandas(frame)
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        if isinstance(frame, pd.DataFrame) and (
            told := text_among_numbers((f"'{name}'", cells) for name, cells in frame.items())
        ):
            raise DataError(f"{SOURCE}: {told}") from error
        if isinstance(frame, pd.DataFrame) and (
            sparse := [
                name for name, kind in frame.dtypes.items() if isinstance(kind, pd.SparseDtype)
            ]
        ):
            raise DataError(
                f"{SOURCE}: column '{sparse[0]}' is sparse, and raysel needs all values; give it as"
                f" frame['{sparse[0]}'].sparse.to_dense(), and so each sparse column."
            ) from error
        # PyArrow's message names the column and its type.
        raise DataError(f"{SOURCE} cannot be used: {' '.join(map(str, error.args))}") from error
    if not isinstance(table, pa.Table):
        raise DataError(
            f"{SOURCE} of type {type(frame).__name__} holds no columns; give a data frame."
        )
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
    confounds: Sequence[str] = (),
) -> RawData:
    """Content of a data frame."""
    if y is not None and label is not None:
        raise DataError(f"label={label!r} and y are both given; give the labels once.")
    if not isinstance(label, (str, int, tuple, list, type(None))):
        raise DataError(
            f"label is the name of a column, not {type(label).__name__}; give labels apart from the"
            " frame as y."
        )
    several = isinstance(label, list) or (
        isinstance(label, tuple) and label not in set(frame.columns)
    )
    table, notes = prepared(frame_table(frame))
    apart = groups is not None and not isinstance(groups, (str, int))
    options = ReadOptions(
        label=None if several or label is None else str(label),
        quantities=tuple(map(str, label)) if isinstance(label, list | tuple) and several else (),
        groups=None if apart or groups is None else str(groups),
        drop=tuple(map(str, [drop] if isinstance(drop, (str, int)) else drop)),
        unprepared=unprepared,
        drop_unlabelled=drop_unlabelled,
        confounds=tuple(confounds),
    )
    if apart and drop_unlabelled:
        raise DataError(
            "drop_unlabelled leaves rows out, and groups are given apart; give them as a column."
        )
    if y is None:
        raw = raw_data(table, options, SOURCE, notes)
    else:
        raw = raw_data(table, options, SOURCE, notes, y=_aligned(y, frame, "y"))
        title, columns = getattr(y, "name", None), getattr(y, "columns", ())
        label = None if title is None else str(title)
        raw = replace(raw, label=label, label_names=tuple(map(str, columns)))
    if apart:
        raw = replace(raw, groups=_aligned(groups, frame, "groups"))
    return replace(raw, name=name, unprepared=unprepared)


def _aligned(values: Any, frame: Any, role: str) -> LabelArray:
    """Values of each row as an array; refuse those of pandas with another index than the frame."""
    index, rows = getattr(values, "index", None), getattr(frame, "index", None)
    if isinstance(index, pd.Index) and isinstance(rows, pd.Index) and not index.equals(rows):
        raise DataError(
            f"{role} and {SOURCE} have different indices, so their rows may not belong together;"
            f" give {role}.loc[frame.index], or {role}.to_numpy() if the rows are in the same"
            " order."
        )
    array = np.asarray(values)
    if role == "y" and array.dtype.kind == "f":  # samples without a label are left out
        return array
    if (missing := np.argwhere(pd.isna(array))).size:
        raise DataError(
            f"{role} has no value in row {missing[0][0]} (counted from 0); fill it in or remove the"
            " sample."
        )
    if array.dtype.kind != "O":
        return array
    # Text, categories and pandas' own types of integers come as objects.
    n_texts = sum(isinstance(value, str) for value in array.ravel())
    if n_texts in (0, array.size):
        return np.array(array.tolist())
    return array
