"""Data frames of pandas, polars and PyArrow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.data.formats.files import RawData, ReadOptions
from raysel.data.formats.tables.contents import raw_data

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
    label: str | None,
    y: Any,
    groups: Any,
    drop: Collection[str],
    name: str,
) -> RawData:
    """Content of a data frame."""
    if y is not None and label is not None:
        raise DataError(f"label={label!r} and y are both given; give the labels once.")
    if not isinstance(label, (str, int, tuple, type(None))):
        raise DataError(
            f"label is the name of a column, not {type(label).__name__}; give labels apart from the frame as y."
        )
    table = frame_table(frame)
    apart = groups is not None and not isinstance(groups, (str, int))
    options = ReadOptions(
        label=None if label is None else str(label),
        groups=None if apart or groups is None else str(groups),
        drop=tuple(map(str, [drop] if isinstance(drop, (str, int)) else drop)),
    )
    raw = raw_data(table, options, SOURCE, y=None if y is None else _aligned(y, frame, "y"))
    if apart:
        raw = replace(raw, groups=_aligned(groups, frame, "groups"))
    if y is not None:
        columns = getattr(y, "columns", None)
        names = () if columns is None else tuple(map(str, columns))
        title = getattr(y, "name", None)
        raw = replace(raw, label=None if title is None else str(title), label_names=names)
    return replace(raw, name=name)


def _aligned(values: Any, frame: Any, role: str) -> LabelArray:
    """Values of each row as an array; refuse those of pandas whose index is another than the frame's."""
    index, rows = getattr(values, "index", None), getattr(frame, "index", None)
    if isinstance(index, pd.Index) and isinstance(rows, pd.Index) and not index.equals(rows):
        raise DataError(
            f"{role} and {SOURCE} have different indices, so their rows may not belong together; give "
            f"{role}.loc[frame.index], or {role}.to_numpy() if the rows are in the same order."
        )
    array = np.asarray(values)
    if (missing := np.argwhere(pd.isna(array))).size:
        raise DataError(
            f"{role} has no value in row {missing[0][0]} (counted from 0); fill it in or remove the sample."
        )
    if array.dtype.kind != "O":
        return array
    # Text, categories and pandas' own types of integers come as objects.
    n_texts = sum(isinstance(value, str) for value in array.ravel())
    return np.array(array.tolist()) if n_texts in (0, array.size) else array
