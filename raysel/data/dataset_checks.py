"""Validation of the parts of a data set, and their conversion to the types it stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import quoted
from raysel.data.layouts import SEPARATOR, Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.table_rows import TableRows
from raysel.data.targets import Target, checked_labels, choose_target
from raysel.data.task_blocks import Samples, TaskBlocks, as_task_blocks, iter_parts, read_only
from raysel.data.whole_numbers import beyond_floats, rounded_columns


def validated_parts(
    X: ArrayLike | Samples,
    y: ArrayLike,
    layout: Layout,
    name: str,
    groups: ArrayLike | None,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    unprepared: bool,
    label: str | None = None,
    notes: Sequence[str] = (),
    target: Target | str | None = None,
    places: Mapping[str, ArrayLike] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Check the parts of a data set against each other, and convert them."""
    where, what = f"data set '{name}'", "y" if label is None else f"the label {quoted(label)}"
    given = X
    if not isinstance(X, StoredSamples | TableRows | TaskBlocks):
        X = _checked_features(np.asarray(X), where)
    names = tuple(map(str, feature_names)) or tuple(layout.default_names())
    chosen = choose_target(np.asarray(y), target, where)
    y, note = chosen.convert(np.asarray(y), where, what, is_asked=target is not None)
    if note and note not in notes:
        notes = (*notes, note)
    groups = None if groups is None else checked_labels(np.asarray(groups), f"{where}: groups")
    if layout.n_features != X.shape[1]:
        raise DataError(
            f"{where}: X has {X.shape[1]} columns, but the layout {layout!r} has"
            f" {layout.n_features} features."
        )
    _check_names(names, X.shape[1], where)
    if isinstance(X, np.ndarray):
        notes = (*notes, *beyond_floats([names[i] for i in rounded_columns(np.asarray(given))]))
    where_measured = {name: np.asarray(at, dtype=np.float64) for name, at in (places or {}).items()}
    for part, values in (("y", y), ("groups", groups), *where_measured.items()):
        if values is not None and len(values) != len(X):
            raise DataError(
                f"{where}: X has {len(X)} rows but {part} has {len(values)}; give one value for"
                " each sample of X, (n, d) or (n, h, w)."
            )
    if groups is not None and groups.ndim != 1:
        raise DataError(
            f"{where}: groups has shape {groups.shape}; give one value for each sample."
        )
    chosen.check(y, where, what)
    if isinstance(X, TaskBlocks) != layout.is_multitask:
        raise DataError(
            f"{where}: X is of type {type(X).__name__} and the layout is {layout!r}; the layout"
            " Tasks requires TaskBlocks (see TaskBlocks.from_dense), every other layout requires"
            " an array."
        )
    if isinstance(X, TaskBlocks):
        if not chosen.is_one_class:
            raise DataError(
                f"{where}: several tasks need one label for each sample, not {chosen.one}."
            )
        _check_tasks(as_task_blocks(X, layout), y, layout, where)
    incomplete = _check_finite(X, names, where, unprepared=unprepared)
    texts = _checked_categories(categories, X, names, where, unprepared=unprepared)
    return {
        "X": X,
        "y": y,
        "groups": groups,
        "feature_names": names,
        "label_names": chosen.column_names(label_names, y, where),
        "notes": tuple(notes),
        "categories": texts,
        "unprepared": incomplete or bool(texts),
        "target": chosen,
        "places": where_measured,
    }


def _checked_features(X: np.ndarray, where: str) -> FloatArray:
    if X.dtype.kind not in "biuf":
        raise DataError(f"{where}: X has dtype {X.dtype}; give an array of real numbers.")
    if X.ndim != 2:
        raise DataError(f"{where}: X has shape {X.shape}; give (n_samples, n_features).")
    if X.size == 0:
        raise DataError(
            f"{where}: X is empty (shape {X.shape}); give at least one sample and one feature."
        )
    return read_only(np.ascontiguousarray(X, dtype=np.float64), X)


