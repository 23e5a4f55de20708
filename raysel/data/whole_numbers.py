"""Whole numbers that floats cannot hold: kept in labels and groups, noted of features."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.printing import by_number, listed

#: Floats hold all whole numbers up to this one.
_LARGEST = 2**53
#: What columns hold, in all sentences on them.
BEYOND_FLOATS = "whole numbers that floats do not hold exactly"
_REMEDY = "drop identifiers (dataset.drop), or subtract the least value."
#: Columns that the sentence names.
_NAMED = 3


def whole_numbers(values: Iterable[int]) -> LabelArray:
    """Return integers as int64, or as text if one does not fit, so that they compare as such."""
    numbers = list(values)
    limits = np.iinfo(np.int64)
    if all(limits.min <= number <= limits.max for number in numbers):
        return np.array(numbers, dtype=np.int64)
    return np.array([str(number) for number in numbers])


def large_columns(X: FloatArray) -> list[int]:
    """Return the columns with a value that floats may have rounded."""
    if not len(X):
        return []
    ends = np.stack([np.fmax.reduce(X, axis=0), np.fmin.reduce(X, axis=0)])
    most = np.abs(ends.astype(np.float64)).max(axis=0)
    large: list[int] = np.flatnonzero(most >= _LARGEST).tolist()
    return large


def are_rounded(values: Iterable[int]) -> bool:
    """Return whether one of some integers is another number as a float."""
    return any(int(float(value)) != value for value in values)


def rounded_columns(X: LabelArray) -> list[int]:
    """Return the columns of X, (n_samples, n_features), whose integers differ as floats."""
    if X.dtype not in (np.int64, np.uint64):
        return []
    return [i for i in large_columns(X) if are_rounded(np.unique(X[:, i]).tolist())]


def beyond_floats(rounded: Collection[str]) -> tuple[str, ...]:
    """Say that columns of some names hold integers that are rounded as floats; nothing of none."""
    if not rounded:
        return ()
    names = listed([f"'{name}'" for name in rounded], _NAMED)
    columns = by_number(len(rounded), f"column {names} holds", f"columns {names} hold")
    return (f"{columns} {BEYOND_FLOATS}: {_REMEDY}",)


def other_notes(notes: Iterable[str]) -> list[str]:
    """Return a reader's notes without those on such columns, which are remarks on data too."""
    return [note for note in notes if BEYOND_FLOATS not in note]
