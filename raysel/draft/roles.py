"""Roles of the columns of a table: label, groups, features, and those that are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.arrays import LabelArray
from raysel.data.formats.column_names import INDICATOR, is_unnamed, names_identifier, names_origin, taken_names
from raysel.data.formats.label_names import likely_labels
from raysel.draft.folds import FEWEST, class_counts
from raysel.errors import DataError
from raysel.listing import listed, suggestion

#: Names that programs give to the number of a row.
_INDEX = re.compile(r"unnamed([:_ ].*)?|level_\d+|index", re.IGNORECASE)
#: Fewest different values of a column that is a group and no property of the sample such as its sex.
_FEWEST_GROUPS = 5
#: Most columns that are proposed for the label beside the chosen one.
_MOST_OTHERS = 4


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table.

    Parameters
    ----------
    label : str or None
        Column of the labels; None for an indicator, whose columns are recognised by their names.
    groups : str or None, default=None
        Column that tells which samples belong together.
    drop : mapping of str to str, default={}
        Columns that are neither, and are no features, each with the reason.
    doubts : tuple of str, default=()
        Sentences on what the reader should check.
    """

    label: str | None
    groups: str | None = None
    drop: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def table_roles(table: Any, label: str | None = None) -> Roles:
    """Find the roles of a table's columns by their names and values.

    Parameters
    ----------
    table : pyarrow.Table
        Table with a row for each sample.
    label : str, default=None
        Column of the labels; None: the one of a usual name, else the most likely one.

    Returns
    -------
    Roles
        The roles; a column that has none is a feature.

    Raises
    ------
    DataError
        If the column does not exist, or no column can be the labels.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = range(6)
    >>> found = table_roles(pa.table({"": rows, "width": [.1, .2, .4, .1, .3, .2], "kind": ["a", "b"] * 3}))
    >>> found.label, dict(found.drop)
    ('kind', {'': 'an index, 0 to 5'})
    """
    names: list[str] = table.column_names
    indicator = [name for name in names if name.startswith(INDICATOR)]
    doubts: list[str] = []
    if label is not None or len(indicator) < 2 or taken_names(names):
        label, doubts = _label(table, label)
        indicator = []
    drop: dict[str, str] = {}
    related: dict[str, LabelArray] = {}
    for position, name in enumerate(names):
        if name == label or name in indicator or name in drop:
            continue
        column = table.column(position)
        values = _codes(column)
        reason, doubt = _why_no_feature(name, column, values)
        if values is not None and names_origin(name) and _FEWEST_GROUPS <= len(np.unique(values)) < len(values):
            related[name] = values
            reason, doubt = "it tells which samples are of one origin", ""
        if reason:
            drop[name] = reason
            if doubt:
                doubts.append(doubt)
    y = None if label is None else _codes(table.column(label))
    groups = usable_groups(related, y, doubts)
    if groups is not None:
        del drop[groups]
    return Roles(label, groups, drop, tuple(doubts))


def _label(table: Any, label: str | None) -> tuple[str, list[str]]:
    """Column of the labels, and doubts about it."""
    names: list[str] = table.column_names
    if label is not None:
        if label in names:
            return label, []
        raise DataError(f"label={label!r}: the file has no column of this name; {suggestion(label, names)}")
    usual, likely = taken_names(names), likely_labels(table)
    if len(usual) == 1:
        return usual[0], []
    if not likely:
        raise DataError(
            "no column looks like labels, with few values that repeat; name it by label. "
            f"The columns are {listed(names)}."
        )
    others = [name for name in likely if name != likely[0] and not names_origin(name)][:_MOST_OTHERS]
    more = f" It could also be {', '.join(map(_shown, others))}." if others else ""
    doubt = (
        f"label: {_shown(likely[0])} was chosen by its name and values; no column is called y, label, target or class."
    )
    return likely[0], [doubt + more]


def _shown(name: str) -> str:
    return repr(name) if not name or not name.isprintable() else name


