"""Columns of an Arrow table as arrays of numbers or labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.core.printing import by_number, listed, short
from raysel.data.formats.recognition import (
    counted_texts,
    decoded,
    is_in_other_words,
    is_number,
    is_text,
    numbered_texts,
    odd_cells,
    reads_as_number,
    value_type,
)
from raysel.data.targets import looks_like_quantity
from raysel.data.whole_numbers import are_rounded, large_columns, whole_numbers

#: Start of the name of a column without one, followed by its position: that of pandas.
UNNAMED = "Unnamed: "

_UNLABELLED = ", or leave such rows out by drop_unlabelled (dataset.drop_unlabelled: true)"
_COUNTED = "(counted from 0, without the header)"


def prepared(table: Any) -> tuple[Any, tuple[str, ...]]:
    """Name the columns without a name as pandas does, ``Unnamed: <position>``.

    String views become plain text, categories of numbers these numbers, as in a Parquet file, and
    half precision single, for which PyArrow has all functions.
    """
    names, notes = list(table.column_names), []
    known = set(names)
    for i, (name, kind) in enumerate(zip(names, table.schema.types, strict=True)):
        if not name:
            names[i] = f"{UNNAMED}{i}"
            while names[i] in known:
                names[i] += ".1"
            notes.append(f"column {i} has no name and is called {names[i]!r}")
        if pa.types.is_float16(kind):
            field = table.schema.field(i).with_type(pa.float32())
            table = table.set_column(i, field, table.column(i).cast(pa.float32()))
        if pa.types.is_dictionary(kind) and is_number(kind.value_type):
            field = table.schema.field(i).with_type(kind.value_type)
            table = table.set_column(i, field, decoded(table.column(i)))
        # polars writes string views, which few functions of PyArrow accept.
        if pa.types.is_string_view(value_type(kind)):
            chunks = [_plain_text(chunk) for chunk in table.column(i).chunks]
            field = table.schema.field(i).with_type(pa.large_string())
            table = table.set_column(i, field, pa.chunked_array(chunks, pa.large_string()))
    if notes:
        table = table.rename_columns(names)
    return table, tuple(notes)


def _plain_text(values: Any) -> Any:
    if isinstance(values, pa.DictionaryArray):
        return values.dictionary.cast(pa.large_string()).take(values.indices)
    return values.cast(pa.large_string())


def tensor(column: Any) -> LabelArray:
    """Return a column of fixed-shape tensors as an array."""
    # `save_dataset` writes one chunk, which combine_chunks would copy.
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    array: LabelArray = values.to_numpy_ndarray()
    return array


def features(
    table: Any,
    positions: Sequence[int],
    source: str,
    y: LabelArray | None = None,
    *,
    unprepared: bool = False,
) -> tuple[FloatArray, dict[str, tuple[str, ...]]]:
    """Return columns as one array of numbers; unprepared ones with NaN and texts of categories."""
    known, kinds = table.schema.names, table.schema.types  # which make lists at each access
    names = [known[i] for i in positions]
    texts = [i for i in positions if not (is_number(kinds[i]) or pa.types.is_null(kinds[i]))]
    if wrong := [i for i in texts if not (unprepared and is_text(kinds[i]))]:
        raise _not_numeric(table, wrong, source, y)
    what = f"its table of {table.num_rows} rows and {len(names)} columns"
    check_data_bytes(source, BYTES_OF_A_NUMBER * table.num_rows * len(names), what)
    X = np.empty((table.num_rows, len(names)))
    categories: dict[str, tuple[str, ...]] = {}
    for i, position in enumerate(positions):
        if position in texts:
            X[:, i], categories[names[i]] = _categories(table.column(position), names[i], source)
        else:
            X[:, i] = table.column(position).cast(pa.float64(), safe=False).to_numpy()
    if not unprepared and np.isnan(X).any():
        raise _without_values(X, names, source)
    return X, categories


def _is_whole(kind: Any) -> bool:
    """Return whether values are decimals without fractions, as integers above 64 bits are."""
    return pa.types.is_decimal(kind) and bool(kind.scale == 0)


def rounded_features(table: Any, positions: Sequence[int], X: FloatArray) -> tuple[str, ...]:
    """Return the names of the columns of integers that their features, as floats, do not hold."""
    rounded = []
    for position in (positions[place] for place in large_columns(X)):
        column = table.column(position)
        if pa.types.is_integer(column.type) or _is_whole(column.type):
            values = pc.unique(column).drop_null().to_pylist()
            if are_rounded(map(int, values)):
                rounded.append(table.column_names[position])
    return tuple(rounded)


def _categories(column: Any, name: str, source: str) -> tuple[FloatArray, tuple[str, ...]]:
    """Return each cell's position among the different texts in alphabetical order, and these."""
    texts, cells = numbered_texts(column)
    different = tuple(sorted(text for text in texts if text is not None))
    n_present = len(column) - column.null_count
    if 2 * len(different) > n_present:
        if odd := odd_cells(counted_texts(column), len(column)):
            raise DataError(f"{source}: column '{name}' {_but(odd)}")
        raise DataError(
            f"{source}: column '{name}' holds {len(different)} different texts in {n_present}"
            f" cells, e.g. {short(repr(different[0]), 40)}, too many for categories; leave it out"
            " by drop, or name it by cv.groups if it tells which samples are of one origin."
        )
    position: dict[str | None, float] = {text: float(i) for i, text in enumerate(different)}
    values = [position.get(text, np.nan) for text in texts]
    return np.array(values)[cells], different


