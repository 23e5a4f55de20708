"""Remarks on a data set: what in it may make scores say less than they seem to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from raysel.core.printing import by_number
from raysel.data.dataset import Dataset
from raysel.data.formats.recognition import find_place_names, names_weight, odd_cells
from raysel.data.whole_numbers import BEYOND_FLOATS
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.arrangement import arrangement_remark
from raysel.study.inspection.copies import copy_remarks
from raysel.study.inspection.dependence import order_remark, period_remark
from raysel.study.inspection.label_columns import NearLabel
from raysel.study.inspection.leaks import Inspection, inspect, leaking_columns
from raysel.study.inspection.parts import Part, parts
from raysel.study.inspection.places import place_remark
from raysel.study.inspection.quantity_columns import NearQuantity

#: Columns whose standard deviations differ by more than this factor probably have different units.
_SPREADS = 10.0
#: Number of columns that a remark names.
_NAMED = 3
#: What to make sure of for a column that tells the label.
_KNOWN_BEFORE = "make sure that the values were known before the label"
#: What is said of a column of a kind, and the verbs for several.
_OF_COLUMNS = {
    "group": (
        "has few samples a value, as subjects have: if they belong together, name the column in"
        " cv.groups, else in dataset.drop."
    ),
    "identifier": (
        "has another whole number in each row: drop what is an identifier (dataset.drop)."
    ),
    "in_file_order": (
        "has values in the order of the rows, while the labels stand in runs: drop what tells that"
        " order (dataset.drop)."
    ),
    "separates": (
        f"separates the classes alone, by thresholds and without an error: {_KNOWN_BEFORE}."
    ),
    "determines": f"tells {{label}} alone, without an error: {_KNOWN_BEFORE}.",
    "constant_in_class": f"has one value in each class: {_KNOWN_BEFORE}.",
}
_SEVERAL = {"has": "have", "separates": "separate", "tells": "tell"}


class DataRemarks(NamedTuple):
    """Remarks on the data of a study."""

    #: Those that give a reason to distrust the scores or the ranking, and so ask for an action.
    questioning: list[str]
    #: Those that do not: constant columns, batches that are not told after preparation.
    others: list[str]


def data_remarks(dataset: Dataset, plan: NestedPlan | None = None) -> list[str]:
    """Remark on what in a data set gives a reason to distrust scores or the ranking."""
    remarks = [f"{note[0].upper()}{note[1:]}" for note in dataset.notes if BEYOND_FLOATS in note]
    if dataset.groups is not None and len(np.unique(dataset.groups)) == dataset.n_samples:
        remarks.append(
            "Each sample is a group of its own, so cv.groups keeps none together: it may name an"
            " identifier."
        )
    if n := dataset.n_unlabelled:
        remarks.append(
            f"{n} of {dataset.n_samples + n} samples {by_number(n, 'is', 'are')} left out: their"
            " label is NaN; make sure that they are a random choice.\nIf they are none, the scores"
            " are of others than will be predicted."
        )
    for findings in inspect(dataset):
        of_part = [*_column_remarks(findings, dataset), *copy_remarks(findings, dataset, plan)]
        of_part += filter(None, [_alike(findings.part, dataset, plan)])
        remarks += [f"{findings.part.heading}{remark}" for remark in of_part]
    return [*remarks, *filter(None, [arrangement_remark(dataset)])]


def _alike(part: Part, dataset: Dataset, plan: NestedPlan | None) -> str | None:
    """Remark on samples alike in place, or else near in the file, or else so many rows apart."""
    return (
        place_remark(part, plan, dataset.places)
        or order_remark(part, plan)
        or period_remark(part, plan)
    )


def constant_remarks(dataset: Dataset) -> Iterator[str]:
    """Remark on constant columns, which question no score."""
    for part in parts(dataset):
        columns = np.flatnonzero(_constant(part, dataset)).tolist()
        if columns:
            some = ", e.g. " if len(columns) > _NAMED else ": "
            are = by_number(len(columns), "is", "are")
            yield (
                f"{part.heading}{len(columns)} of {len(part.names)} columns {are} constant, which"
                f" tells nothing of the label{some}{_names(part, columns)}."
            )


def scale_remarks(dataset: Dataset, scaling: str | None) -> Iterator[str]:
    """Remark on columns that ``dataset.scaling`` leaves at different scales."""
    if scaling not in ("unit", "none"):
        return
    for part in parts(dataset):
        moving = ~_constant(part, dataset)
        if part.image or dataset.layout.is_image or not moving.any():
            continue
        # Of values near the end of the range the squares overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            spreads = part.scan(lambda block: block.std(axis=0, dtype=np.float64))
        widest, narrowest = np.argmax(spreads), np.argmin(np.where(moving, spreads, np.inf))
        ratio = spreads[widest] / spreads[narrowest]
        if ratio > _SPREADS:
            yield (
                f"{part.heading}dataset.scaling {scaling} leaves columns of different scales: if"
                f" they have different units, set {dataset.layout.default_scaling}, as else the"
                " ranking is by the unit.\nTheir standard deviations differ by a factor of"
                f" {ratio:.3g} ('{part.own_name(int(widest))}' to"
                f" '{part.own_name(int(narrowest))}')."
            )


def _column_remarks(findings: Inspection, dataset: Dataset) -> Iterator[str]:
    """Remark on single columns, and pairs; on each column once."""
    part = findings.part
    leaking = leaking_columns(findings, dataset)
    for column, words in list(leaking.items())[:_NAMED]:
        yield (
            f"Column '{part.own_name(column)}' {words}; a study refuses it unless dataset.keep"
            " names it."
        )
    label = "the classes" if part.target.is_one_class else "one label"
    by_kind = _columns_by_kind(findings, leaking, grouped=dataset.groups is not None)
    for kind, columns in by_kind.items():
        if columns:
            verb, rest = _OF_COLUMNS[kind].format(label=label).split(" ", 1)
            verb = by_number(len(columns), verb, _SEVERAL[verb])
            yield f"{_named(findings, columns)} {verb} {rest}"
    for near in findings.near_label[:_NAMED]:
        yield _describe_near_label(near, part)
    for near_quantity in findings.near_quantity[:_NAMED]:
        yield _describe_near_quantity(near_quantity, part, dataset)
    yield from _remark_on_categories(part, dataset)
    yield from _remark_on_names(part)


def _describe_near_label(near: NearLabel, part: Part) -> str:
    names = "' and '".join(part.own_name(column) for column in near.columns)
    n = len(near.columns)
    figures = f"The mean error on held-out samples is {near.error:.1%}"
    if near.next_error is not None:
        figures += f", of the next column alone {near.next_error:.1%}"
    return (
        f"{by_number(n, 'Column', 'The columns')} '{names}'"
        f" {by_number(n, 'alone tells', 'together tell')} the classes: {_KNOWN_BEFORE}; if not,"
        f" list {by_number(n, 'it', 'them')} in dataset.drop.\n{figures}."
    )


def _describe_near_quantity(near: NearQuantity, part: Part, dataset: Dataset) -> str:
    names = "' and '".join(part.own_name(column) for column in near.columns)
    n = len(near.columns)
    quantity = "the quantity"
    if near.label is not None:
        quantity += f" '{dataset.label_names[near.label]}'"
    return (
        f"{by_number(n, 'Column', 'The columns')} '{names}'"
        f" {near.words.format(quantity=quantity)}: drop {by_number(n, 'it', 'them')}"
        f" (dataset.drop) unless the values were known before.\n{near.figures}".rstrip()
    )


def _remark_on_categories(part: Part, dataset: Dataset) -> Iterator[str]:
    """Remark on columns that are text because of a few cells."""
    for column, name in enumerate(part.names):
        if name not in dataset.categories:
            continue
        texts = dataset.categories[name]
        n_cells = np.bincount(part.X[:, column].astype(np.int64), minlength=len(texts)).tolist()
        # Behind the numbers of cells with each text stands that of the empty ones.
        if odd := odd_cells(dict(zip(texts, n_cells, strict=False)), len(part.X)):
            yield (
                f"Column '{part.own_name(column)}' is read as text of {len(texts)} values because"
                f" of {odd}: correct or empty them if it holds numbers."
            )


def _remark_on_names(part: Part) -> Iterator[str]:
    """Remark on columns that may be no features by their names: places and weights."""
    if not part.named:
        return
    own = [part.own_name(column) for column in range(len(part.names))]
    if located := find_place_names(own):
        yield (
            f"{' and '.join(located[:_NAMED])} may tell where a sample was measured, and"
            f" {_drop_features(located)} for new places, and name blocks in cv.groups."
        )
    if weights := [name for name in own if names_weight(name)]:
        yield (
            f"{' and '.join(weights[:_NAMED])} may say how much each sample counts, and"
            f" {_drop_features(weights)} unless measured."
        )


def _drop_features(names: Sequence[str]) -> str:
    n = len(names)
    are, them = by_number(n, "is a feature", "are features"), by_number(n, "it", "them")
    return f"{are}: drop {them} (dataset.drop)"


def _columns_by_kind(
    findings: Inspection, leaking: Collection[int], *, grouped: bool
) -> dict[str, list[int]]:
    """Columns of each kind that is remarked on, without those that leak; each column once."""
    by_row = {column: kind for column, kind in findings.by_row.items() if column not in leaking}
    by_label = {
        column: relation.kind
        for column, relation in findings.by_label.items()
        if column not in leaking
    }
    kinds: dict[str, list[int]] = {kind: [] for kind in _OF_COLUMNS}
    for column, kind in by_row.items():
        if kind in kinds and not (
            kind == "in_file_order" and by_label.get(column) == "constant_in_class"
        ):
            kinds[kind].append(column)
    for column, related in by_label.items():
        if (
            related == "owned"
            and by_row.get(column) != "group"
            and _may_name_groups(findings, column)
        ):
            kinds["group"].append(column)
        elif (related == "constant_in_class" and by_row.get(column) != "group") or (
            related in ("separates", "determines") and column not in by_row
        ):
            kinds[related].append(column)
    if grouped:
        kinds["group"] = []
    return kinds


def _may_name_groups(findings: Inspection, column: int) -> bool:
    """Return whether a column whose values have one class each may number subjects."""
    # It has whole numbers, two or more samples a value, and is unlike most other columns: not half
    # to twice as many values.
    part, n_values = findings.part, findings.by_label[column].n_values
    values = part.X[:, column]
    if part.image or 2 * n_values > len(values) or (values != np.floor(values)).any():
        return False
    alike = (n_values <= 2 * findings.n_values) & (findings.n_values <= 2 * n_values)
    return bool(alike.mean() <= 0.5)


def _constant(part: Part, dataset: Dataset) -> np.ndarray:
    """Mask of the constant columns of a part."""
    start = dataset.feature_names.index(part.names[0])
    return dataset.constant[start : start + len(part.names)]


def _names(part: Part, columns: Sequence[int]) -> str:
    return ", ".join(part.own_name(column) for column in columns[:_NAMED])


def _named(findings: Inspection, columns: Sequence[int]) -> str:
    names = _names(findings.part, columns)
    if len(columns) == 1:
        return f"Column '{names}'"
    example = "e.g. " if len(columns) > _NAMED else ""
    return f"{len(columns)} columns ({example}{names})"
