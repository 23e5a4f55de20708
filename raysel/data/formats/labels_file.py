"""Labels in a file beside that of the samples: an array, or a column of a text table."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.machine import check_data_bytes
from raysel.core.printing import listed
from raysel.data.formats.array_files import ARRAY_SUFFIXES, open_arrays
from raysel.data.formats.compressed import data_suffix, text_content
from raysel.data.formats.files import ReadOptions, as_labels, reading
from raysel.data.formats.recognition import has_label_name, reads_as_number
from raysel.data.formats.sparse_matrices import refuse_sparse_arrays, refuse_sparse_text
from raysel.data.formats.text_tables import as_utf8, text_without_comments
from raysel.data.whole_numbers import whole_numbers

_TEXT = (".csv", ".tsv", ".txt", ".dat")
_DELIMITERS = ",;\t"
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")


@dataclass(frozen=True)
class FileLabels:
    """Labels of the samples, and what stands beside them."""

    #: Labels; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    #: Groups, if they were asked for; shape (n_samples,).
    groups: LabelArray | None = None
    label: str | None = None


def read_labels(options: ReadOptions, sizes: Sequence[int]) -> FileLabels:
    """Read the file of labels that ``options.labels`` names, for one of the numbers of samples."""
    path = options.labels
    if path is None:
        raise ValueError("options.labels is None")
    columns: dict[str, Any]
    label, groups = options.label, options.groups
    if data_suffix(path) in _TEXT:
        with reading(path, "a text file of labels"):
            columns = _text_columns(path, options, sizes)
    elif data_suffix(path) in ARRAY_SUFFIXES:
        with open_arrays(path, alone="") as file:
            if label not in file.names:
                refuse_sparse_arrays(path, file.names, "y")
            given = [name for name in (label, groups) if name in file.names]
            usual = [name for name in file.names if has_label_name(name)]
            names = dict.fromkeys([*given, *usual] or file.names)
            columns = {name: array_labels(file.get(name)) for name in names}
    else:
        raise DataError(
            f"labels: {path} is of an unknown format; give one of"
            f" {', '.join((*ARRAY_SUFFIXES, *_TEXT))}, with one label for each sample."
        )
    held = listed(name or "one column without a name" for name in columns)
    if label is None:
        rest = [name for name in columns if name != groups]
        named = [name for name in rest if has_label_name(name)]
        if len(named) != 1 and len(rest) != 1:
            raise DataError(
                f"labels: {path} holds {held}; name the one of the labels by dataset.label."
            )
        label = (named or rest)[0]
    elif label not in columns:
        raise DataError(f"label: {path} has no column {label}; it holds {held}.")
    y = _values(path, label, columns[label])
    if len(y) not in sizes:
        raise DataError(
            f"labels: {path} has labels of {len(y)} samples, but there are {sizes[0]} samples."
        )
    if groups is not None and groups not in columns:
        raise DataError(f"labels: {path} has no column {groups} for the groups; it holds {held}.")
    return FileLabels(
        y, None if groups is None else _values(path, groups, columns[groups]), label or None
    )


def array_labels(values: Any) -> LabelArray:
    """Labels of a file of arrays: flattened, decoded, and without MATLAB's spaces at the end."""
    labels = as_labels(np.asarray(values))
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind == "U":
        return np.char.rstrip(labels)
    return labels


def _text_columns(path: Path, options: ReadOptions, sizes: Sequence[int]) -> dict[str, list[str]]:
    """Columns of a text as cells, named by the first line if it is one more than samples."""
    data, _ = as_utf8(text_content(path))
    refuse_sparse_text(path, data, "y")
    data, _ = text_without_comments(data, options.delimiter)
    text = data.decode()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise DataError(
            f"labels: {path} has no lines but empty ones; give one label for each sample."
        )
    delimiter = options.delimiter or max(_DELIMITERS, key=lines[0].count)
    # A text of one column may hold delimiters within a label, e.g. a space, but not as often in
    # each line.
    if '"' not in text and (
        delimiter not in lines[0] or len({line.count(delimiter) for line in lines}) > 1
    ):
        rows = [[line.strip()] for line in lines]
    else:
        cells = csv.reader(lines, delimiter=delimiter, strict=True)
        rows = [[cell.strip() for cell in row] for row in cells]
    first, *rest = rows
    for i, row in enumerate(rest, 2):
        if len(row) != len(first):
            raise ValueError(f"line {i} has {len(row)} cells, the first line {len(first)}")
    # A line more than samples, which differs from the others, holds names.
    may_name = len(first) > 1 or (first not in rest and not reads_as_number(first[0]))
    if may_name and len(rest) in sizes and len(rows) != sizes[0]:
        if len(set(first)) < len(first):
            raise DataError(
                f"labels: two columns of {path} have the same name; give each a different one."
            )
        return dict(zip(first, map(list, zip(*rest, strict=True)), strict=True))
    if len(rows) not in sizes:
        raise DataError(
            f"labels: {path} has {len(rows)} lines for {sizes[0]} samples; give one line for each,"
            " and a first line of names or none."
        )
    if len(first) > 1:
        raise DataError(
            f"labels: {path} has {len(first)} columns without names; add a line of names, or keep"
            " one."
        )
    return {"": [row[0] for row in rows]}


def _values(path: Path, name: str, cells: Any) -> LabelArray:
    """Cells of a text as numbers if all are, else as text; an array is returned as it is."""
    if not isinstance(cells, list):
        return np.asarray(cells)
    if "" in cells:
        where = f"column {name} of {path}" if name else str(path)
        raise DataError(f"labels: {where} has no value for sample {cells.index('')}; fill it in.")
    if all(map(_WHOLE.fullmatch, cells)):
        return whole_numbers(map(int, cells))
    if all(map(reads_as_number, cells)):
        return np.array(cells, dtype=np.float64)
    longest = max(map(len, cells), default=0)
    check_data_bytes(path, 4 * longest * len(cells), f"its labels of up to {longest} characters")
    return np.array(cells, dtype=np.str_)
