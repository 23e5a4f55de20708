"""Writer of data sets as Parquet (compressed) or Arrow IPC files (memory-mapped when read)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.core.errors import DataError
from raysel.core.files import atomic_write
from raysel.data.dataset import Dataset
from raysel.data.formats.table_contents import METADATA_KEY
from raysel.data.task_blocks import TaskBlocks


def save_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a data set to a file from which `load_dataset` reads an identical one.

    The file has a column ``X`` with a fixed-shape tensor for each sample, a column ``y`` and, if the data set has
    groups, a column ``groups``. For several tasks ``X`` holds a list of the values of the sample's own task, and a
    column ``task`` the position of that task. Layout, feature names, label names, name, the label's name
    and notes are stored as JSON in the schema's metadata under ``raysel``. The file is written atomically.

    Parameters
    ----------
    dataset : Dataset
        Data set to write.
    path : str or Path
        Path of the file, with suffix .parquet, or .arrow or .feather (Arrow IPC without compression).

    Raises
    ------
    DataError
        If the suffix is unknown, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.loading import load_dataset
    >>> digits = load_dataset("digits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_dataset(digits, Path(folder, "digits.parquet"))
    ...     load_dataset(Path(folder, "digits.parquet")).content_hash == digits.content_hash
    True
    """
    path = Path(path)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise DataError(f"{path} has an unknown suffix; give a path with one of {', '.join(_WRITERS)}.")
    try:
        with atomic_write(path) as temporary:
            write(_table(dataset), temporary)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}.") from error


def _table(dataset: Dataset) -> Any:
    layout, y = dataset.layout, dataset.y
    columns = {"y": pa.FixedShapeTensorArray.from_numpy_ndarray(y) if dataset.is_multilabel else pa.array(y)}
    if isinstance(dataset.X, TaskBlocks):
        columns |= {"X": _own_values(dataset.X), "task": pa.array(dataset.X.tasks)}
    else:
        sides = layout.grid or (layout.n_features,)
        columns["X"] = pa.FixedShapeTensorArray.from_numpy_ndarray(dataset.X.reshape(-1, *sides))
    if dataset.groups is not None:
        columns["groups"] = pa.array(dataset.groups)
    described = {
        "name": dataset.name,
        "layout": layout.to_json(),
        "feature_names": dataset.feature_names,
        "label_names": dataset.label_names,
    }
    if dataset.label is not None:
        described["label"] = dataset.label
    if dataset.notes:
        described["notes"] = dataset.notes
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(described)})


def _own_values(X: TaskBlocks) -> Any:
    """Arrow array with a list of the values of its own task for each sample."""
    offsets = np.concatenate([[0], np.array(X.widths)[X.tasks].cumsum()])
    values = np.empty(offsets[-1])
    for rows, _, block in X.parts():
        for start, sample in zip(offsets[rows], block, strict=True):
            values[start : start + len(sample)] = sample
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))


def _write_parquet(table: Any, path: Path) -> None:
    pa.parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_page_checksum=True)


def _write_arrow(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