def _codes(column: Any) -> LabelArray | None:
    """Number of each row's value among the column's values; None for fractions, empty cells and other types."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if column.null_count:
        return None
    if pa.types.is_floating(kind):
        values = column.to_numpy()
        with np.errstate(invalid="ignore"):
            return values.astype(np.int64) if np.array_equal(values, np.floor(values)) else None
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.to_numpy())
    if _is_text(kind):
        codes: LabelArray = column.cast(pa.large_string()).combine_chunks().dictionary_encode().indices.to_numpy()
        return codes
    return None


def _is_text(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _is_number(kind: Any) -> bool:
    types = pa.types
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _missing(column: Any) -> int:
    """Number of the cells of a column that are empty or NaN."""
    if pa.types.is_floating(column.type):
        return int(pc.sum(pc.is_null(column, nan_is_null=True)).as_py())
    return int(column.null_count)


def _is_index(values: LabelArray) -> bool:
    """Return whether values that differ from each other number the rows, in any order or consecutively."""
    first, last = int(values.min()), int(values.max())
    return last - first == len(values) - 1 and (first in (0, 1) or bool(np.all(np.diff(values) == 1)))


def _why_no_feature(name: str, column: Any, values: LabelArray | None) -> tuple[str, str]:
    """Reason why a column is no feature, and what the reader should check; both empty for a feature."""
    if _missing(column) == len(column):
        return "it is empty", ""
    if values is not None and len(np.unique(values)) == len(values):
        return _unique_column(name, column, values)
    missing, shown = _missing(column), _shown(name)
    if not _is_number(column.type):
        few = f", {len(np.unique(values))} different values" if values is not None else ""
        what = f"{'text' if _is_text(column.type) else column.type}{few}"
        return what, f"drop: {shown} holds {what}; encode it as numbers to use it as a feature."
    if missing:
        return (
            f"{missing} empty cells",
            f"drop: {shown} has {missing} empty cells; fill them in to use it as a feature.",
        )
    return "", ""


def _unique_column(name: str, column: Any, values: LabelArray) -> tuple[str, str]:
    """The same for a column with another value in each row."""
    text = _is_text(column.type)
    if not text and _is_index(values):
        return f"an index, {values.min()} to {values.max()}", ""
    if is_unnamed(name) or _INDEX.fullmatch(name.strip()):
        return "an index: unique in each row", ""
    if names_identifier(name) or names_origin(name):
        return "an identifier: unique in each row", ""
    return ("text, unique in each row", "") if text else ("", "")


def usable_groups(related: Mapping[str, LabelArray], y: LabelArray | None, doubts: list[str]) -> str | None:
    """Choose the column of the groups, by which each class can still be split.

    Parameters
    ----------
    related : mapping of str to ndarray of shape (n_samples,)
        Columns that tell which samples are of one origin, by name.
    y : ndarray of shape (n_samples,) or None
        Class of each sample; None for an indicator.
    doubts : list of str
        List to which doubts about the choice are added.

    Returns
    -------
    str or None
        Of several columns the one with the fewest values, which keeps most together.

    Examples
    --------
    >>> import numpy as np
    >>> usable_groups({"patient": np.repeat(range(6), 2)}, np.arange(12) % 2, [])
    'patient'
    """
    usable = []
    for name, values in related.items():
        fewest = min(class_counts(y, values).values()) if y is not None else len(np.unique(values))
        if fewest >= FEWEST:
            usable.append(name)
        else:
            doubts.append(
                f"groups: {_shown(name)} repeats, but a class has {fewest} of its values only, too few to keep them "
                "whole in the folds; if its samples resemble each other, the scores are too high."
            )
    if not usable:
        return None
    coarsest = sorted(usable, key=lambda name: len(np.unique(related[name])))
    if len(coarsest) > 1:
        both = " and ".join(map(_shown, coarsest))
        doubts.append(f"groups: {both} repeat; the folds keep the samples of one {coarsest[0]} together.")
    return coarsest[0]
