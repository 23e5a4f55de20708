"""Choice of the labels, groups and features of an Arrow table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.files import parse_json
from raysel.core.printing import listed
from raysel.data.formats.files import RawData, ReadOptions, as_labels
from raysel.data.formats.names import INDICATOR, PANDAS_INDEX, taken_names
from raysel.data.formats.tables.classes import likely_labels
from raysel.data.formats.tables.columns import UNNAMED, labels, named, numbers, tensor, with_plain_text
from raysel.data.layouts import Layout, Modalities, layout_from_json
from raysel.data.task_blocks import TaskBlocks

#: Key of the schema's metadata under which `save_dataset` stores the layout and the names as JSON.
METADATA_KEY = b"raysel"


@dataclass(frozen=True)
class _Roles:
    """Names of the columns that are no features."""

    label: str | None
    indicator: tuple[str, ...]
    groups: str | None
    drop: frozenset[str]
    index: tuple[str, ...]

    def features(self, names: Sequence[str]) -> list[int]:
        """Positions of the features among the columns."""
        others = {self.label, self.groups, *self.indicator, *self.drop, *self.index}
        return [i for i, name in enumerate(names) if name not in others]


def raw_data(
    table: Any, options: ReadOptions, source: str, notes: tuple[str, ...] = (), y: LabelArray | None = None
) -> RawData:
    """Content of a table: the column of the labels, that of the groups, and the others as features."""
    metadata = table.schema.metadata or {}
    stored = parse_json(metadata[METADATA_KEY]) if METADATA_KEY in metadata else {}
    table, called = named(with_plain_text(table))
    notes += called
    roles = _roles(table, options, source, own_groups=bool(stored), own_labels=y is None)
    if y is None:
        of_indicator = (labels(table, name, source) for name in roles.indicator)
        y = (
            np.stack(list(of_indicator), axis=1)
            if roles.label is None
            else as_labels(labels(table, roles.label, source))
        )
    groups = None if roles.groups is None else labels(table, roles.groups, source, "groups")
    try:
        layout = layout_from_json(stored["layout"]) if stored else None
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    tasks = layout if layout is not None and layout.is_multitask else None
    if tasks or _has_tensor(table):
        return RawData(
            X=_blocks(table, tasks) if tasks else tensor(table.column("X")),
            y=y,
            groups=groups,
            layout=layout,
            feature_names=tuple(stored.get("feature_names", ())),
            name=stored.get("name"),
            label_names=tuple(stored.get("label_names", ())),
            label=_stored_label(stored) if stored else roles.label,
            notes=(*map(str, stored.get("notes", ())), *notes),
        )
    columns = table.column_names  # which makes a list at each access
    features = roles.features(columns)
    names = [columns[i] for i in features]
    modalities = _modalities(names)
    if unused := [name for name in roles.index if name not in (roles.label, roles.groups, *roles.drop)]:
        known = " and ".join(name for name in unused if not PANDAS_INDEX.fullmatch(name))
        notes += (f"the index {known} of the pandas data frame is left out".replace("  ", " "),)
    if modalities is not None:
        widths = ", ".join(f"{name} ({width})" for name, width in modalities.modalities.items())
        notes += (f"the columns are named as those of {len(modalities.modalities)} modalities: {widths}",)
    return RawData(
        X=numbers(table, features, source, y),
        y=y,
        groups=groups,
        layout=modalities,
        feature_names=tuple(names),
        label_names=tuple(name.removeprefix(INDICATOR) for name in roles.indicator),
        label=roles.label,
        notes=notes,
    )


def _stored_label(stored: Mapping[str, Any]) -> str | None:
    label = stored.get("label")
    return None if label is None else str(label)


def _has_tensor(table: Any) -> bool:
    return "X" in table.column_names and isinstance(table.schema.field("X").type, pa.FixedShapeTensorType)


def _roles(table: Any, options: ReadOptions, source: str, *, own_groups: bool, own_labels: bool) -> _Roles:
    names = Counter(table.column_names)
    groups = options.groups
    if groups is None and own_groups and "groups" in names:
        groups = "groups"
    drop = named_columns(replace(options, groups=groups), names, source)
    label = options.label
    indicator: tuple[str, ...] = ()
    index = _pandas_index(table)
    if label is None and own_labels:
        unnamed = {name for name in index if PANDAS_INDEX.fullmatch(name)}
        label, indicator = _labels_of(table, {groups, *drop, *unnamed}, source)
    return _Roles(label, indicator, groups, drop, index)


def named_columns(options: ReadOptions, names: Counter[str], source: str) -> frozenset[str]:
    """Check that a table has the columns that are named, and return those to leave out."""
    for wanted, key in ((options.label, "label"), (options.groups, "groups")):
        if wanted is not None:
            _check_known(wanted, names, key, source)
    drop = frozenset(name for wanted in options.drop for name in _dropped(wanted, names, source))
    for role, name in (("labels", options.label), ("groups", options.groups)):
        if name in drop:
            raise DataError(f"{source}: drop names the column '{name}' of the {role}; take it out of drop.")
    return drop


def _labels_of(table: Any, others: Collection[str | None], source: str) -> tuple[str | None, tuple[str, ...]]:
    """Column of the labels, or else the columns of an indicator."""
    names = [name for name in table.column_names if name not in others]
    indicator = [name for name in names if name.startswith(INDICATOR)]
    taken = [*taken_names(names), *indicator[:1]]
    if len(taken) > 1:
        raise DataError(
            f"{source}: the columns {' and '.join(taken)} may all be the labels; name one by label, and leave the "
            "others out by drop unless they are features."
        )
    if not taken:
        raise _without_labels(table.select(_unique(names)), source)
    return (None, tuple(indicator)) if len(indicator) > 1 else (taken[0], ())


def _unique(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times == 1]


def _without_labels(table: Any, source: str) -> DataError:
    proposed = likely_labels(table)[:4]
    if proposed:
        mend = f"set label (dataset.label) to the column that holds the classes, e.g. {_alternatives(proposed)}"
    else:
        mend = "set label (dataset.label) to the column that holds the classes"
    return DataError(
        f"{source} has no column y, label, target or class; {mend}. It holds {listed(table.column_names)}."
    )


def _alternatives(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _dropped(wanted: str, names: Counter[str], source: str) -> list[str]:
    """Columns that an entry of drop names; the empty text names those without a name."""
    if wanted == "" and (unnamed := [name for name in names if not name or name.startswith(UNNAMED)]):
        return unnamed
    _check_known(wanted, names, "drop", source)
    return [wanted]


def _check_known(wanted: str, names: Counter[str], key: str, source: str) -> None:
    """Check that a table has a column, and of the labels and groups only one of this name."""
    if wanted in names:
        if names[wanted] > 1 and key != "drop":
            raise DataError(f"{source}: two columns are called '{wanted}'; give each column a different name.")
        return
    purpose = {"label": " for the labels", "groups": " for the groups", "drop": " to drop"}[key]
    lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lower, n=1)
    hint = f"did you mean {lower[close[0]]}?" if close else f"it holds {listed(names)}."
    raise DataError(f"{key}: {source} has no column {wanted or 'without a name'}{purpose}; {hint}")


def _pandas_index(table: Any) -> tuple[str, ...]:
    """Columns in which pandas stores the index of a data frame."""
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    named = {name for name in stored if isinstance(name, str)}
    return tuple(name for name in table.column_names if name in named or PANDAS_INDEX.fullmatch(name))


def _modalities(features: Sequence[str]) -> Modalities | None:
    """Layout of several modalities if all columns are named ``modality.feature`` or ``modality[index]``, else None."""
    matches = (re.match(r"([^.\[]+)[.\[]", name) for name in features)
    prefixes = [match[1] for match in matches if match and re.search(r"[^\W\d]", match[1])]  # 40.5 has no letter
    widths = Counter(prefixes)
    n_runs = sum(1 for _ in groupby(prefixes))
    if len(prefixes) < len(features) or len(widths) < 2 or n_runs > len(widths) or len(widths) == len(features):
        return None
    return Modalities(dict(widths))


def _blocks(table: Any, layout: Layout) -> TaskBlocks:
    """Read samples of several tasks, stored as a list of values of its own task for each sample."""
    own = table.column("X").combine_chunks()
    values, offsets = own.values.to_numpy(), own.offsets.to_numpy()
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


#: Name of a data frame in error messages.
SOURCE = "the data frame"


def frame_table(frame: Any) -> Any:
    """Return a data frame as an Arrow table."""
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            f"a data frame is needed (pandas, polars, or an Arrow table), not {type(frame).__name__}; arrays are for "
            "Dataset(X, y, layout)."
        )
    try:
        if isinstance(frame, pd.DataFrame):
            if not isinstance(frame.columns, pd.MultiIndex):
                frame = frame.rename(columns=str)
            return pa.Table.from_pandas(frame)
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        # PyArrow's message names the column and its type.
        raise DataError(f"{SOURCE} cannot be used: {' '.join(map(str, error.args))}") from error
    if not isinstance(table, pa.Table):
        raise DataError(f"{SOURCE} of type {type(frame).__name__} holds no columns; give a data frame.")
    return table


def frame_data(
    frame: Any,
    label: str | None,
    y: Any,
    groups: Any,
    drop: Collection[str],
    name: str,
) -> RawData:
    """Content of a data frame."""
    if y is not None and label is not None:
        raise DataError(f"label={label!r} and y are both given; give the labels once.")
    if not isinstance(label, (str, int, tuple, type(None))):
        raise DataError(
            f"label is the name of a column, not {type(label).__name__}; give labels apart from the frame as y."
        )
    table = frame_table(frame)
    own_groups = groups is not None and not isinstance(groups, (str, int))
    options = ReadOptions(
        label=None if label is None else str(label),
        groups=None if own_groups or groups is None else str(groups),
        drop=tuple(map(str, [drop] if isinstance(drop, (str, int)) else drop)),
    )
    raw = raw_data(table, options, SOURCE, y=None if y is None else _aligned(y, frame, "y"))
    if own_groups:
        raw = replace(raw, groups=_aligned(groups, frame, "groups"))
    if y is not None:
        columns = getattr(y, "columns", None)
        names = () if columns is None else tuple(map(str, columns))
        called = getattr(y, "name", None)
        raw = replace(raw, label=None if called is None else str(called), label_names=names)
    return replace(raw, name=name)


def _aligned(values: Any, frame: Any, role: str) -> LabelArray:
    """Values of each row as an array; refuse those of pandas whose index is another than the frame's."""
    index, rows = getattr(values, "index", None), getattr(frame, "index", None)
    if isinstance(index, pd.Index) and isinstance(rows, pd.Index) and not index.equals(rows):
        raise DataError(
            f"{role} and {SOURCE} have different indices, so their rows may not belong together; give "
            f"{role}.loc[frame.index], or {role}.to_numpy() if the rows are in the same order."
        )
    array = np.asarray(values)
    if (missing := np.argwhere(pd.isna(array))).size:
        raise DataError(
            f"{role} has no value in row {missing[0][0]} (counted from 0); fill it in or remove the sample."
        )
    if array.dtype.kind != "O":
        return array
    # Text, categories and pandas' own types of integers come as objects.
    n_texts = sum(isinstance(value, str) for value in array.ravel())
    return np.array(array.tolist()) if n_texts in (0, array.size) else array
