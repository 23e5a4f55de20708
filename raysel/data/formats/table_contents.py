"""Choice of the labels, groups and features of an Arrow table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.files import parse_json
from raysel.core.printing import listed
from raysel.data.formats.columns import UNNAMED, labels, numbers, prepared, tensor
from raysel.data.formats.files import RawData, ReadOptions, as_labels
from raysel.data.formats.recognition import INDICATOR, PANDAS_INDEX, likely_labels, taken_names
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


def raw_data(
    table: Any, options: ReadOptions, source: str, notes: tuple[str, ...] = (), y: LabelArray | None = None
) -> RawData:
    """Content of a table: the column of the labels, that of the groups, and the others as features."""
    metadata = table.schema.metadata or {}
    stored = parse_json(metadata[METADATA_KEY]) if METADATA_KEY in metadata else {}
    table, renamed = prepared(table)
    notes += renamed
    names: list[str] = table.column_names
    if options.groups is None and stored and "groups" in names:
        options = replace(options, groups="groups")
    roles = _roles(table, options, source, with_labels=y is None)
    if y is None and roles.label is not None:
        y = as_labels(labels(table, roles.label, source))
    elif y is None:
        y = np.stack([labels(table, name, source) for name in roles.indicator], axis=1)
    groups = None if roles.groups is None else labels(table, roles.groups, source, "groups")
    raw = RawData(X=np.empty(0), y=y, groups=groups, label=roles.label, notes=notes)
    try:
        layout = layout_from_json(stored["layout"]) if stored else None
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    tasks = layout if layout is not None and layout.is_multitask else None
    if tasks or ("X" in names and isinstance(table.schema.field("X").type, pa.FixedShapeTensorType)):
        raw = replace(raw, X=_blocks(table, tasks) if tasks else tensor(table.column("X")), layout=layout)
        if not stored:
            return raw
        return replace(
            raw,
            feature_names=tuple(stored.get("feature_names", ())),
            name=stored.get("name"),
            label_names=tuple(stored.get("label_names", ())),
            label=None if stored.get("label") is None else str(stored["label"]),
            notes=(*map(str, stored.get("notes", ())), *notes),
        )
    others = {roles.label, roles.groups, *roles.indicator, *roles.drop, *roles.index}
    features = [i for i, name in enumerate(names) if name not in others]
    feature_names = tuple(names[i] for i in features)
    modalities = _modalities(feature_names)
    if unused := [name for name in roles.index if name not in (roles.label, roles.groups, *roles.drop)]:
        known = " and ".join(name for name in unused if not PANDAS_INDEX.fullmatch(name))
        notes += (f"the index {known} of the pandas data frame is left out".replace("  ", " "),)
    if modalities is not None:
        widths = ", ".join(f"{name} ({width})" for name, width in modalities.modalities.items())
        notes += (f"the columns are named as those of {len(modalities.modalities)} modalities: {widths}",)
    return replace(
        raw,
        X=numbers(table, features, source, y),
        layout=modalities,
        feature_names=feature_names,
        label_names=tuple(name.removeprefix(INDICATOR) for name in roles.indicator),
        notes=notes,
    )


def _roles(table: Any, options: ReadOptions, source: str, *, with_labels: bool) -> _Roles:
    names = Counter(table.column_names)
    drop = named_columns(options, names, source)
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    of_pandas = {name for name in stored if isinstance(name, str)}
    index = tuple(name for name in names if name in of_pandas or PANDAS_INDEX.fullmatch(name))
    label: str | None = options.label
    indicator: tuple[str, ...] = ()
    if label is None and with_labels:
        others = {options.groups, *drop, *filter(PANDAS_INDEX.fullmatch, index)}
        label, indicator = _labels_of(table, [name for name in table.column_names if name not in others], source)
    return _Roles(label, indicator, options.groups, drop, index)


def named_columns(options: ReadOptions, names: Counter[str], source: str) -> frozenset[str]:
    """Check that a table has the columns that are named, and return those to leave out."""
    roles = (("label", "labels", options.label), ("groups", "groups", options.groups))
    for key, role, name in roles:
        if name is not None:
            _check_known(name, names, key, f" for the {role}", source)
            if names[name] > 1:
                raise DataError(f"{source}: two columns are called '{name}'; give each column a different name.")
    drop = set()
    for name in options.drop:
        unnamed = [other for other in names if not other or other.startswith(UNNAMED)]
        if name == "" and unnamed:
            drop.update(unnamed)
        else:
            _check_known(name, names, "drop", " to drop", source)
            drop.add(name)
    for _, role, name in roles:
        if name in drop:
            raise DataError(f"{source}: drop names the column '{name}' of the {role}; take it out of drop.")
    return frozenset(drop)


def _check_known(wanted: str, names: Counter[str], key: str, purpose: str, source: str) -> None:
    """Check that a table has a column."""
    if wanted in names:
        return
    lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lower, n=1)
    hint = f"did you mean {lower[close[0]]}?" if close else f"it holds {listed(names)}."
    raise DataError(f"{key}: {source} has no column {wanted or 'without a name'}{purpose}; {hint}")


def _labels_of(table: Any, names: list[str], source: str) -> tuple[str | None, tuple[str, ...]]:
    """Column of the labels among those called so, or else the columns of an indicator."""
    indicator = tuple(name for name in names if name.startswith(INDICATOR))
    usual = [*taken_names(names), *indicator[:1]]
    if len(usual) > 1:
        raise DataError(
            f"{source}: the columns {' and '.join(usual)} may all be the labels; name one by label, and leave the "
            "others out by drop unless they are features."
        )
    if not usual:
        likely = likely_labels(table.select([name for name, times in Counter(names).items() if times == 1]))[:4]
        proposed = f", e.g. {' or '.join(map(repr, likely))}" if likely else ""
        raise DataError(
            f"{source} has no column y, label, target or class; set label (dataset.label) to the column that holds "
            f"the classes{proposed}. It holds {listed(names)}."
        )
    return (None, indicator) if len(indicator) > 1 else (usual[0], ())


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