def _but(odd: str) -> str:
    """Say what to do about a column of numbers with cells that are none."""
    return (
        f"holds numbers, but {odd}: set these to numbers, e.g. half the limit of detection, or"
        " empty them."
    )


def text_among_numbers(columns: Iterable[tuple[str, Iterable[object]]]) -> str:
    """Name the first column of numbers with cells that are none, and what to do; empty without.

    `columns` yields names and cells of columns.
    """
    for name, cells in columns:
        known = [cell for cell in cells if isinstance(cell, str | Number) and str(cell) != "nan"]
        if any(isinstance(cell, str) for cell in known) and (
            odd := odd_cells(Counter(map(str, known)), len(known))
        ):
            return f"column {name} {_but(odd)}"
    return ""


def labels(table: Any, name: str, source: str, role: str = "label") -> LabelArray:
    """Return a column of labels or groups as an array of numbers or text."""
    if isinstance(table.schema.field(name).type, pa.FixedShapeTensorType):
        return tensor(table.column(name))
    column = decoded(table.column(name)).combine_chunks()
    kind = column.type
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise DataError(
            f"{source}: column '{name}' has no value in row {row} {_COUNTED}; fill it in or remove"
            f" the sample{_UNLABELLED if role == 'label' else ''}."
        )
    if is_text(kind):
        longest = pc.max(pc.utf8_length(column)).as_py() or 0
        what = f"the column '{name}' with texts of up to {longest} characters"
        check_data_bytes(source, 4 * longest * len(column), what)
        texts, cells = numbered_texts(column)
        return np.array(texts, dtype=np.str_)[cells]
    if not is_number(kind):
        raise DataError(
            f"{source}: column '{name}' holds values of type {kind}, e.g. {column[0].as_py()!s};"
            f" {role} takes a column of {'numbers' if role == 'label' else 'whole numbers'} or"
            " text."
        )
    exact = column
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    values: LabelArray = column.to_numpy(zero_copy_only=False)
    if _is_whole(kind) and (role == "groups" or not looks_like_quantity(values)):
        return whole_numbers(map(int, exact.to_pylist()))
    if (
        role == "groups"
        and values.dtype.kind == "f"
        and (broken := np.flatnonzero(~(values == np.floor(values)))).size
    ):
        raise DataError(
            f"{source}: column '{name}' holds {values[broken[0]]} in row {broken[0]} {_COUNTED};"
            f" {role} takes a column of whole numbers or text: name another column."
        )
    return values


def _not_numeric(
    table: Any, positions: Sequence[int], source: str, y: LabelArray | None
) -> DataError:
    """Error for columns that hold no numbers, with a value of the first that is none."""
    known = table.schema.names
    names = [known[i] for i in positions]
    column = table.column(positions[0])
    if column.null_count == len(column):
        return DataError(f"{source}: column '{names[0]}' holds no values; leave it out by drop.")
    further = listed(names[1:], 5)
    row = pc.index(column.is_valid(), True).as_py()
    if is_text(column.type):
        texts, cells = numbered_texts(column)
        if y is not None and not column.null_count and is_in_other_words(cells, y):
            return DataError(
                f"{source}: column '{names[0]}' is the label in other words; leave it out by drop."
            )
        if odd := odd_cells(counted_texts(column), len(column)):
            more = by_number(len(names), "", f" Look at others too: {further}.")
            return DataError(f"{source}: column '{names[0]}' {_but(odd)}{more}")
        told = [text is not None and not reads_as_number(text) for text in texts]
        if any(told):  # all may be numbers stored as text
            row = int(np.argmax(np.array(told)[cells]))
    shown = repr(str(decoded(column)[row].as_py()))
    return DataError(
        f"{source}: column '{names[0]}' holds {shown} in row {row} {_COUNTED}, which is not a"
        " number. Name it by label if it holds the classes, leave it out by drop, or encode it by"
        " dataset.prepare: [encode]."
        f"{by_number(len(names), '', f' So do others: {further}.')}"
    )


def _without_values(X: FloatArray, names: Sequence[str], source: str) -> DataError:
    missing = np.isnan(X)
    counts = missing.sum(axis=0)
    columns = np.flatnonzero(counts)
    row, column = np.argwhere(missing)[0].tolist()
    n_rows = int(missing.any(axis=1).sum())
    worst = sorted(columns.tolist(), key=lambda i: -counts[i])[:3]
    most = ", ".join(f"'{names[i]}' ({counts[i]} of {len(X)})" for i in worst)
    n = int(counts.sum())
    what = by_number(n, "1 value is missing", f"{n} values are missing")
    where = f"rows with missing values: {n_rows}; columns: {len(columns)}, most in {most}"
    return DataError(
        f"{source}: {what} (empty, NA, NaN or ?), the first in row {row} {_COUNTED}, column"
        f" '{names[column]}' ({where}). Leave such columns out by drop, remove the rows, or let a"
        " study fill the values in within its folds, by dataset.prepare: [{impute: median}]."
    )
