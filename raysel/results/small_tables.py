"""Columns of numbers of a Parquet file that is in a study's directory, which may be untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import LabelArray
from raysel.data.formats.isolated import check_columnar


def read_numbers(path: Path, columns: Iterable[str], n_rows: int) -> dict[str, LabelArray]:
    """Read columns of numbers, after a process of its own has read the file under a limit of memory."""
    names = list(columns)
    check_columnar(path)
    with pa.parquet.ParquetFile(path) as file:
        if file.metadata.num_rows != n_rows:
            raise ValueError(f"{path.name} has {file.metadata.num_rows} rows, not {n_rows}")
        for name in names:
            position = file.schema_arrow.get_field_index(name)
            kind = None if position < 0 else file.schema_arrow.field(position).type
            if kind is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise ValueError(f"{path.name} has no column {name} of numbers")
        table = file.read(columns=names)
    return {name: table[name].to_numpy() for name in names}
