"""Choice of the labels, groups and features of an Arrow table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError, suggestion
from raysel.core.files import parse_json
from raysel.core.printing import by_number, listed
from raysel.data.formats.columns import UNNAMED, features, labels, rounded_features, tensor
from raysel.data.formats.files import RawData, ReadOptions, matching
from raysel.data.formats.recognition import (
    INDICATOR,
    PANDAS_INDEX,
    is_number,
    likely_labels,
    places,
    taken_names,
)
from raysel.data.layouts import Layout, Modalities, WithConfounds, layout_from_json
from raysel.data.targets import Quantities, squeeze_column, target_from_json
from raysel.data.task_blocks import TaskBlocks
from raysel.data.whole_numbers import rounded_columns

#: Key of the schema's metadata under which `save_dataset` stores the layout and the names as JSON.
METADATA_KEY = b"raysel"
#: Name of a modality before that of a feature in it; it has a letter, unlike 40.5.
_PREFIX = re.compile(r"(?=[^.\[]*[^\W\d])[^.\[]+[.\[]")


def raw_data(
    table: Any,
    options: ReadOptions,
    source: str,
    notes: tuple[str, ...] = (),
    y: LabelArray | None = None,
) -> RawData:
    """Content of a table: the columns of labels and groups, and the others as features."""
    metadata = table.schema.metadata or {}
    stored = parse_json(metadata.get(METADATA_KEY, "{}"))
    names: list[str] = table.column_names
    if options.groups is None and stored and "groups" in names:
        options = replace(options, groups="groups")
    drop = named_columns(table, options, source)
    of_pandas = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index = [
        name for name in dict.fromkeys(names) if name in of_pandas or PANDAS_INDEX.fullmatch(name)
    ]
    label, indicator = options.label, options.quantities
    if y is None:
        if label is None and not indicator:
            apart = {options.groups, *drop, *filter(PANDAS_INDEX.fullmatch, index)}
            others = [name for name in names if name not in apart]
            label, indicator = _find_labels(table, others, source)
        columns = indicator if label is None else (label,)
        if options.drop_unlabelled:
            table, left_out = labelled_rows(table, *columns)
            notes += left_out
        y = _read_labels(table, columns, source, several=label is None)
    groups = None
    if options.groups is not None:
        groups = labels(table, options.groups, source, "groups")
    raw = RawData(
        X=np.empty(0),
        y=y,
        groups=groups,
        label=label,
        notes=notes,
        places=place_columns(table, drop),
    )
    try:
        layout = layout_from_json(stored["layout"]) if stored else None
        target = target_from_json(stored["target"]) if "target" in stored else None
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    if layout is not None and layout.is_multitask:
        raw = _with_names(raw, stored)
        return replace(raw, X=_blocks(table, layout), layout=layout, target=target)
    if has_tensors(table):
        raw = _with_names(raw, stored) if stored else raw
        return replace(_with_tensor(raw, table), layout=layout, target=target)
    used = {label, options.groups, *drop}
    unused = [name for name in index if name not in used]
    beside = {*used, *indicator, *unused}
    positions = [i for i, name in enumerate(names) if name not in beside]
    if unused:
        known = " and ".join(name for name in unused if not PANDAS_INDEX.fullmatch(name))
        note = f"the index {known} of the pandas data frame is left out".replace("  ", " ")
        raw = replace(raw, notes=(*notes, note))
    raw = _with_features(raw, table, options=options, positions=positions, source=source)
    if options.quantities:
        return replace(raw, label_names=indicator, target=Quantities())
    return replace(raw, label_names=tuple(name.removeprefix(INDICATOR) for name in indicator))


def _read_labels(table: Any, columns: Sequence[str], source: str, *, several: bool) -> LabelArray:
    """Read the labels of one column, of which a cell may hold several, or of several columns."""
    read = [labels(table, name, source) for name in columns]
    if several:
        return np.stack(read, axis=1)
    (y,) = read
    return squeeze_column(y)


def _with_features(
    raw: RawData, table: Any, options: ReadOptions, positions: list[int], source: str
) -> RawData:
    """Set the columns at some positions as features."""
    names = table.column_names
    positions, modalities, n_beside = _by_modality(positions, names, options)
    notes = raw.notes
    layout: Layout | None = modalities
    if modalities is not None:
        parts = modalities.modalities
        widths = ", ".join(f"{name} ({width})" for name, width in parts.items())
        notes += (f"the columns are named as those of {len(parts)} modalities: {widths}",)
        if n_beside:
            layout = WithConfounds(modalities, n_beside)
    X, categories = features(table, positions, source, raw.y, unprepared=options.unprepared)
    return replace(
        raw,
        X=X,
        categories=categories,
        layout=layout,
        feature_names=tuple(names[i] for i in positions),
        notes=notes,
        rounded=rounded_features(table, positions, X),
    )


def _with_names(raw: RawData, stored: Mapping[str, Any]) -> RawData:
    """Set the names that `save_dataset` stored."""
    categories = stored.get("categories", {})
    label = stored.get("label")
    return replace(
        raw,
        feature_names=tuple(stored.get("feature_names", ())),
        name=stored.get("name"),
        label_names=tuple(stored.get("label_names", ())),
        categories={str(name): tuple(texts) for name, texts in categories.items()},
        label=None if label is None else str(label),
        notes=(*map(str, stored.get("notes", ())), *raw.notes),
    )


def has_tensors(table: Any) -> bool:
    """Return whether the samples of a table are a column of tensors called X."""
    known = "X" in table.column_names
    return known and isinstance(table.schema.field("X").type, pa.FixedShapeTensorType)


def _with_tensor(raw: RawData, table: Any) -> RawData:
    """Set samples of a column of tensors, as floats if these do not hold its integers."""
    X = tensor(table.column("X"))
    if not rounded_columns(X.reshape(len(X), -1)):
        return replace(raw, X=X)
    return replace(raw, X=X.astype(np.float64), rounded=("X",))


def place_columns(table: Any, names: Collection[str]) -> dict[str, FloatArray]:
    """Columns that tell by their names where each sample was measured, if no cell is empty."""
    found = {}
    for name in dict.fromkeys(chain.from_iterable(places(names))):
        column = table.column(name)
        if is_number(column.type) and not column.null_count:
            values = column.cast(pa.float64(), safe=False).to_numpy()
            if np.isfinite(values).all():
                found[name] = values
    return found


def labelled_rows(table: Any, *columns: str, of: str = "label") -> tuple[Any, tuple[str, ...]]:
    """Return the rows with a value in each of some columns, and a note on those left out."""
    lacking = np.zeros(table.num_rows, dtype=bool)
    for column in map(table.column, columns):
        if not isinstance(column.type, pa.FixedShapeTensorType):
            lacking |= pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)).to_numpy()
    rows = np.flatnonzero(lacking)
    n = len(rows)
    if n in (0, table.num_rows):
        return table, ()
    what = by_number(n, f"1 row has no {of} and is", f"{n} rows have no {of} and are")
    places = f"{by_number(n, 'row', 'rows')} {listed(map(str, rows.tolist()), 5)}, counted from 0"
    return table.filter(pa.array(~lacking)), (f"{what} left out ({places})",)


def named_columns(table: Any, options: ReadOptions, source: str) -> frozenset[str]:
    """Check that a table has the columns that are named, and return those to leave out."""
    names = Counter(table.column_names)
    drop = set(options.drop)
    if "" in drop and (unnamed := [name for name in names if not name or name.startswith(UNNAMED)]):
        drop = drop - {""} | {*unnamed}
    labelled = options.quantities if options.label is None else (options.label,)
    roles = [("label", "labels", name) for name in labelled]
    if options.groups is not None:
        roles.append(("groups", "groups", options.groups))
    purposes = [(key, f"for the {role}", name) for key, role, name in roles]
    purposes += [("drop", "to drop", name) for name in sorted(drop)]
    for key, purpose, column in purposes:
        if column not in names:
            raise DataError(
                f"{key}: {source} has no column {column or 'without a name'} {purpose};"
                f" {suggestion(column, names)}"
            )
    for _, role, column in roles:
        if names[column] > 1:
            raise DataError(
                f"{source}: two columns are called '{column}'; give each column a different name."
            )
        if column in drop:
            raise DataError(
                f"{source}: drop names the column '{column}' of the {role}; take it out of drop."
            )
    return frozenset(drop)


def _find_labels(table: Any, names: list[str], source: str) -> tuple[str | None, tuple[str, ...]]:
    """Column of the labels among those called so, or else the columns of an indicator."""
    indicator = tuple(name for name in names if name.startswith(INDICATOR))
    usual = [*taken_names(names), *indicator[:1]]
    if len(usual) > 1:
        raise DataError(
            f"{source}: the columns {' and '.join(usual)} may all be the labels; name one by label,"
            " and leave the others out by drop unless they are features."
        )
    if not usual:
        once = [name for name, times in Counter(names).items() if times == 1]
        mend = "set label (dataset.label) to the column that holds the classes"
        if likely := likely_labels(table.select(once))[:4]:
            mend += f", e.g. {' or '.join(map(repr, likely))}"
        raise DataError(
            f"{source} has no column y, label, target or class; {mend}. It holds {listed(names)}."
        )
    if len(indicator) > 1:
        return (None, indicator)
    return (usual[0], ())


def _modalities(features: Sequence[str]) -> Modalities | None:
    """Layout of modalities if all columns are ``modality.feature`` or ``modality[index]``."""
    prefixes = [name[: match.end() - 1] for name in features if (match := _PREFIX.match(name))]
    widths = Counter(prefixes)
    if len(prefixes) < len(features) or not 2 <= len(widths) < len(features):
        return None
    n_runs = sum(1 for _ in groupby(prefixes))
    if n_runs == len(widths):
        return Modalities(dict(widths))
    return None


def _by_modality(
    positions: list[int], names: Sequence[str], options: ReadOptions
) -> tuple[list[int], Modalities | None, int]:
    """Columns of the features, the modalities that they are named by, and how many are beside."""
    feature_names = [names[i] for i in positions]
    modalities = _modalities(feature_names)
    beside = matching(options.confounds, feature_names)
    if modalities is not None or not beside:
        return positions, modalities, 0
    own = np.setdiff1d(np.arange(len(positions)), beside).tolist()
    modalities = _modalities([feature_names[i] for i in own])
    if modalities is None:
        return positions, None, 0
    return [positions[i] for i in (*own, *beside)], modalities, len(beside)


def _blocks(table: Any, layout: Layout) -> TaskBlocks:
    """Read samples of several tasks, stored as a list of values of its own task for each sample."""
    lists = table.column("X").combine_chunks()
    values, offsets = lists.values.to_numpy(), lists.offsets.to_numpy()
    tasks = table.column("task").to_numpy()
    if not np.isin(tasks, np.arange(len(layout.task_names))).all():
        raise ValueError(f"a sample belongs to none of the {len(layout.task_names)} tasks")
    blocks = []
    for i, columns in enumerate(layout.slices().values()):
        width = columns.stop - columns.start
        starts, stops = offsets[:-1][tasks == i], offsets[1:][tasks == i]
        if not (stops - starts == width).all():
            raise ValueError(f"a sample of task {i} does not have {width} values")
        block = np.empty((len(starts), width))
        for row, start in zip(block, starts, strict=True):
            row[:] = values[start : start + width]
        block.flags.writeable = False  # TaskBlocks would copy a writable array
        blocks.append(block)
    return TaskBlocks(tuple(blocks), tasks)
