"""Columns of an Arrow table that may hold the labels by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import LabelArray
from raysel.data.formats.names import names_circumstance, names_identifier, names_origin, rank_of_label_name

#: More distinct numbers than this are a measurement, not classes, unless the column's name says so.
_MOST_NUMBERS = 20
#: Fewest samples, most texts a class, and least share of each class that they tell, where text is the label in words.
_FEWEST_SAMPLES, _TEXTS_OF_CLASS, _SHARE = 20, 3, 0.95
#: A column whose first values are this many different fractions is a measurement.
_FIRST_ROWS = 256


def is_text(kind: Any) -> bool:
    """Return whether values of a type, or categories, are text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_number(kind: Any) -> bool:
    """Return whether values of a type are numbers."""
    types = pa.types
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def decoded(column: Any) -> Any:
    """Return a column with its categories written out."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def codes(column: Any) -> LabelArray | None:
    """Number of each row's value among the column's values; None for fractions, empty cells and other types."""
    column = decoded(column)
    if column.null_count:
        return None
    if pa.types.is_floating(column.type):
        values = column.to_numpy()
        with np.errstate(invalid="ignore"):
            return values.astype(np.int64) if np.array_equal(values, np.floor(values)) else None
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy())
    if is_text(column.type):
        return np.asarray(column.cast(pa.large_string()).combine_chunks().dictionary_encode().indices)
    return None


def likely_labels(table: Any) -> list[str]:
    """Columns of a table that may hold the labels, the most likely first.

    A column is proposed if it has at least two values and, on average, at least two rows of each; numbers must be
    whole, and of at most 20 values unless the column's name is one of labels.
    """
    likely = []
    last = table.num_columns - 1
    for position, name in enumerate(table.column_names):
        usual = rank_of_label_name(name)
        column = decoded(table.column(position))
        n_values = _number_of_classes(column, named=usual is not None)
        if n_values is None:
            continue
        place = (0, 0) if usual is not None else (1, 0) if is_text(column.type) else (2, position not in (0, last))
        aside = usual is None and (names_identifier(name) or names_origin(name) or names_circumstance(name))
        likely.append(((aside, *place, usual or 0, n_values, last - position), name))
    return [name for _, name in sorted(likely)]


def _number_of_classes(column: Any, *, named: bool) -> int | None:
    """Number of distinct values of a column that could hold classes, else None."""
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (numeric or is_text(kind) or pa.types.is_boolean(kind)):
        return None
    most = len(column) // 2
    if numeric and not named:
        most = min(most, _MOST_NUMBERS)
        if pc.count_distinct(column.slice(0, _FIRST_ROWS)).as_py() > most:
            return None
    n_values: int = pc.count_distinct(column).as_py()
    if not 2 <= n_values <= most:
        return None
    fractions = pa.types.is_floating(kind) and not pc.all(pc.equal(column, pc.floor(column))).as_py()
    return None if fractions else n_values


def is_in_other_words(values: LabelArray, y: LabelArray) -> bool:
    """Return whether few texts, each in one class but for 5 % of the samples, stand for the labels."""
    if y.ndim == 2 or len(y) < _FEWEST_SAMPLES:
        return False
    texts, code = np.unique(values, return_inverse=True)
    classes, label = np.unique(y, return_inverse=True)
    if len(texts) > min(_TEXTS_OF_CLASS * len(classes), len(y) // 2):
        return False
    counts = np.zeros((len(texts), len(classes)), dtype=np.int64)
    np.add.at(counts, (code, label), 1)
    right = counts.argmax(axis=1)[code] == label
    return all(right[label == i].mean() >= _SHARE for i in range(len(classes)))
