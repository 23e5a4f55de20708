"""Remarks on a data set: what in it may make scores say less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from raysel.data.dataset import Dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.arrangement import arrangement_remark
from raysel.study.inspection.dependence import copy_remarks, order_remark
from raysel.study.inspection.leaks import Findings, inspect, leaking_columns
from raysel.study.inspection.parts import Part, parts

#: Columns whose standard deviations differ by more than this factor probably have different units.
_SPREADS = 10.0
#: Number of columns that a remark names.
_NAMED = 3
#: End of the only remark that questions no score.
_CONSTANT = "constant, which tells nothing of the label"
#: What to make sure of for a column that tells the label.
_KNOWN_BEFORE = "make sure that the values were known before the label was"
_GROUPS = (
    "a few samples a value, as the subject of each sample has: if samples of one value belong together, name the "
    "column in cv.groups; if it is no feature, in dataset.drop."
)
_IDENTIFIER = "another whole number in each row: drop what is an identifier (dataset.drop)."
_IN_FILE_ORDER = (
    "values that rise or fall with the order of the rows, while the labels stand in runs: drop what tells the order of "
    "the file (dataset.drop)."
)
_SEPARATES = f"the classes alone, by thresholds and without an error: {_KNOWN_BEFORE}."
_DETERMINES = f"{{}} alone, without an error: {_KNOWN_BEFORE}."
_IN_CLASS = f"one value in each class: {_KNOWN_BEFORE}."


def data_remarks(dataset: Dataset, plan: NestedPlan | None = None) -> list[str]:
    """Remark on what in a data set may make scores say less than they seem to."""
    remarks = []
    if dataset.groups is not None and len(np.unique(dataset.groups)) == dataset.n_samples:
        remarks.append(
            "Each sample is a group of its own, so cv.groups keeps none together: it may name an identifier."
        )
    for findings in inspect(dataset):
        of_part = [*_column_remarks(findings, dataset), *copy_remarks(findings, dataset, plan)]
        of_part += filter(None, [order_remark(findings.part, plan)])
        remarks += [f"{_where(findings.part)}{remark}" for remark in of_part]
    return [*remarks, *filter(None, [arrangement_remark(dataset)])]


def _where(part: Part) -> str:
    return "" if part.task is None else f"Task {part.task}: "


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
        moving = ~_constant(part, dataset)
        widest, narrowest = np.argmax(spreads), np.argmin(np.where(moving, spreads, np.inf))
        ratio = spreads[widest] / spreads[narrowest] if moving.any() else 1.0
        if ratio > _SPREADS:
            yield (
                f"{_where(part)}The columns' standard deviations differ by a factor of {ratio:.3g} "
                f"('{part.own_name(int(widest))}' to '{part.own_name(int(narrowest))}'), which dataset.scaling "
                f"{scaling} leaves: if the columns have different units, the ranking is by their unit; set "
                f"{dataset.layout.default_scaling}."
            )


def _column_remarks(findings: Findings, dataset: Dataset) -> Iterator[str]:
    """Remark on single columns, and pairs; on each column once."""
    part = findings.part
    leaking = leaking_columns(findings, dataset)
    for column, words in list(leaking.items())[:_NAMED]:
        yield f"Column '{part.own_name(column)}' {words}; a study refuses it unless dataset.keep names it."
    by_row = {column: kind for column, kind in findings.by_row.items() if column not in leaking}
    by_label = {column: relation.kind for column, relation in findings.by_label.items() if column not in leaking}
    label = "one label" if part.y.ndim == 2 else "the classes"
    in_class = [c for c in _of_kind(by_label, "constant_in_class") if by_row.get(c) != "group"]
    groups = _of_kind(by_row, "group")
    groups += [c for c in _of_kind(by_label, "owned") if c not in groups and _may_name_groups(findings, c)]
    for columns, one, several in (
        (groups if dataset.groups is None else [], "has", f"have {_GROUPS}"),
        (_of_kind(by_row, "identifier"), "has", f"have {_IDENTIFIER}"),
        ([c for c in _of_kind(by_row, "in_file_order") if c not in in_class], "has", f"have {_IN_FILE_ORDER}"),
        ([c for c in _of_kind(by_label, "separates") if c not in by_row], "separates", f"separate {_SEPARATES}"),
        (
            [c for c in _of_kind(by_label, "determines") if c not in by_row],
            "tells",
            f"tell {_DETERMINES.format(label)}",
        ),
        (in_class, "has", f"have {_IN_CLASS}"),
    ):
        if columns:
            text = several if len(columns) > 1 else f"{one} {several.partition(' ')[2]}"
            yield f"{_named(findings, columns)} {text}"
    for near in findings.near_label[:_NAMED]:
        names = "' and '".join(part.own_name(column) for column in near.columns)
        alone = len(near.columns) == 1
        others = f", of the next column alone {near.next_error:.1%}" if near.next_error is not None else ""
        yield (
            f"{'Column' if alone else 'The columns'} '{names}' {'alone tells' if alone else 'together tell'} the "
            f"classes with a mean error of {near.error:.1%} on held-out samples{others}: {_KNOWN_BEFORE}; if not, list "
            f"{'it' if alone else 'them'} in dataset.drop."
        )
    constant = np.flatnonzero(_constant(part, dataset)).tolist()
    if constant:
        some = ", e.g. " if len(constant) > _NAMED else ": "
        are = f"{len(constant)} of {len(part.names)} columns {'is' if len(constant) == 1 else 'are'}"
        yield f"{are} {_CONSTANT}{some}{_names(findings, constant)}."


def _of_kind(kinds: Mapping[int, str], kind: str) -> list[int]:
    return [column for column, known in kinds.items() if known == kind]


def _may_name_groups(findings: Findings, column: int) -> bool:
    """Return whether a column whose values have one class each may number subjects."""
    # It has whole numbers, two or more samples a value, and is unlike most other columns: not half to twice as many
    # values.
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


def _names(findings: Findings, columns: Sequence[int]) -> str:
    return ", ".join(findings.part.own_name(column) for column in columns[:_NAMED])


def _named(findings: Findings, columns: Sequence[int]) -> str:
    names = _names(findings, columns)
    example = "e.g. " if len(columns) > _NAMED else ""
    return f"Column '{names}'" if len(columns) == 1 else f"{len(columns)} columns ({example}{names})"
