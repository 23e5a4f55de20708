"""Roles of the columns of a table: label, groups, features, and what is no feature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError, suggestion
from raysel.core.printing import by_number, listed, short
from raysel.data.formats.recognition import (
    INDICATOR,
    codes,
    counted_texts,
    decoded,
    find_place_names,
    is_in_other_words,
    is_number,
    is_text,
    is_unnamed,
    likely_labels,
    names_batch,
    names_circumstance,
    names_identifier,
    names_origin,
    names_time,
    names_weight,
    odd_cells,
    places,
    rank_label_name,
    taken_names,
)
from raysel.data.formats.survival import find_event_times
from raysel.data.formats.table_contents import labelled_rows
from raysel.data.targets import looks_like_quantity
from raysel.study.draft.choices import FEWEST, class_counts, fold_counts

#: Names that programs give to the number of a row.
_INDEX = re.compile(r"unnamed([:_ ].*)?|level_\d+|index", re.IGNORECASE)
#: Start of a text that is a number with a unit or a sign, e.g. "12 %", "$ 3" or "<0.5".
_MEASURED = r"^[\W_]*\d"
#: Longest text of a cell that is shown.
_LONGEST = 20
#: What makes a feature of a column that is left out, by what is the matter.
_MANY = (
    "text of many values is no feature; to use it, take it out of drop if half of the values or"
    " more repeat"
)
_TURN = "no numbers, and no features; turn them into numbers to use them"
_TIME = (
    "tells when a sample was measured; if samples near in time are alike, sort by it and set"
    " cv.blocks or cv.blocks.forward"
)
_WEIGHT = (
    "may say how much each sample counts, which raysel does not use; if it is a measurement, take"
    " it out of drop"
)
_WELL = (
    "may tell where on a plate a sample was, and is no feature; take it out of drop if it is one"
)
_LABEL = "the label in other words, which is no feature and not to be encoded"
_ODD = (
    "numbers beside cells that are none are no feature; to use it, correct these, e.g. to half the"
    " limit of detection, or empty them"
)
_BARE = "text that begins with a number is not a feature; leave numbers only in the cells to use it"
_BATCH = (
    "may tell which samples were measured together, and is left out; its effects stay in the"
    " columns"
)
_FILL = (
    "too many cells are empty to be filled; take the column out of drop to have dataset.prepare"
    " fill them all the same"
)
#: More different numbers than these, stored as text, are no categories.
_FEW_NUMBERS = 10
#: Largest share of empty cells of a feature, and most different texts of one, each in two rows on
#: average.
_MOST_EMPTY, _MOST_TEXTS = 0.4, 50
#: Fewest samples of each batch that are scaled by themselves: each training set of the drafted
#: folds has two, as a rule.
_FEWEST_OF_BATCH = 20
#: Fewest different values of a column that is a group and no property of the sample such as its
#: sex.
_FEWEST_GROUPS = 5
#: Wells of a plate, and the fewest of them.
_WELLS, _FEWEST_WELLS = r"^([A-P]|A[A-F])(0?[1-9]|[1-3]\d|4[0-8])$", 12
#: What tells by its name that a column of numbers is no quantity to predict.
_NAMES_ASIDE = (names_identifier, names_origin, names_circumstance, names_time)
#: Reason and mend of a column that is a feature.
_FEATURE = "", ""
#: Most columns that are proposed for the label beside the chosen one.
_MOST_OTHERS = 4


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a table."""

    label: str | None
    groups: str | None = None
    #: Columns that are no features, each with the reason.
    drop: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    #: What rows without a label are left out, as text; empty if all have one.
    unlabelled: str = ""


def table_roles(table: Any, label: str | None = None) -> Roles:
    """Find the roles of a table's columns by their names and values."""
    names: list[str] = table.column_names
    indicator = [name for name in names if name.startswith(INDICATOR)]
    doubts: list[str] = []
    if label is not None or len(indicator) < 2 or taken_names(names):
        chosen, doubts = _label(table, label)
        if label is None:
            _refuse_event(table, chosen)
        label, indicator = chosen, []
    unlabelled: tuple[str, ...] = ()
    y = None
    if label is not None:
        table, unlabelled = labelled_rows(table, label)
        y = _class_codes(table.column(label))
    drop: dict[str, str] = {}
    mends: dict[str, list[str]] = {}
    related: dict[str, LabelArray] = {}
    for name, column in zip(names, table.columns, strict=True):
        if name == label or name in indicator or name in drop:
            continue
        origins = None
        if names_origin(name):
            origins = _origins(column)
        if origins is not None and len(np.unique(origins)) < len(origins):
            related[name] = origins
            reason, mend = "it tells which samples are of one origin", ""
        else:
            reason, mend = _why_no_feature(name, column, codes(column), y)
        if reason:
            drop[name] = reason
            if mend:
                mends.setdefault(mend, []).append(name)
    doubts += [f"drop: {listed(columns)}: {_ended(mend)}" for mend, columns in mends.items()]
    aside = {label, *indicator, *drop}
    doubts += _doubt_features(table.select([name for name in names if name not in aside]), y)
    groups = usable_groups(related, y, doubts)
    if groups is not None:
        del drop[groups]
    return Roles(label, groups, drop=drop, doubts=tuple(doubts), unlabelled="; ".join(unlabelled))


