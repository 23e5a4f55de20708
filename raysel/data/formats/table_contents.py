"""Choice of the labels, groups and features of an Arrow table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError, suggestion
from raysel.core.files import parse_json
from raysel.core.printing import listed
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
from raysel.data.targets import Quantities, target_from_json
from raysel.data.task_blocks import TaskBlocks
from raysel.data.whole_numbers import rounded_columns

#: Key of the schema's metadata under which `save_dataset` stores the layout and the names as JSON.
METADATA_KEY = b"raysel"


def raw_data(
    table: Any,
    options: ReadOptions,
    source: str,
    notes: tuple[str, ...] = (),
    y: LabelArray | None = None,
) -> RawData:
    """Content of a table: the column of the labels, that of the groups, and the others as
    features.
    """
    metadata = table.schema.metadata or {}
    stored = parse_json(metadata[METADATA_KEY]) if METADATA_KEY in metadata else {}
    names: list[str] = table.column_names
    if options.groups is None and stored and "groups" in names:
        options = replace(options, groups="groups")
    drop = named_columns(table, options, source)
    of_pandas = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index = [
        name for name in dict.fromkeys(names) if name in of_pandas or PANDAS_INDEX.fullmatch(name)
    ]
    label, several = options.label, options.quantities
    indicator: tuple[str, ...] = ()
    if y is None:
        if several:
            indicator = several
        elif label is None:
            apart = {options.groups, *drop, *filter(PANDAS_INDEX.fullmatch, index)}
            label, indicator = _labels_of(
                table, [name for name in names if name not in apart], source
            )
        if options.drop_unlabelled:
            table, left_out = labelled_rows(table, *([label] if label is not None else indicator))
            notes += left_out
        if label is not None:
            y = labels(table, label, source)
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        else:
            y = np.stack([labels(table, name, source) for name in indicator], axis=1)
    groups = None if options.groups is None else labels(table, options.groups, source, "groups")
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
    tasks = layout if layout is not None and layout.is_multitask else None
    if tasks or has_tensors(table):
        raw = (
            replace(raw, X=_blocks(table, tasks), layout=layout)
            if tasks
            else _of_tensor(raw, table, layout)
        )
        if not stored:
            return raw
        return replace(
            raw,
            feature_names=tuple(stored.get("feature_names", ())),
            name=stored.get("name"),
            label_names=tuple(stored.get("label_names", ())),
            categories={
                str(name): tuple(texts) for name, texts in stored.get("categories", {}).items()
            },
            label=None if stored.get("label") is None else str(stored["label"]),
            target=target,
            notes=(*map(str, stored.get("notes", ())), *notes),
        )
    used = {label, options.groups, *drop}
    others = {*used, *indicator, *index}
    positions = [i for i, name in enumerate(names) if name not in others]
    positions, modalities, n_beside = _by_modality(positions, names, options)
    feature_names = tuple(names[i] for i in positions)
    if unused := [name for name in index if name not in used]:
        known = " and ".join(name for name in unused if not PANDAS_INDEX.fullmatch(name))
        notes += (f"the index {known} of the pandas data frame is left out".replace("  ", " "),)
    if modalities is not None:
        widths = ", ".join(f"{name} ({width})" for name, width in modalities.modalities.items())
        notes += (
            f"the columns are named as those of {len(modalities.modalities)} modalities: {widths}",
        )
    X, categories = features(table, positions, source, y, unprepared=options.unprepared)
    return replace(
        raw,
        X=X,
        categories=categories,
        layout=WithConfounds(modalities, n_beside) if modalities and n_beside else modalities,
        feature_names=feature_names,
        label_names=(
            indicator if several else tuple(name.removeprefix(INDICATOR) for name in indicator)
        ),
        target=Quantities() if several else None,
        notes=notes,
        rounded=rounded_features(table, positions, X),
    )


def has_tensors(table: Any) -> bool:
    """Return whether the samples of a table are a column of tensors called X."""
    known = "X" in table.column_names
    return known and isinstance(table.schema.field("X").type, pa.FixedShapeTensorType)


def _of_tensor(raw: RawData, table: Any, layout: Layout | None) -> RawData:
    """Read samples of a column of tensors, as floats if these do not hold its integers."""
    X = tensor(table.column("X"))
    if not rounded_columns(X.reshape(len(X), -1)):
        return replace(raw, X=X, layout=layout)
    return replace(raw, X=X.astype(np.float64), layout=layout, rounded=("X",))


def place_columns(table: Any, names: Collection[str]) -> dict[str, FloatArray]:
    """Columns among some that tell by their names where each sample was measured, if no cell is
    empty.
    """
    found = {}
    for name in dict.fromkeys(name for together in places(names) for name in together):
        column = table.column(name)
        if is_number(column.type) and not column.null_count:
            values = column.cast(pa.float64(), safe=False).to_numpy()
            if np.isfinite(values).all():
                found[name] = values
    return found


def labelled_rows(table: Any, *columns: str, of: str = "label") -> tuple[Any, tuple[str, ...]]:
    """Return the rows with a value in each of some columns, of a kind, and what to note if
    others are left out.
    """
    lacking = np.zeros(table.num_rows, dtype=bool)
    for column in map(table.column, columns):
        if not isinstance(column.type, pa.FixedShapeTensorType):
            lacking |= pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)).to_numpy()
    rows = np.flatnonzero(lacking)
    if not len(rows) or len(rows) == table.num_rows:
        return table, ()
    what = (
        f"1 row has no {of} and is" if len(rows) == 1 else f"{len(rows)} rows have no {of} and are"
    )
    places = f"row{'s' * (len(rows) > 1)} {listed(map(str, rows.tolist()), 5)}, counted from 0"
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
    for key, role, column in [*roles, *(("drop", "", name) for name in sorted(drop))]:
        if column not in names:
            purpose = f"for the {role}" if role else "to drop"
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


def _labels_of(table: Any, names: list[str], source: str) -> tuple[str | None, tuple[str, ...]]:
    """Column of the labels among those called so, or else the columns of an indicator."""
    indicator = tuple(name for name in names if name.startswith(INDICATOR))
    usual = [*taken_names(names), *indicator[:1]]
    if len(usual) > 1:
        raise DataError(
            f"{source}: the columns {' and '.join(usual)} may all be the labels; name one by label,"
            " and leave the others out by drop unless they are features."
        )
    if not usual:
        likely = likely_labels(
            table.select([name for name, times in Counter(names).items() if times == 1])
        )[:4]
        proposed = f", e.g. {' or '.join(map(repr, likely))}" if likely else ""
        raise DataError(
            f"{source} has no column y, label, target or class; set label (dataset.label) to the"
            f" column that holds the classes{proposed}. It holds {listed(names)}."
        )
    return (None, indicator) if len(indicator) > 1 else (usual[0], ())


def _modalities(features: Sequence[str]) -> Modalities | None:
    """Layout of several modalities if all columns are named ``modality.feature`` or
    ``modality[index]``, else None.
    """
    matches = (re.match(r"([^.\[]+)[.\[]", name) for name in features)
    prefixes = [
        match[1] for match in matches if match and re.search(r"[^\W\d]", match[1])
    ]  # 40.5 has no letter
    widths = Counter(prefixes)
    n_runs = sum(1 for _ in groupby(prefixes))
    if (
        len(prefixes) < len(features)
        or len(widths) < 2
        or n_runs > len(widths)
        or len(widths) == len(features)
    ):
        return None
    return Modalities(dict(widths))


def _by_modality(
    positions: list[int], names: Sequence[str], options: ReadOptions
) -> tuple[list[int], Modalities | None, int]:
    """Columns of the features, confounds last if the others are named as those of modalities,
    and how many these are.
    """
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
