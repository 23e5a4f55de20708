"""Names of studies, made of those of data files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import listed, suggestion
from raysel.core.storage.location import as_uri, parse_location
from raysel.data.formats.names import (
    INDICATOR,
    is_in_other_words,
    is_proposed,
    is_unnamed,
    likely_labels,
    names_circumstance,
    names_identifier,
    names_origin,
    names_time,
    taken_names,
)
from raysel.study.draft.folds import FEWEST, class_counts


def plain_name(path: str | Path) -> str:
    """Return the name of a data file without folder and suffix, in the characters that a study's name may have."""
    if uri := as_uri(path):
        path = parse_location(uri).name
    stem = Path(path).expanduser().absolute().stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:80].strip("-._") or "study"


def shown(name: str) -> str:
    """Return a name as it is shown: in quotation marks if it is empty or not printable."""
    return repr(name) if not name or not name.isprintable() else name


#: Names that programs give to the number of a row.
_INDEX = re.compile(r"unnamed([:_ ].*)?|level_\d+|index", re.IGNORECASE)
#: Start of a text that is a number with a unit or a sign, e.g. "12 %", "$ 3" or "<0.5".
_MEASURED = r"^[\W_]*\d"
#: Longest text of a cell that is shown.
_LONGEST = 20
#: What makes a feature of a column that is left out, by what is the matter.
_ENCODE = "text is not a feature; encode it as numbers to use it, e.g. 0 and 1 in a column for each value"
_TURN = "no numbers, and no features; turn them into numbers to use them"
_TIME = (
    "tells when a sample was measured, and is no feature; if samples near each other in time are alike, sort the rows "
    "by time and set cv.blocks, or forward folds (cv.blocks.forward)"
)
_LABEL = "the label in other words, which is no feature and not to be encoded"
_BARE = "text that begins with a number is not a feature; leave numbers only in the cells to use it"
_FILL = (
    "a column with empty cells is not a feature; to use it, remove the samples if only few lack a value, or fill the "
    "cells in without use of the labels"
)
#: Fewest different values of a column that is a group and no property of the sample such as its sex.
_FEWEST_GROUPS = 5
#: Most columns that are proposed for the label beside the chosen one.
_MOST_OTHERS = 4


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table."""

    label: str | None
    groups: str | None = None
    drop: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def table_roles(table: Any, label: str | None = None) -> Roles:
    """Find the roles of a table's columns by their names and values."""
    names: list[str] = table.column_names
    indicator = [name for name in names if name.startswith(INDICATOR)]
    doubts: list[str] = []
    if label is not None or len(indicator) < 2 or taken_names(names):
        label, doubts = _label(table, label)
        indicator = []
    drop: dict[str, str] = {}
    wanting: dict[str, list[str]] = {}
    related: dict[str, LabelArray] = {}
    circumstances = []
    y = None if label is None else _codes(table.column(label))
    for position, name in enumerate(names):
        if name == label or name in indicator or name in drop:
            continue
        column = table.column(position)
        values = _codes(column)
        reason, mend = _why_no_feature(name, column, values)
        if reason != "it is empty" and (pa.types.is_temporal(column.type) or names_time(name)):
            reason, mend = "dates or times", _TIME
        if mend == _ENCODE and values is not None and y is not None and is_in_other_words(values, y):
            reason, mend = "the label in other words", _LABEL
        if values is not None and names_origin(name) and _FEWEST_GROUPS <= len(np.unique(values)) < len(values):
            related[name] = values
            reason, mend = "it tells which samples are of one origin", ""
        if reason:
            drop[name] = reason
            if mend:
                wanting.setdefault(mend, []).append(name)
        elif values is not None and names_circumstance(name):
            circumstances.append(name)
    doubts += [f"drop: {listed(columns)}: {mend}." for mend, columns in wanting.items()]
    if circumstances:
        which = "is a feature" if len(circumstances) == 1 else "are features"
        doubts.append(f"drop: {listed(circumstances)} {which}; list in drop what only numbers the measurements.")
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
            f"no column looks like labels, with few values that repeat: the columns are {listed(names)}. Name the "
            "column by label; cut a quantity into ranges, which become the classes; and if the samples stand in "
            "columns, exchange rows and columns."
        )
    why = "one of several columns that are" if usual else "as no column is"
    doubt = f"label: {shown(likely[0])} was taken, {why} called y, label, target or class."
    if others := [name for name in likely[1:] if not _is_aside(name)][:_MOST_OTHERS]:
        doubt += f" If it is another, such as {', '.join(map(shown, others))}, name it by label."
    last = names[-1]
    if last not in likely and not is_proposed(likely[0]) and _is_number(table.column(last).type):
        doubt += f" The last column, {shown(last)}, is a quantity: cut it into ranges if that is what to predict."
    return likely[0], [doubt]