def _refuse_event(table: Any, label: str) -> None:
    """Refuse a label that was not named and is an event with its time, or the time."""
    for time, event in find_event_times(table.column_names):
        if label not in (time, event):
            continue
        if _holds_numbers(table.column(time)) and not _holds_numbers(table.column(event)):
            raise DataError(
                f"{time} is the time to an event, and {event} says whether it happened: such"
                f" targets are not there yet. Name another label, or {event} by label, for whether"
                " it happens; the time is then left out."
            )


def _holds_numbers(column: Any) -> bool:
    """Return whether a column holds numbers, and more than a few different ones."""
    return is_number(column.type) and pc.count_distinct(column).as_py() > _FEWEST_GROUPS


def _doubt_features(table: Any, y: LabelArray | None) -> list[str]:
    """Doubt features that may tell where, or in which order, samples were measured."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    doubts: list[str] = []
    of_places = find_place_names(columns)
    named = [name for name in columns if names_circumstance(name) or names_batch(name)]
    circumstances = [name for name in named if name not in of_places and _has_codes(columns[name])]
    if circumstances:
        taken = ("is taken for a feature", "are taken for features")
        which = by_number(len(circumstances), *taken)
        doubts.append(
            f"drop: {listed(circumstances)} {which}; list in drop what only numbers the"
            " measurements."
        )
    for name in filter(names_batch, circumstances):
        told = (
            f"groups or confounds: {name} may tell which samples were measured together; its"
            " effects stay in the columns."
        )
        doubts.append("\n".join([told, *_ways(name, columns[name], y)]))
    return doubts


def _has_codes(column: Any) -> bool:
    """Return whether the cells of a column that have a value are numbers or text."""
    return codes(column.filter(pc.invert(_is_empty(column)))) is not None


def _ended(mend: str) -> str:
    """Return what would make a feature of a column as a sentence; further lines of it are whole."""
    first, *others = mend.split("\n")
    return "\n".join([f"{first}.", *others])


def _is_empty(column: Any) -> Any:
    """Mask of the cells without a value, as an Arrow array."""
    return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))


def _count_empty(column: Any) -> int:
    """Count the cells without a value."""
    if pa.types.is_floating(column.type):
        return int(np.isnan(column.to_numpy()).sum())
    return int(column.null_count)


def _origins(column: Any) -> LabelArray | None:
    """Number each row's origin; each of a few empty cells, with which groups are refused, is one.

    None for other columns, and for few different values.
    """
    known = np.asarray(column.is_valid())
    values = codes(column.filter(column.is_valid()))
    if values is None or len(np.unique(values)) < _FEWEST_GROUPS or 1 - known.mean() > _MOST_EMPTY:
        return None
    origins = np.full(len(known), -1, dtype=np.int64)
    origins[known] = np.unique(values, return_inverse=True)[1]
    origins[~known] = -1 - np.arange((~known).sum())
    return origins


def _label(table: Any, label: str | None) -> tuple[str, list[str]]:
    """Column of the labels, and doubts about it."""
    names: list[str] = table.column_names
    if label is not None:
        if label in names:
            return label, []
        raise DataError(
            f"label={label!r}: the file has no column of this name; {suggestion(label, names)}"
        )
    usual, likely, aside = taken_names(names), likely_labels(table), list[str]()
    located = {*chain.from_iterable(places(names))}
    if others := [name for name in likely if name not in located]:
        aside = [name for name in usual if name in located]  # y beside x
        usual, likely = [name for name in usual if name not in located], others
    if len(usual) == 1:
        return usual[0], []
    quantity = _quantity(table)
    if quantity is not None and not usual and (not likely or rank_label_name(likely[0]) is None):
        is_named = rank_label_name(quantity) is not None
        if is_named or not likely:
            why = "a quantity, by its name" if is_named else "the last column of numbers"
            doubt = f"label: {listed([quantity])} was taken, {why}; name another by label."
            return quantity, [doubt]
    if not likely:
        raise DataError(
            "no column looks like labels, with few values that repeat, or like a quantity: the"
            f" columns are {listed(names)}. Name the column by label; and if the samples stand in"
            " columns, exchange rows and columns."
        )
    why = "one of several columns that are" if usual else "as no column is"
    doubt = f"label: {listed(likely[:1])} was taken, {why} called y, label, target or class."
    others = [name for name in likely[1:] if not (names_origin(name) or names_circumstance(name))]
    if others:
        some = listed(others[:_MOST_OTHERS])
        doubt += f" If it is another, such as {some}, name it by label."
    if aside:
        doubt += f" {listed(aside)} may be a place: name it by label if it is to be predicted."
    last = names[-1]
    if (
        last not in likely
        and rank_label_name(likely[0]) is None
        and is_number(table.column(last).type)
    ):
        doubt += (
            f" The last column, {listed([last])}, is a quantity: name it by label if that is what"
            " to predict."
        )
    return likely[0], [doubt]


def _class_codes(column: Any) -> LabelArray | None:
    """Number of each row's class; None for a quantity."""
    y = codes(column)
    if y is not None and is_number(column.type) and looks_like_quantity(y):
        return None
    return y


