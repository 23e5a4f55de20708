"""Confounds and sites beside features: columns of the table, arrays, or another table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError, suggestion
from raysel.data.formats.columns import features
from raysel.data.formats.compressed import data_suffix
from raysel.data.formats.files import Confounds, ReadOptions, matching
from raysel.data.formats.recognition import is_text, reads_as_number
from raysel.data.formats.tables import TABLE_SUFFIXES, open_table


def read_table_confounds(table: Any, options: ReadOptions, source: str) -> Confounds | None:
    """Return the columns of an Arrow table named as confounds; None if none is asked for."""
    if not options.confounds:
        return None
    names: list[str] = table.column_names
    apart = {options.groups: "groups", options.label: "label"}
    for pattern in options.confounds:
        if pattern in apart:
            raise DataError(
                f"confounds: {pattern} is the column of the {apart[pattern]} of {source}; name"
                " another."
            )
        if not matching([pattern], names):
            raise DataError(
                f"confounds: {source} has no column {pattern}; {suggestion(pattern, names)}"
            )
    positions = [i for i in matching(options.confounds, names) if names[i] not in apart]
    values, categories = features(table, positions, source, unprepared=True)
    return Confounds(values, tuple(names[i] for i in positions), categories)


def read_array_confounds(
    arrays: Mapping[str, LabelArray], options: ReadOptions, n_samples: int, source: str
) -> Confounds | None:
    """Return the arrays of a file that are named as confounds, or else the columns of its table."""
    if not options.confounds:
        return None
    names = list(arrays)
    if all(matching([pattern], names) for pattern in options.confounds):
        found = [names[i] for i in matching(options.confounds, names)]
        return _joined({name: arrays[name] for name in found}, n_samples, source)
    return beside(options, n_samples, source)


def beside(options: ReadOptions, n_samples: int, source: str) -> Confounds | None:
    """Return the confounds of the table beside a source, with a row for each sample."""
    table = _table(options, source)
    if table.num_rows != n_samples:
        raise DataError(
            f"table: {_place(options)} has {table.num_rows} rows, and {source} has {n_samples}"
            " samples; give a row for each, in their order."
        )
    return read_table_confounds(table, options, str(_place(options)))


def beside_files(options: ReadOptions, files: Sequence[str], source: str) -> Confounds | None:
    """Return the confounds of the table beside a folder, which names the path of each file."""
    table, place = _table(options, source), str(_place(options))
    for name in table.column_names:
        if is_text(table.schema.field(name).type):
            cells = [
                str(cell).strip().replace("\\", "/") for cell in table.column(name).to_pylist()
            ]
            rows = {cell: row for row, cell in enumerate(cells)}
            if len(rows) == len(cells) and rows.keys() >= set(files):
                order = [rows[file] for file in files]
                return read_table_confounds(table.take(order), options, place)
    raise DataError(
        f"table: {place} has no column with the path of each image in {source}, such as {files[0]},"
        " each once; add one."
    )


def _table(options: ReadOptions, source: str) -> Any:
    place = _place(options)
    if place is None:
        raise DataError(
            f"confounds: {source} has no column {options.confounds[0]}; name a table with a row for"
            " each sample that has it, by dataset.table."
        )
    return open_table(place)[0]


def _place(options: ReadOptions) -> Path | None:
    """The table, or the file of labels if it is a table."""
    labels = options.labels
    if options.table is None and labels is not None and data_suffix(labels) in TABLE_SUFFIXES:
        return labels
    return options.table


def _joined(columns: Mapping[str, LabelArray], n_samples: int, source: str) -> Confounds:
    """Join arrays of numbers or text, one value for each sample."""
    values, categories = np.empty((n_samples, len(columns))), {}
    for i, (name, column) in enumerate(columns.items()):
        cells = np.asarray(column)
        if cells.size == max(cells.shape, default=0):
            cells = cells.ravel()
        if cells.shape != (n_samples,):
            raise DataError(
                f"confounds: {name} of {source} has the shape {cells.shape}; give one value for"
                f" each of the {n_samples} samples."
            )
        if cells.dtype.kind in "biuf":
            values[:, i] = cells
            continue
        texts = [text.strip() for text in cells.astype(np.str_).tolist()]
        if all(not text or reads_as_number(text) for text in texts):
            values[:, i] = [float(text or "nan") for text in texts]
            continue
        different = sorted(set(texts) - {""})
        place = {text: float(number) for number, text in enumerate(different)}
        values[:, i] = [place.get(text, np.nan) for text in texts]
        categories[name] = tuple(different)
    return Confounds(values, tuple(columns), categories)
