"""Readers of tables: .csv, Parquet and Arrow IPC files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from raysel.arrays import FloatArray, LabelArray
from raysel.data.formats.files import RawData, ReadOptions, as_labels, missing, reading
from raysel.data.layouts import Layout, Modalities, Tasks, layout_from_json
from raysel.data.task_blocks import TaskBlocks
from raysel.errors import DataError

#: Key of the schema's metadata under which `save_dataset` stores the layout and the names as JSON.
METADATA_KEY = b"raysel"

_TARGETS = ("y", "label", "target")
#: Prefix of the columns of an indicator, e.g. y.grass and y.sky.
_LABEL_PREFIX = "y."


def read_csv(path: Path, options: ReadOptions) -> RawData:
    """Read a comma-separated table with a header.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions
        Names of the labels and the groups, and whatever else the format needs.

    Returns
    -------
    RawData
        Content of the file.

    Raises
    ------
    DataError
        If the file is damaged, lacks a column, or holds text instead of numbers.
    """
    with reading(path, "a comma-separated table (.csv)"):
        convert = pa.csv.ConvertOptions(strings_can_be_null=True)
        return _contents(path, pa.csv.read_csv(path, convert_options=convert), options)


def read_parquet(path: Path, options: ReadOptions) -> RawData:
    """Read a Parquet file, either a plain table or one that `save_dataset` wrote.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions
        Names of the labels and the groups, and whatever else the format needs.

    Returns
    -------
    RawData
        Content of the file.

    Raises
    ------
    DataError
        If the file is damaged, lacks a column, or holds text instead of numbers.
    """
    with (
        reading(path, "a Parquet file"),
        pa.parquet.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file,
    ):
        return _contents(path, file.read(), options)


def read_arrow(path: Path, options: ReadOptions) -> RawData:
    """Read an Arrow IPC file (Feather version 2), either a plain table or one that `save_dataset` wrote.

    The features of the latter are memory-mapped, not copied.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ReadOptions
        Names of the labels and the groups, and whatever else the format needs.

    Returns
    -------
    RawData
        Content of the file.

    Raises
    ------
    DataError
        If the file is damaged, lacks a column, or holds text instead of numbers.
    """
    with reading(path, "an Arrow IPC file"):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)  # Arrow would access memory by a damaged offset
        return _contents(path, table, options)


def _contents(path: Path, table: Any, options: ReadOptions) -> RawData:
    groups = options.groups
    names: list[str] = table.column_names
    metadata = table.schema.metadata or {}
    stored = json.loads(metadata[METADATA_KEY]) if METADATA_KEY in metadata else {}
    if stored and groups is None and "groups" in names:
        groups = "groups"
    labels = [name for name in names if name.startswith(_LABEL_PREFIX)]
    targets = [name for name in names if name in _TARGETS] or labels[:1]
    if options.label is not None:
        if options.label not in names:
            raise missing(path, f"column {options.label} for the labels", names)
        targets, labels = [options.label], []
    if unknown := [name for name in options.drop if name not in names]:
        raise missing(path, f"column {unknown[0]} to drop", names)
    if not targets:
        raise missing(path, "column y (or label, or target)", names)
    if len(targets) > 1:
        raise DataError(f"{path}: the columns {' and '.join(targets)} may all be the labels; keep one of them.")
    if groups is not None and groups not in names:
        raise missing(path, f"column {groups} for the groups", names)
    indicator = targets == labels[:1] and len(labels) > 1
    y = (
        np.stack([_labels(path, table, n) for n in labels], 1)
        if indicator
        else as_labels(_labels(path, table, targets[0]))
    )
    label_names = tuple(n.removeprefix(_LABEL_PREFIX) for n in labels) if indicator else ()
    group_values = None if groups is None else _labels(path, table, groups)
    layout = layout_from_json(stored["layout"]) if stored else None
    tensor = "X" in names and isinstance(table.schema.field("X").type, pa.FixedShapeTensorType)
    if tensor or isinstance(layout, Tasks):
        return RawData(
            X=_blocks(table, layout) if isinstance(layout, Tasks) else _tensor(table, "X"),
            y=y,
            groups=group_values,
            layout=layout,
            feature_names=tuple(stored.get("feature_names", ())),
            name=stored.get("name"),
            label_names=tuple(stored.get("label_names", ())),
        )
    # pandas stores the index of a data frame as a column, which is not a feature.
    index = {name for name in (table.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    features = [name for name in names if name not in {*targets, *labels, *options.drop, groups} | index]
    return RawData(
        X=_numbers(path, table, features),
        y=y,
        groups=group_values,
        layout=_modalities(features),
        feature_names=tuple(features),
        label_names=label_names,
        label=targets[0] if not indicator else None,
    )


def _modalities(features: Sequence[str]) -> Layout | None:
    """Layout of several modalities if all columns are named ``modality.feature`` or ``modality[index]``, else None."""
    matches = [re.match(r"([^.\[]+)(?:\.|\[)", name) for name in features]
    prefixes = [match[1] for match in matches if match]
    widths = {prefix: prefixes.count(prefix) for prefix in prefixes}
    runs = [prefix for prefix, _ in groupby(prefixes)]
    if len(prefixes) < len(features) or len(widths) < 2 or len(runs) > len(widths):
        return None
    return Modalities(widths)


def _blocks(table: Any, layout: Tasks) -> TaskBlocks:
    """Read samples of several tasks, stored as a list of values of its own task for each sample."""
    own = table.column("X").combine_chunks()
    values, offsets = own.values.to_numpy(), own.offsets.to_numpy()
    tasks = table.column("task").to_numpy()
    if not np.isin(tasks, np.arange(len(layout.tasks))).all():
        raise ValueError(f"a sample belongs to none of the {len(layout.tasks)} tasks")
    blocks = []
    for i, width in enumerate(layout.widths().values()):
        starts, stops = offsets[:-1][tasks == i], offsets[1:][tasks == i]
        if not (stops - starts == width).all():
            raise ValueError(f"a sample of task {i} does not have {width} values")
        block = np.empty((len(starts), width))
        for row, start in zip(block, starts, strict=True):
            row[:] = values[start : start + width]
        block.flags.writeable = False  # TaskBlocks would copy a writable array
        blocks.append(block)
    return TaskBlocks(tuple(blocks), tasks)


def _tensor(table: Any, name: str) -> LabelArray:
    column = table.column(name)
    # `save_dataset` writes one chunk, which combine_chunks would copy.
    return (column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()).to_numpy_ndarray()


def _numbers(path: Path, table: Any, names: Sequence[str]) -> FloatArray:
    """Columns of numbers as an array of shape (n_rows, n_columns); empty cells are NaN."""
    X = np.empty((table.num_rows, len(names)))
    for i, name in enumerate(names):
        if names.count(name) > 1:
            raise DataError(f"{path}: two columns are called '{name}'; give each column a different name.")
        column = table.column(name)
        if not _is_numeric(column.type):
            raise _not_numeric(path, name, column)
        X[:, i] = column.cast(pa.float64(), safe=False).to_numpy()
    return X


def _is_numeric(kind: Any) -> bool:
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _not_numeric(path: Path, name: str, column: Any) -> DataError:
    values = column.to_pylist()
    present = [i for i, value in enumerate(values) if value is not None]
    row = next((i for i in present if not _is_number(values[i])), present[0])  # all may be numbers stored as text
    return DataError(
        f"{path}: column '{name}' holds {str(values[row])!r} in row {row} (counted from 0, without the header), "
        "which is not a number; encode the column as numbers or remove it."
    )


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _labels(path: Path, table: Any, name: str) -> LabelArray:
    if isinstance(table.schema.field(name).type, pa.FixedShapeTensorType):
        return _tensor(table, name)
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise DataError(
            f"{path}: column '{name}' has no value in row {row} (counted from 0, without the header); "
            "fill it in or remove the sample."
        )
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    return column.to_numpy(zero_copy_only=False)
