"""Labels in a file of their own, beside the file of the samples: an array, or a column of a text table."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.limits import check_data_bytes
from raysel.core.printing import listed
from raysel.data.formats.array_files import ARRAY_SUFFIXES, open_arrays
from raysel.data.formats.files import ReadOptions, as_labels, reading
from raysel.data.formats.names import has_label_name

_TEXT = (".csv", ".tsv", ".txt", ".dat")
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Labels:
    """Labels of the samples, and what stands beside them."""

    #: Labels; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    #: Groups, if they were asked for; shape (n_samples,).
    groups: LabelArray | None = None
    label: str | None = None


def read_labels(options: ReadOptions, sizes: Sequence[int]) -> Labels:
    """Read the file of labels that ``options.labels`` names."""
    path = options.labels
    if path is None:
        raise ValueError("options.labels is None")
    suffix = path.suffix.lower()
    columns: dict[str, Any]
    if suffix in _TEXT:
        with reading(path, "a text file of labels"):
            columns = _columns(path, options, sizes)
    elif suffix in ARRAY_SUFFIXES:
        with open_arrays(path, alone="") as file:
            wanted = [name for name in (options.label, options.groups) if name in file.names]
            wanted += [name for name in file.names if has_label_name(name)]
            names = file.names if len(file.names) == 1 else dict.fromkeys(wanted or file.names)
            columns = {name: array_labels(file.get(name)) for name in names}
    else:
        raise DataError(
            f"labels: {path} is of an unknown format; give one of {', '.join((*ARRAY_SUFFIXES, *_TEXT))}, with one "
            "label for each sample."
        )
    label = _chosen(columns, options, path)
    y = _values(path, label, columns[label])
    if len(y) not in sizes:
        raise DataError(f"labels: {path} has labels of {len(y)} samples, but there are {sizes[0]} samples.")
    groups = None
    if options.groups is not None:
        if options.groups not in columns:
            raise DataError(f"labels: {path} has no column {options.groups} for the groups; it holds {_list(columns)}.")
        groups = _values(path, options.groups, columns[options.groups])
    return Labels(y, groups, label or None)


def array_labels(values: Any) -> LabelArray:
    """Labels as a file of arrays stores them: flattened, text decoded and without MATLAB's spaces at the end."""
    labels = as_labels(np.asarray(values))
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    return np.char.rstrip(labels) if labels.dtype.kind == "U" else labels


def _chosen(columns: Collection[str], options: ReadOptions, path: Path) -> str:
    """Name of the column of the labels."""
    if options.label is not None:
        if options.label not in columns:
            raise DataError(f"label: {path} has no column {options.label}; it holds {_list(columns)}.")
        return options.label
    rest = [name for name in columns if name != options.groups]
    usual = [name for name in rest if has_label_name(name)]
    if len(usual) != 1 and len(rest) != 1:
        raise DataError(f"labels: {path} holds {_list(columns)}; name the one of the labels by dataset.label.")
    return (usual if len(usual) == 1 else rest)[0]


def _list(columns: Collection[str]) -> str:
    return listed(name or "one column without a name" for name in columns)


def _columns(path: Path, options: ReadOptions, sizes: Sequence[int]) -> dict[str, list[str]]:
    """Columns of a text as their cells; its first line names them if there is one line more than samples."""
    check_data_bytes(path, path.stat().st_size)
    text = path.read_text(encoding="utf-8-sig")
    if "\0" in text:
        raise ValueError("it holds zero bytes")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise DataError(f"labels: {path} has no lines but empty ones; give one label for each sample.")
    delimiter = options.delimiter or max(_DELIMITERS, key=lines[0].count)
    # A text of one column may hold delimiters within a label, e.g. a space, but not as often in each line.
    single = len({line.count(delimiter) for line in lines}) > 1 or delimiter not in lines[0]
    rows = [[line.strip()] for line in lines] if single and '"' not in text else list(_rows(lines, delimiter))
    width = len(rows[0])
    if different := [i for i, row in enumerate(rows) if len(row) != width]:
        raise ValueError(f"line {different[0] + 1} has {len(rows[different[0]])} cells, the first line {width}")
    if not _named(rows, sizes):
        if len(rows) not in sizes:
            raise DataError(
                f"labels: {path} has {len(rows)} lines for {sizes[0]} samples; give one line for each, and a first "
                "line of names or none."
            )
        if width > 1:
            raise DataError(f"labels: {path} has {width} columns without names; add a line of names, or keep one.")
        return {"": [row[0] for row in rows]}
    if len(set(rows[0])) < width:
        raise DataError(f"labels: two columns of {path} have the same name; give each a different one.")
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))


def _named(rows: Sequence[Sequence[str]], sizes: Sequence[int]) -> bool:
    """Return whether the first row holds names: there is one row more than samples, and it differs from the others."""
    n_rows = len(rows)
    if n_rows - 1 not in sizes or n_rows == sizes[0]:
        return False
    return len(rows[0]) > 1 or (rows[0] not in rows[1:] and not _number(rows[0][0]))


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _rows(lines: Sequence[str], delimiter: str) -> Any:
    return ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True))


def _values(path: Path, name: str, cells: Any) -> LabelArray:
    """Cells of a text as numbers if all are, else as text; an array is returned as it is."""
    if not isinstance(cells, list):
        return np.asarray(cells)
    if "" in cells:
        where = f"column {name} of {path}" if name else str(path)
        raise DataError(f"labels: {where} has no value for sample {cells.index('')}; fill it in.")
    if all(map(_number, cells)):
        return np.array(cells, dtype=np.float64)
    longest = max(map(len, cells), default=0)
    check_data_bytes(path, 4 * longest * len(cells), f"its labels of up to {longest} characters")
    return np.array(cells, dtype=np.str_)
