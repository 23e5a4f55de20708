"""Remarks on a data set: what in it may make scores say less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from raysel.data.dataset import Dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.arrangement import arrangement_remark
from raysel.study.inspection.dependence import copy_remarks, order_remark
from raysel.study.inspection.leaks import Findings, inspect, leaking_columns
from raysel.study.inspection.parts import parts

#: Columns whose standard deviations differ by more than this factor probably have different units.
_SPREADS = 10.0
#: Number of columns that a remark names.
_NAMED = 3
#: End of the only remark that questions no score.
_CONSTANT = "constant, which tells nothing of the label"


def data_remarks(dataset: Dataset, plan: NestedPlan | None = None) -> list[str]:
    """Remark on what in a data set may make scores say less than they seem to."""
    remarks = list(_group_remarks(dataset))
    for found in inspect(dataset):
        where = "" if found.part.task is None else f"Task {found.part.task}: "
        ordered = order_remark(found.part, plan)
        told = [*_column_remarks(found, dataset), *copy_remarks(found, dataset, plan), *([ordered] if ordered else [])]
        remarks += [f"{where}{remark}" for remark in told]
    arranged = arrangement_remark(dataset)
    return [*remarks, *([arranged] if arranged else [])]


def questions_scores(remark: str) -> bool:
    """Whether a remark on the data gives a reason to distrust scores or the ranking, and so asks for an action."""
    return _CONSTANT not in remark


def scale_remarks(dataset: Dataset, scaling: str | None) -> Iterator[str]:
    """Remark on columns of a table, a task or modalities that ``dataset.scaling`` leaves at different scales."""
    for part in parts(dataset) if scaling in ("unit", "none") else ():
        if part.image or dataset.layout.is_image:
            continue
        with np.errstate(over="ignore", invalid="ignore"):  # squares of values near the end of the range
            spreads = np.concatenate([block.std(axis=0, dtype=np.float64) for _, block in part.columns()])
        start = dataset.feature_names.index(part.names[0])
        moving = ~dataset.constant[start : start + len(part.names)]
        widest, narrowest = np.argmax(spreads), np.argmin(np.where(moving, spreads, np.inf))
        ratio = spreads[widest] / spreads[narrowest] if moving.any() else 1.0
        if ratio > _SPREADS:
            where = "" if part.task is None else f"Task {part.task}: "
            yield (
                f"{where}The columns' standard deviations differ by a factor of {ratio:.3g} "
                f"('{part.own_name(int(widest))}' to '{part.own_name(int(narrowest))}'), which dataset.scaling "
                f"{scaling} leaves: if the columns have different units, the ranking is by their unit; set "
                f"{dataset.layout.default_scaling}."
            )


def _group_remarks(dataset: Dataset) -> Iterator[str]:
    """Remark on groups that keep nothing together."""
    if dataset.groups is not None and len(np.unique(dataset.groups)) == dataset.n_samples:
        yield "Each sample is a group of its own, so cv.groups keeps none together: it may name an identifier."


def _column_remarks(found: Findings, dataset: Dataset) -> Iterator[str]:
    """Remark on single columns; on each column once."""
    part = found.part
    leaking = leaking_columns(found, dataset)
    for column, words in list(leaking.items())[:_NAMED]:
        yield f"Column '{part.own_name(column)}' {words}; a study refuses it unless dataset.keep names it."
    left = {column: kind for column, kind in found.by_row.items() if column not in leaking}
    kinds = {column: relation.kind for column, relation in found.by_label.items() if column not in leaking}
    groups = [column for column, kind in left.items() if kind == "group"]
    whole = [c for c, kind in kinds.items() if kind == "owned" and c not in groups and _may_name_groups(found, c)]
    if (groups or whole) and dataset.groups is None:
        names = _named(found, [*groups, *whole])
        yield (
            f"{names} {_has(groups + whole)} a few samples a value, as the subject of each sample has: if samples of "
            "one value belong together, name the column in cv.groups; if it is no feature, in dataset.drop."
        )
    if numbers := [column for column, kind in left.items() if kind == "identifier"]:
        yield (
            f"{_named(found, numbers)} {_has(numbers)} another whole number in each row: drop what is an identifier "
            "(dataset.drop)."
        )
    coarse = [column for column, kind in kinds.items() if kind == "constant_in_class" and left.get(column) != "group"]
    if ordered := [c for c, kind in left.items() if kind == "in_file_order" and c not in coarse]:
        yield (
            f"{_named(found, ordered)} {_has(ordered)} values that rise or fall with the order of the rows, while the "
            "labels stand in runs: drop what tells the order of the file (dataset.drop)."
        )
    said = {*left, *leaking}
    separating = [column for column, kind in kinds.items() if kind == "separates" and column not in said]
    if separating:
        yield (
            f"{_named(found, separating)} {'separates' if len(separating) == 1 else 'separate'} the classes alone, "
            "by thresholds and without an error: make sure that the values were known before the label was."
        )
    determining = [column for column, kind in kinds.items() if kind == "determines" and column not in said]
    if determining:
        yield (
            f"{_named(found, determining)} {'tells' if len(determining) == 1 else 'tell'} "
            f"{'one label' if part.y.ndim == 2 else 'the classes'} alone, without an error: make sure that the values "
            "were known before the label was."
        )
    if coarse:
        yield (
            f"{_named(found, coarse)} {_has(coarse)} one value in each class: make sure that the values were known "
            "before the label was."
        )
    for near in found.near_label[:_NAMED]:
        names = "' and '".join(part.own_name(column) for column in near.columns)
        which, together = ("Column", "alone tells") if len(near.columns) == 1 else ("The columns", "together tell")
        others = f", of the next column alone {near.next_error:.1%}" if near.next_error is not None else ""
        yield (
            f"{which} '{names}' {together} the classes with a mean error of {near.error:.1%} on held-out samples"
            f"{others}: make sure that the values were known before the label was; if not, list "
            f"{'it' if len(near.columns) == 1 else 'them'} in dataset.drop."
        )
    constant = np.flatnonzero(_constant(found, dataset)).tolist()
    if constant:
        some = ", e.g. " if len(constant) > _NAMED else ": "
        yield f"{_of_all(found, constant)} {_CONSTANT}{some}{_names(found, constant)}."


def _may_name_groups(found: Findings, column: int) -> bool:
    """Return whether a column whose values have one class each may number subjects."""
    # It has whole numbers, two or more samples a value, and is unlike most other columns: not half to twice as many
    # values.
    part, n_values = found.part, found.by_label[column].n_values
    values = part.X[:, column]
    if part.image or 2 * n_values > len(values) or (values != np.floor(values)).any():
        return False
    alike = (n_values <= 2 * found.n_values) & (found.n_values <= 2 * n_values)
    return bool(alike.mean() <= 0.5)


def _constant(found: Findings, dataset: Dataset) -> np.ndarray:
    """Mask of the constant columns of a part."""
    if found.part.task is None:
        return dataset.constant
    start = dataset.feature_names.index(found.part.names[0])
    return dataset.constant[start : start + len(found.part.names)]


def _names(found: Findings, columns: Sequence[int]) -> str:
    return ", ".join(found.part.own_name(column) for column in columns[:_NAMED])


def _named(found: Findings, columns: Sequence[int]) -> str:
    if len(columns) == 1:
        return f"Column '{_names(found, columns)}'"
    example = "e.g. " if len(columns) > _NAMED else ""
    return f"{len(columns)} columns ({example}{_names(found, columns)})"


def _has(columns: Sequence[int]) -> str:
    return "has" if len(columns) == 1 else "have"


def _of_all(found: Findings, columns: Sequence[int]) -> str:
    return f"{len(columns)} of {len(found.part.names)} columns {'is' if len(columns) == 1 else 'are'}"