def _quantity(table: Any) -> str | None:
    """Column that may hold a quantity: the one of a usual name for labels, else the last one."""
    names: list[str] = table.column_names
    called = [i for i, name in enumerate(names) if rank_label_name(name) is not None]
    named = [i for i in called if _is_quantity(names[i], table.column(i))]
    if len(named) == 1:
        return names[named[0]]
    from_last = reversed(range(len(names)))
    return next((names[i] for i in from_last if _is_quantity(names[i], table.column(i))), None)


def _is_quantity(name: str, column: Any) -> bool:
    """Return whether a column of numbers looks like a quantity by its values and its name."""
    if not is_number(column.type) or pa.types.is_boolean(column.type):
        return False
    if is_unnamed(name) or any(tells(name) for tells in _NAMES_ASIDE):
        return False
    values = column.drop_null().cast(pa.float64(), safe=False).to_numpy()
    return looks_like_quantity(values[np.isfinite(values)])


def _why_no_feature(
    name: str, column: Any, values: LabelArray | None, y: LabelArray | None
) -> tuple[str, str]:
    """Say why a column is no feature, and what would make it one; both empty for a feature."""
    kind = column.type
    n_missing = _count_empty(column)
    if n_missing == len(column):
        return "it is empty", ""
    if by_name := _named_otherwise(name, column):
        return by_name
    if is_text(kind):
        return _why_no_category(name, column, n_missing, y)
    if not is_number(kind):
        what = "several values a cell" if pa.types.is_nested(kind) else f"values of type {kind}"
        return f"{what}{_example(column)}", _TURN
    return _why_no_number(name, column, values, n_missing)


def _why_no_number(
    name: str, column: Any, values: LabelArray | None, n_missing: int
) -> tuple[str, str]:
    """The same for a column of numbers."""
    if n_missing and (names_identifier(name) or names_origin(name)):
        return "an identifier", ""
    if n_missing > _MOST_EMPTY * len(column):
        return _empty_cells(n_missing, len(column)), _FILL
    if n_missing or values is None or len(np.unique(values)) < len(values):
        return _FEATURE
    return _unique_column(name, column, values)


def _named_otherwise(name: str, column: Any) -> tuple[str, str] | None:
    """The same for a column of times, weights of samples, or wells; None for others."""
    if pa.types.is_temporal(column.type) or names_time(name):
        return f"dates or times{_example(column)}", _TIME
    if names_weight(name):
        return "it may weigh the samples", _WEIGHT
    if is_text(column.type) and _all_wells(column):
        return f"wells of a plate{_example(column)}", _WELL
    return None


