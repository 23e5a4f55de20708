"""Columns of a table that are proposed for the labels, by their names and values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.arrays import LabelArray
from raysel.data.formats.column_names import PROPOSED, TAKEN, names_circumstance, names_identifier, names_origin

#: More distinct numbers than this are a measurement, not classes, unless the column's name says so.
_MOST_NUMBERS = 20
#: Fewest samples, most texts a class, and least share of each class that they tell, where text is the label in words.
_FEWEST_SAMPLES, _TEXTS_OF_CLASS, _TOLD = 20, 3, 0.95
#: A column whose first values are this many different fractions is a measurement.
_FIRST_ROWS = 256


def likely_labels(table: Any) -> list[str]:
    """Columns of a table that may hold the labels, the most likely first.

    A column is proposed if it has at least two values and, on average, at least two rows of each; numbers must be
    whole, and of at most 20 values unless the column's name is one of labels.
    """
    found = []
    last = table.num_columns - 1
    for position, name in enumerate(table.column_names):
        plain = _plain(name)
        usual = _rank_of_name(plain)
        column = table.column(position)
        text = _is_text(column.type)
        n_values = _number_of_classes(column, named=usual is not None)
        if n_values is None:
            continue
        place = (0, 0) if usual is not None else (1, 0) if text else (2, 0 if position in (0, last) else 1)
        last_choice = names_identifier(name) or names_origin(name) or names_circumstance(name)
        found.append(((usual is None and last_choice, *place, usual or 0, n_values, last - position), name))
    return [name for _, name in sorted(found)]


def is_proposed(name: str) -> bool:
    """Return whether a column is called as columns of labels are, in any case."""
    return _rank_of_name(_plain(name)) is not None


def _plain(name: str) -> str:
    return re.sub(r"[\s.-]+", "_", name.strip().lower())


def _rank_of_name(plain: str) -> int | None:
    names = (*TAKEN, *PROPOSED)
    return names.index(plain) if plain in names else None


def _is_text(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind)


def _number_of_classes(column: Any, *, named: bool) -> int | None:
    """Number of distinct values of a column that could hold classes, else None."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (numeric or _is_text(kind) or pa.types.is_boolean(kind)):
        return None
    most = len(column) // 2
    if numeric and not named:
        most = min(most, _MOST_NUMBERS)
        if pc.count_distinct(column.slice(0, _FIRST_ROWS)).as_py() > most:
            return None
    n_values: int = pc.count_distinct(column).as_py()
    if not 2 <= n_values <= most:
        return None
    if pa.types.is_floating(kind) and not pc.all(pc.equal(column, pc.floor(column))).as_py():
        return None
    return n_values


def is_in_other_words(values: LabelArray, y: LabelArray) -> bool:
    """Return whether few texts, each in one class but for 5 % of the samples, stand for the labels."""
    if y.ndim == 2 or len(y) < _FEWEST_SAMPLES:
        return False
    texts, code = np.unique(values, return_inverse=True)
    classes, own = np.unique(y, return_inverse=True)
    if len(texts) > min(_TEXTS_OF_CLASS * len(classes), len(y) // 2):
        return False
    counts = np.zeros((len(texts), len(classes)), dtype=np.int64)
    np.add.at(counts, (code, own), 1)
    told = counts.argmax(axis=1)[code] == own
    return all(told[own == label].mean() >= _TOLD for label in range(len(classes)))
