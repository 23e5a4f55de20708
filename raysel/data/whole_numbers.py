"""Whole numbers that floats cannot hold: labels and groups keep them, and of features it is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.printing import listed

#: Floats hold all whole numbers up to this one.
_LARGEST = 2**53
#: End of the sentence on columns of features.
BEYOND_FLOATS = (
    "whole numbers that floats do not hold exactly: drop identifiers (dataset.drop), or subtract the "
    "least value."
)
#: Columns that the sentence names.
_NAMED = 3


def whole_numbers(values: Iterable[int]) -> LabelArray:
    """Return integers as an array of int64, or of text if one does not fit, so that they compare as what they are."""
    numbers = list(values)
    limits = np.iinfo(np.int64)
    if all(limits.min <= number <= limits.max for number in numbers):
        return np.array(numbers, dtype=np.int64)
    return np.array([str(number) for number in numbers])


def large_columns(X: FloatArray) -> list[int]:
    """Return the columns with a value that floats may have rounded."""
    if not len(X):
        return []
    most = np.fmax(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0))
    large: list[int] = np.flatnonzero(most >= _LARGEST).tolist()
    return large


def beyond_floats(columns: Mapping[str, Iterable[int]]) -> tuple[str, ...]:
    """Say which columns hold integers that are rounded as floats; nothing if none does."""
    rounded = [
        name
        for name, values in columns.items()
        if any(int(float(value)) != value for value in values)
    ]
    if not rounded:
        return ()
    one = len(rounded) == 1
    names = listed([f"'{name}'" for name in rounded], _NAMED)
    return (f"{'column' if one else 'columns'} {names} hold{'s' if one else ''} {BEYOND_FLOATS}",)


def other_notes(notes: Iterable[str]) -> list[str]:
    """Return the notes of a reader without those on such columns, which are remarks on the data, too."""
    return [note for note in notes if BEYOND_FLOATS not in note]