def _why_no_category(
    name: str, column: Any, n_missing: int, y: LabelArray | None
) -> tuple[str, str]:
    """The same for a column of text, which is a feature if it has few values."""
    present = pc.is_valid(column)
    values = codes(column.filter(present))
    assert values is not None  # noqa: S101 - text without empty cells has codes
    n_texts, n_present = len(np.unique(values)), len(values)
    if y is not None and n_texts < n_present and is_in_other_words(values, y[present.to_numpy()]):
        return "the label in other words", _LABEL
    if odd := odd_cells(counted_texts(column), len(column), _FEW_NUMBERS):
        return f"numbers, but {odd}", _ODD
    found = f"text, {n_texts} different values{_example(column)}"
    if n_missing > _MOST_EMPTY * len(column):
        found, mend = _empty_cells(n_missing, len(column)), _FILL
    elif n_texts == n_present:
        found, mend = _unique_column(name, column.filter(present), values)
    elif n_texts == 1:
        found, mend = f"one text in all rows{_example(column)}", ""
    elif _all_measured(column):
        mend = _BARE
    elif names_batch(name):
        mend = "\n".join([_BATCH, *_ways(name, column, y)])
    elif n_texts <= min(_MOST_TEXTS, n_present // 2):
        found, mend = _FEATURE
    else:
        mend = _MANY
    return found, mend


def _all_wells(column: Any) -> bool:
    """Return whether the cells of a column name wells of a plate, e.g. A01, and not a few only."""
    cells = decoded(column)
    if pc.all(pc.match_substring_regex(cells, _WELLS)).as_py() is not True:
        return False
    return bool(pc.count_distinct(cells).as_py() >= _FEWEST_WELLS)


def _ways(name: str, column: Any, y: LabelArray | None) -> list[str]:
    """Return the ways to take a batch into account, exact centring first, with their costs."""
    counts = [cell["counts"] for cell in decoded(column).value_counts().to_pylist()]
    values, name = codes(column), listed([name])
    steps = "residualise"
    if not is_text(column.type):
        steps = f"{{encode: {{}}, columns: [{name}]}}, {steps}"
    told = "what tells the label" if y is None else "the classes' difference"
    centred = (
        f"To centre the columns by {name}: dataset.confounds: [{name}], dataset.prepare:"
        f" [{steps}]; a part of {told} may go with it."
    )
    ways = [centred]
    if values is None:
        return [*ways, f"Harmonise and cv.groups need a value of {name} in each row."]
    if min(counts) >= _FEWEST_OF_BATCH:
        ways.append(
            f"To match the scales too: dataset.prepare: [{{harmonise: {name}}}]; a part of the"
            f" shifts stays, and features of {name} may rank high."
        )
    if (n_splits := _splits(values, y)) > FEWEST:
        folds = fold_counts(np.zeros(len(values)) if y is None else y, values)
        ways.append(
            f"To score on others than it learns from: cv.groups: {name}, cv.outer: {folds.outer},"
            f" cv.inner: {folds.inner}; its effects stay in the ranking."
        )
    elif y is None:
        ways.append(f"cv.groups needs {FEWEST + 1} values of {name}, and there are {n_splits}.")
    else:
        ways.append(
            f"cv.groups needs each class in {FEWEST + 1} values of {name}, and one is in"
            f" {n_splits}."
        )
    return ways


def _splits(values: LabelArray, y: LabelArray | None) -> int:
    """Return the least number of groups of a class; of a quantity that of all groups."""
    if y is None:
        return len(np.unique(values))
    return min(class_counts(y, values).values())


def _empty_cells(n_missing: int, n_rows: int) -> str:
    return f"{n_missing} of {n_rows} cells {by_number(n_missing, 'is', 'are')} empty"


def _all_measured(column: Any) -> bool:
    """Return whether all texts of a column that are not empty begin with a number."""
    return pc.all(pc.match_substring_regex(decoded(column), _MEASURED)).as_py() is True


def _unique_column(name: str, column: Any, values: LabelArray) -> tuple[str, str]:
    """The same for a column with another value in each row."""
    text = is_text(column.type)
    first, last = int(values.min()), int(values.max())
    is_range = not text and last - first == len(values) - 1
    if is_range and (first in (0, 1) or bool(np.all(np.diff(values) == 1))):
        return f"an index, {first} to {last}", ""
    if is_unnamed(name) or _INDEX.fullmatch(name.strip()):
        return "an index: unique in each row", ""
    if names_identifier(name) or names_origin(name):
        return "an identifier: unique in each row", ""
    if not text:
        return _FEATURE
    if _all_measured(column):
        return f"text{_example(column)}", _BARE
    return f"text, unique in each row{_example(column)}", ""


def _example(column: Any) -> str:
    """Show the first cell of a column that has a value."""
    row = pc.index(column.is_valid(), True).as_py()
    try:
        cell = decoded(column)[row].as_py()
    except (ValueError, OverflowError):  # no time or text that Python has
        return ""
    shown = repr(cell.strip()) if isinstance(cell, str) else str(cell)
    return f", e.g. {short(shown, _LONGEST)}"


def usable_groups(
    related: Mapping[str, LabelArray], y: LabelArray | None, doubts: list[str]
) -> str | None:
    """Choose the column of the groups, by which each class can still be split."""
    usable = []
    for name, values in related.items():
        fewest = _splits(values, y)
        if fewest >= FEWEST:
            usable.append(name)
        else:
            doubts.append(
                f"groups: {listed([name])} repeats, but a class has {fewest} of its values only,"
                " too few to keep them whole in the folds. If its samples resemble each other, the"
                " scores are too high."
            )
    if not usable:
        return None
    coarsest = sorted(usable, key=lambda name: len(np.unique(related[name])))
    if len(coarsest) > 1:
        both = " and ".join(listed([name]) for name in coarsest)
        doubts.append(
            f"groups: {both} repeat; the folds keep the samples of one {coarsest[0]} together."
        )
    return coarsest[0]