def _check_names(names: tuple[str, ...], n_features: int, where: str) -> None:
    if len(names) != n_features:
        raise DataError(
            f"{where}: there are {len(names)} feature names for {n_features} columns of X; give one"
            " each."
        )
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise DataError(
            f"{where}: {times} features are called '{name}'; give each feature a different name."
        )


def _check_tasks(X: TaskBlocks, y: LabelArray, layout: Layout, where: str) -> None:
    """Check that each task has at least two classes, with the task's name as prefix."""
    for i, name in enumerate(layout.task_names):
        classes = np.unique(y[X.tasks == i])
        if len(classes) < 2:
            content = f"one class only ({classes[0]!s})" if len(classes) else "no samples"
            raise DataError(
                f"{where}: task {name!r} holds {content}; every task needs at least two classes."
            )
        if invalid := [
            label for label in classes if not str(label).startswith(f"{name}{SEPARATOR}")
        ]:
            raise DataError(
                f"{where}: task {name!r} has the label {invalid[0]!s}; write"
                f" '{name}{SEPARATOR}{invalid[0]!s}', so that equal labels of two tasks remain"
                " different."
            )


def _check_finite(X: Samples, names: tuple[str, ...], where: str, *, unprepared: bool) -> bool:
    """Check that X is finite, or NaN if it is unprepared; return whether it holds NaN."""
    infinite, what = (np.isinf, "infinite") if unprepared else (_is_not_finite, "NaN or infinite")
    if isinstance(X, StoredSamples):
        _check_stored(X, names, where)
        return False
    places = []
    for rows, columns, block in iter_parts(X):
        i, j = np.nonzero(infinite(block))
        places.append(np.stack([rows[i], columns.start + j], axis=1))
    bad = np.concatenate(places)
    if len(bad):
        row, column = min(bad.tolist())
        raise DataError(
            f"{where}: X holds {len(bad)} values that are {what}, the first in row {row}, column"
            f" {column} (feature '{names[column]}', counted from 0). Remove these samples, or fill"
            " NaN within the folds by dataset.prepare: [{impute: median}]."
        )
    return unprepared and any(bool(np.isnan(block).any()) for _, _, block in iter_parts(X))


def _check_stored(X: StoredSamples, names: tuple[str, ...], where: str) -> None:
    """Check that samples that stay in their file are finite."""
    if np.isfinite([X.summary.smallest, X.summary.largest]).all():
        return
    for positions, block in X.row_blocks():
        for i, j in np.argwhere(~np.isfinite(block))[:1].tolist():
            raise DataError(
                f"{where}: X holds values that are NaN or infinite, the first in row"
                f" {positions[i]}, column {j} (feature '{names[j]}', counted from 0). Remove these"
                " samples, or leave dataset.in_memory out and fill NaN within the folds by"
                " dataset.prepare: [{impute: median}]."
            )


def _is_not_finite(block: FloatArray) -> np.ndarray:
    return ~np.isfinite(block)


def _checked_categories(
    categories: Mapping[str, Sequence[str]],
    X: Samples,
    names: tuple[str, ...],
    where: str,
    *,
    unprepared: bool,
) -> dict[str, tuple[str, ...]]:
    texts = {str(name): tuple(map(str, values)) for name, values in categories.items()}
    if not texts:
        return {}
    if not unprepared:
        raise DataError(
            f"{where}: '{next(iter(texts))}' holds categories, which only data with unprepared=True"
            " may have."
        )
    for rows, columns, block in iter_parts(X):
        for name in set(names[columns]) & set(texts):
            column = block[:, names.index(name) - columns.start]
            codes = column[~np.isnan(column)]
            n = len(texts[name])
            if len(set(texts[name])) < n or (codes.size and not np.isin(codes, np.arange(n)).all()):
                raise DataError(
                    f"{where}: column '{name}' of {len(rows)} samples has {n} categories; give"
                    " different texts, and for each sample the position of its own, or NaN."
                )
    if unknown := texts.keys() - set(names):
        raise DataError(f"{where}: categories are given for '{min(unknown)}', which is no feature.")
    return texts
