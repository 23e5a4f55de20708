"""Inspection of a data set, kept while that exists, and refusal of columns that hold the label."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DataError, suggestion
from raysel.core.printing import by_number, listed
from raysel.data.dataset import Dataset
from raysel.data.formats.survival import find_event_times
from raysel.data.targets import CLASSES, LABELS, QUANTITIES
from raysel.study.inspection.label_columns import LabelColumn, NearLabel, label_columns, near_labels
from raysel.study.inspection.parts import NearPairs, Part, near_rows, parts
from raysel.study.inspection.quantity_columns import (
    NearQuantity,
    near_quantities,
    quantity_columns,
)
from raysel.study.inspection.row_columns import Kind, row_columns

#: What finds the columns that tell the label, by the kind of the target.
_TELLING: Final[Mapping[str, Callable[[Part], dict[int, LabelColumn]]]] = {
    CLASSES: label_columns,
    LABELS: label_columns,
    QUANTITIES: quantity_columns,
}
#: Most different values of a column of numbers that are no times.
_FEW_TIMES = 5
#: Number of columns that a message describes, and of those that it names.
_DESCRIBED, _NAMED = 3, 8
#: Names that YAML takes for text without quotes.
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True, eq=False)
class Inspection:
    """Findings of the inspection of one part of a data set."""

    part: Part
    by_row: Mapping[int, Kind]
    by_label: Mapping[int, LabelColumn]

    @cached_property
    def n_values(self) -> IntArray:
        """Number of distinct values of each column: shape (n_features,)."""
        return self.part.n_values()

    @cached_property
    def near_label(self) -> list[NearLabel]:
        """Further columns, and pairs of columns, that nearly decide the class."""
        if not self.part.target.is_one_class:
            return []
        return near_labels(self.part, {*self.by_row, *self.by_label})

    @cached_property
    def near_quantity(self) -> list[NearQuantity]:
        """Further columns that nearly tell a quantity, alone or together."""
        if self.part.target.kind != QUANTITIES:
            return []
        return near_quantities(self.part, {*self.by_row, *self.by_label})

    @cached_property
    def near(self) -> NearPairs | None:
        """Pairs of samples that are nearly equal; None if there are too few samples to tell."""
        return near_rows(self.part.X, self.part.row_ids, scale=not self.part.image)


_KNOWN: WeakKeyDictionary[Dataset, tuple[Inspection, ...]] = WeakKeyDictionary()


def inspect(dataset: Dataset) -> tuple[Inspection, ...]:
    """Inspect a data set, each task alone."""
    if dataset not in _KNOWN:
        _KNOWN[dataset] = tuple(
            Inspection(part, row_columns(part), _find_label_columns(part))
            for part in parts(dataset)
        )
    return _KNOWN[dataset]


def _find_label_columns(part: Part) -> dict[int, LabelColumn]:
    find = _TELLING.get(part.target.kind)
    if find is None:
        return {}
    return find(part)


def refuse_leaks(dataset: Dataset, keep: Collection[str] = ()) -> None:
    """Refuse a data set with a column that is an index or the label itself.

    An index is a column without a name, one that counts the samples from 0 or 1 in their order, or
    one that did so in a file whose samples stood class by class.
    """
    known = set(dataset.feature_names)
    if unknown := [name for name in keep if name not in known]:
        hint = suggestion(unknown[0], dataset.feature_names)
        raise DataError(f"keep: {dataset.name} has no column {unknown[0]}; {hint}")
    for findings in inspect(dataset):
        names = findings.part.names
        leaks = {
            column: words
            for column, words in leaking_columns(findings, dataset).items()
            if names[column] not in keep
        }
        if leaks:
            raise DataError(_message(findings, dataset, leaks))


def leaking_columns(findings: Inspection, dataset: Dataset) -> dict[int, str]:
    """Describe the columns that are an index or the label itself."""
    part = findings.part
    leaks = {}
    for column, kind in findings.by_row.items():
        if kind == "unnamed":
            leaks[column] = "has no name of its own, like an index that was saved with its table"
        elif kind == "index":
            values = part.X[:, column]
            leaks[column] = (
                f"numbers the samples, from {values.min():g} to {values.max():g}, as an index does"
            )
    for column, relation in findings.by_label.items():
        if words := _describe_label_column(relation, part, dataset):
            leaks[column] = words
    return dict(sorted((_describe_event_columns(part, dataset) | leaks).items()))


def _describe_event_columns(part: Part, dataset: Dataset) -> dict[int, str]:
    """Describe the time of the event that the label is, or the reverse, by their names."""
    if dataset.label is None or not part.named:
        return {}
    own = [part.own_name(column) for column in range(len(part.names))]
    found = {}
    for time, event in find_event_times([*own, dataset.label]):
        if event == dataset.label and time in own and _is_time(part.X[:, own.index(time)]):
            found[own.index(time)] = f"is the time to the event '{event}', known with it only"
        elif time == dataset.label and dataset.target.kind == QUANTITIES and event in own:
            found[own.index(event)] = f"says whether the event of the label '{time}' happened"
    return found


def _is_time(values: FloatArray) -> bool:
    """Return whether values may be times: none below 0, and more than a few different ones."""
    known = values[np.isfinite(values)]
    return len(known) > 0 and known.min() >= 0 and len(np.unique(known)) > _FEW_TIMES


def _describe_label_column(relation: LabelColumn, part: Part, dataset: Dataset) -> str | None:
    """Return what a column that holds the label is; None for any other."""
    named = "the label" if dataset.label is None else f"the label '{dataset.label}'"
    if dataset.target.kind == QUANTITIES:
        if relation.label is not None:
            named = f"quantity '{dataset.label_names[relation.label]}'"
        return _describe_quantity_column(relation, named)
    if relation.kind == "copy":
        if relation.label is not None:
            return f"tells the label '{dataset.label_names[relation.label]}'"
        return f"equals {named}"
    if relation.kind == "one_hot":
        rows = np.flatnonzero(part.codes == relation.owner)
        return (
            f"marks the samples of class {part.y[rows[0]]}, as further columns do for the other"
            " classes"
        )
    if relation.kind == "recoding":
        return _describe_recoding(relation.n_values, int(part.codes.max()) + 1, named)
    return None


def _describe_recoding(n_values: int, n_classes: int, named: str) -> str:
    if n_values == n_classes:
        return f"is {named} in other values, one for each of {n_values} classes"
    return f"determines {named}: each of its {n_values} values occurs in one class only"


def _describe_quantity_column(relation: LabelColumn, named: str) -> str | None:
    """Return what a column that tells a quantity is."""
    return {
        "copy": f"equals {named}",
        "linear": f"is {named} in another unit: a linear function of it",
        "monotone": f"rises or falls exactly where {named} does: a function of it",
    }.get(relation.kind)


def _message(findings: Inspection, dataset: Dataset, leaks: dict[int, str]) -> str:
    """Describe the first columns, and name all of them with both remedies."""
    part, n = findings.part, len(leaks)
    them = by_number(n, "it", "them")
    names = [part.own_name(column) for column in leaks]
    told = [f"column '{name}' {words}" for name, words in zip(names, leaks.values(), strict=True)]
    shown = told[:_DESCRIBED]
    if n > _DESCRIBED:
        shown.append(f"{n - _DESCRIBED} further columns too")
    where, key = dataset.name, "dataset"
    if part.task is not None:
        where, key = f"{where}, task {part.task}", "dataset.tasks"
    plain = [name if _PLAIN.fullmatch(name) else repr(name) for name in names]
    drop = f"remove {them} from the file"
    if part.named:
        drop = f"list {them} in {key}.drop: [{listed(plain, _NAMED, ', ...')}]"
    relations = [findings.by_label[column] for column in leaks if column in findings.by_label]
    if any(r.kind == "recoding" and r.n_values > part.codes.max() + 1 for r in relations):
        drop += ", or in cv.groups the one that names the subject of each sample"
    they_are = by_number(n, "it is a feature", "they are features")
    return (
        f"{where}: {'; '.join(shown)}. Scores with {them} would say nothing about the other"
        f" features: {drop}; if {they_are} all the same, list {them} in {key}.keep."
    )