def _is_aside(name: str) -> bool:
    return names_origin(name) or names_circumstance(name)


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


def _all_measured(column: Any) -> bool:
    """Return whether all texts of a column that are not empty begin with a number."""
    kind = column.type
    column = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    return pc.all(pc.match_substring_regex(column, _MEASURED)).as_py() is True


def _is_index(values: LabelArray) -> bool:
    """Return whether values that differ from each other number the rows, in any order or consecutively."""
    first, last = int(values.min()), int(values.max())
    return last - first == len(values) - 1 and (first in (0, 1) or bool(np.all(np.diff(values) == 1)))


def _why_no_feature(name: str, column: Any, values: LabelArray | None) -> tuple[str, str]:
    """Reason why a column is no feature, and what would make it one; empty for a feature, and if nothing would."""
    if _missing(column) == len(column):
        return "it is empty", ""
    if values is not None and len(np.unique(values)) == len(values):
        return _unique_column(name, column, values)
    n_missing = _missing(column)
    of_all = f"{n_missing} of {len(column)} cells {'is' if n_missing == 1 else 'are'} empty"
    if _is_text(column.type):
        few = (
            f", {len(np.unique(values))} different values" if values is not None else f", {of_all}" if n_missing else ""
        )
        return f"text{few}", _BARE if _all_measured(column) else _ENCODE
    if not _is_number(column.type):
        return _kind_in_words(column.type), _TURN
    if n_missing:
        return of_all, _FILL
    return "", ""


def _kind_in_words(kind: Any) -> str:
    types = pa.types
    if types.is_nested(kind):
        return "several values a cell"
    return f"values of type {kind}"


def _unique_column(name: str, column: Any, values: LabelArray) -> tuple[str, str]:
    """The same for a column with another value in each row."""
    text = _is_text(column.type)
    if not text and _is_index(values):
        return f"an index, {values.min()} to {values.max()}", ""
    if is_unnamed(name) or _INDEX.fullmatch(name.strip()):
        return "an index: unique in each row", ""
    if names_identifier(name) or names_origin(name):
        return "an identifier: unique in each row", ""
    if not text:
        return "", ""
    if _all_measured(column):
        return f"text, e.g. {column[0].as_py().strip()[:_LONGEST]!r}", _BARE
    return "text, unique in each row", ""


def usable_groups(related: Mapping[str, LabelArray], y: LabelArray | None, doubts: list[str]) -> str | None:
    """Choose the column of the groups, by which each class can still be split."""
    usable = []
    for name, values in related.items():
        fewest = min(class_counts(y, values).values()) if y is not None else len(np.unique(values))
        if fewest >= FEWEST:
            usable.append(name)
        else:
            doubts.append(
                f"groups: {shown(name)} repeats, but a class has {fewest} of its values only, too few to keep them "
                "whole in the folds; if its samples resemble each other, the scores are too high."
            )
    if not usable:
        return None
    coarsest = sorted(usable, key=lambda name: len(np.unique(related[name])))
    if len(coarsest) > 1:
        both = " and ".join(map(shown, coarsest))
        doubts.append(f"groups: {both} repeat; the folds keep the samples of one {coarsest[0]} together.")
    return coarsest[0]
