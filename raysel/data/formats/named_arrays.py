"""Samples and labels among the arrays of a file: .npz, .npy, .mat and HDF5."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import by_number, listed
from raysel.data.formats.array_files import open_arrays
from raysel.data.formats.confounds import read_array_confounds
from raysel.data.formats.files import (
    ArrayFile,
    RawData,
    ReadOptions,
    as_labels,
    matching,
    missing,
)
from raysel.data.formats.labels_file import FileLabels, array_labels, read_labels
from raysel.data.formats.recognition import has_label_name, label_arrays
from raysel.data.formats.sparse_matrices import refuse_sparse_arrays, sparse_matrices
from raysel.data.layouts import Modalities
from raysel.data.whole_numbers import rounded_columns

#: Usual names of the samples; that of raysel first.
_X_NAMES = ("X", "fea")
#: Arrays that are neither samples nor labels.
_NAMES_OF_PARTS = ("view_names", "label_names")
#: A matrix whose rows differ from the labels in number by at most this share is a damaged
#: descriptor.
_FEW_ROWS = 0.1


def read_arrays(path: Path, options: ReadOptions) -> RawData:
    """Read the samples and labels of a file of named arrays.

    The samples are X (or fea); or view_0, view_1, ..., called as ``view_names`` says; or else the
    arrays of numbers with as many rows as there are labels: one such array is X, several matrices
    are modalities. An X whose last axis only is as long as the labels, as MATLAB has images, is
    turned.
    """
    with open_arrays(path) as file:
        return _contents(path, file, options)


def _contents(path: Path, file: ArrayFile, options: ReadOptions) -> RawData:
    x_name = next((name for name in _X_NAMES if name in file.names), None)
    X: LabelArray | None = None
    views: dict[str, LabelArray] = {}
    others: dict[str, LabelArray] = {}
    if x_name is not None:
        X = np.asarray(file.get(x_name))
    else:
        views = _views(path, file)
        others = {} if views else _readable(file)
        if not views and not others:
            raise _without_arrays(path, file)
    if x_name is None and not views:
        _refuse_sparse(path, file, others)
    elif path.suffix.lower() == ".npy" and X is not None and X.ndim == 1:
        refuse_sparse_arrays(path, file.names)
    labels = _labels(path, file, options, _lengths(others or views or {x_name: X}))
    notes: list[str] = []
    if X is not None:
        X, notes = _samples_first(path, str(x_name), X, len(labels.y))
    elif others:
        beside = {labels.label, options.groups} if options.labels is None else set()
        beside |= {name for name in others if matching(options.confounds, [name])}
        views, notes = _parts(path, others, labels, beside)
        if len(views) == 1:
            X, views = next(iter(views.values())), {}
    confounds = None
    if options.confounds:
        arrays = {
            name: array_labels(file.get(name))
            for name in file.names
            if matching(options.confounds, [name])
        }
        confounds = read_array_confounds(arrays, options, len(labels.y), str(path))
    raw = RawData(
        X=np.empty(0) if X is None else X,
        y=labels.y,
        groups=labels.groups,
        label=labels.label,
        notes=tuple(notes),
        confounds=confounds,
    )
    if X is None:
        X, rounded = _joined(views)
        layout = Modalities({name: view.shape[1] for name, view in views.items()})
        raw = replace(raw, X=X, layout=layout, rounded=rounded)
    if labels.y.ndim == 2 and "label_names" in file.names:
        names = np.ravel(file.get("label_names"))
        raw = replace(raw, label_names=tuple(str(name).strip() for name in names))
    return raw


def _joined(views: Mapping[str, LabelArray]) -> tuple[LabelArray, tuple[str, ...]]:
    """Join modalities, and name the columns of those whose integers they do not hold as floats."""
    X = np.hstack(list(views.values()))
    if X.dtype.kind != "f":
        return X, ()
    names = Modalities({name: view.shape[1] for name, view in views.items()}).default_names()
    rounded: list[str] = []
    for view in views.values():
        rounded += [names[column] for column in rounded_columns(view)]
        names = names[view.shape[1] :]
    return X, tuple(rounded)


def _without_arrays(path: Path, file: ArrayFile) -> DataError:
    """Make the error for a file without arrays of numbers or text; that of its first content."""
    for name in file.names:
        try:
            file.get(name)
        except DataError as error:
            return error
    if not file.names:
        return DataError(f"{path} holds no arrays: save X, samples as rows, and y in it.")
    return missing(path, "array of numbers", file.names)


def _refuse_sparse(path: Path, file: ArrayFile, arrays: Mapping[str, LabelArray]) -> None:
    """Refuse a file whose samples are a sparse matrix, by its name or for want of others."""
    sparse = sparse_matrices(file.names)
    parts = {*chain.from_iterable(sparse.values())}
    others = [name for name, values in arrays.items() if values.ndim > 1 and name not in parts]
    if not others or not {"", *_X_NAMES}.isdisjoint(sparse):
        refuse_sparse_arrays(path, file.names)


def _labels(path: Path, file: ArrayFile, options: ReadOptions, n_rows: list[int]) -> FileLabels:
    """Labels and groups, of the file itself or of the file of labels."""
    usual = label_arrays(file.names)
    if options.labels is not None:
        if usual:
            raise DataError(
                f"labels: {path} has labels of its own, the array {usual[0]}; leave labels out, or"
                " remove that array."
            )
        if not n_rows:
            raise missing(path, "array X with a row for each sample, (n, d)", file.names)
        return read_labels(options, n_rows)
    for name, role in ((options.label, "labels"), (options.groups, "groups")):
        if name is not None and name not in file.names:
            raise missing(path, f"array {name} for the {role}", file.names)
    label = options.label
    if label is None and len(usual) == 1:
        label = usual[0]
    if label is None and usual:
        raise DataError(
            f"{path}: the arrays {' and '.join(usual)} may all be the labels; name one of them by"
            " dataset.label."
        )
    if label is None:
        remedy = (
            "Add it, or name a file of labels by dataset.labels, .npy or .csv, with one for each"
            " sample."
        )
        if likely := _likely(_readable(file), n_rows):
            remedy = (
                "Name the array of the labels by dataset.label; it may be"
                f" {' or '.join(likely[:12])}."
            )
        raise missing(path, "array y for the labels", file.names, remedy)
    groups = None if options.groups is None else array_labels(file.get(options.groups))
    return FileLabels(array_labels(file.get(label)), groups, label)


def likely_label_arrays(file: ArrayFile) -> list[str]:
    """Return the arrays that may be the labels by their values, where none is by its name."""
    if label_arrays(file.names):
        return []
    arrays = _readable(file)
    return _likely(arrays, _lengths(arrays))


def _likely(arrays: Mapping[str, LabelArray], n_rows: list[int]) -> list[str]:
    """Arrays of text, or of whole numbers, that repeat, one for each of a number of rows."""
    likely = []
    for name, array in arrays.items():
        values = as_labels(array)
        if values.ndim != 1 or len(values) not in n_rows:
            continue
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            continue
        if 2 <= len(np.unique(values)) < len(values):
            likely.append(name)
    return likely


def _readable(file: ArrayFile) -> dict[str, LabelArray]:
    """The arrays of numbers and text that can be read, unlike cell arrays and pickled objects."""
    arrays = {}
    for name in file.names:
        with suppress(DataError):
            arrays[name] = np.asarray(file.get(name))
    return {
        name: values
        for name, values in arrays.items()
        if values.ndim and values.dtype.kind in "biufUS"
    }


def _lengths(arrays: Mapping[Any, Any]) -> list[int]:
    """Lengths of the first and last axes of arrays with several, the most frequent first."""
    shapes = [values.shape for values in arrays.values() if values.ndim > 1]
    firsts = Counter(shape[0] for shape in shapes)
    ends = chain.from_iterable((shape[0], shape[-1]) for shape in shapes)
    return sorted(dict.fromkeys(ends), key=lambda side: -firsts[side])


def _samples_first(
    path: Path, name: str, X: LabelArray, n_samples: int
) -> tuple[LabelArray, list[str]]:
    """Turn an array whose last axis, and no other, is that of the samples."""
    if X.ndim > 2 and len(X) == X.shape[-1] == n_samples:
        note = (
            f"{name} has {n_samples} entries on its first and last axis; the first is that of the"
            " samples"
        )
        return X, [note]
    if X.ndim < 2 or len(X) == n_samples or n_samples not in X.shape:
        return X, []  # if no axis fits, Dataset refuses it with both lengths
    if X.shape.count(n_samples) > 1 or X.shape[-1] != n_samples:
        raise DataError(
            f"{path}: {name} has shape {X.shape}, and it is open which axis is that of the"
            f" {n_samples} samples; save it with the samples first, (n, h, w)."
        )
    turned = np.ascontiguousarray(np.moveaxis(X, -1, 0))
    return turned, [
        f"{name} of shape {X.shape} has the samples on its last axis; it is used as {turned.shape}"
    ]


def _parts(
    path: Path, arrays: dict[str, LabelArray], labels: FileLabels, beside: set[str | None]
) -> tuple[dict[str, LabelArray], list[str]]:
    """Arrays of numbers with a row for each label, and notes on them and on those left out."""
    n_samples = len(labels.y)
    parts, copies = {}, []
    for name, values in arrays.items():
        numbers = values.dtype.kind in "biuf" and values.ndim > 1 and name not in beside
        if numbers and 0 < abs(len(values) - n_samples) <= _FEW_ROWS * n_samples:
            raise DataError(
                f"{path}: {name} has {len(values)} rows, and there are {n_samples} labels; give it"
                " a row for each sample, or remove it from the file."
            )
        wide = values.dtype.kind in "biuf" and len(values) == n_samples and values.size > n_samples
        if not wide or name in beside:
            continue
        if has_label_name(name) or _recodes(values, labels.y):
            copies.append(name)
        else:
            parts[name] = values
    if not parts:
        raise missing(path, f"array X, nor another array of numbers with {n_samples} rows", arrays)
    shapes = ", ".join(f"{name} {values.shape}" for name, values in parts.items())
    if len(parts) > 1 and any(values.ndim > 2 for values in parts.values()):
        raise DataError(
            f"{path} has no array X, and several may be the samples: {shapes}; call one of them X."
        )
    notes = [f"{shapes} {by_number(len(parts), 'is taken as X', 'are taken as modalities')}"]
    if copies:
        notes.append(f"arrays that repeat the labels are left out: {listed(copies)}")
    used = {*parts, *copies, *beside, *_NAMES_OF_PARTS}
    if others := [name for name in arrays if name not in used]:
        notes.append(f"arrays that are not used: {listed(others)}")
    return parts, notes


def _recodes(values: LabelArray, y: LabelArray) -> bool:
    """Return whether an array holds the labels as one column a class, with one 1 in each row."""
    if values.ndim != 2 or y.ndim != 1 or not np.isin(values[:1], (0, 1)).all():
        return False
    if not (np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all()):
        return False
    columns = values.argmax(axis=1)
    classes, codes = np.unique(y, return_inverse=True)
    pairs = set(zip(columns.tolist(), codes.tolist(), strict=True))
    return len(pairs) == len(classes) == len(np.unique(columns))


def _views(path: Path, file: ArrayFile) -> dict[str, LabelArray]:
    """Read the arrays view_0, view_1, ... as a dict by the names in view_names."""
    keys = sorted(
        (n for n in file.names if re.fullmatch(r"view_\d+", n)), key=lambda name: int(name[5:])
    )
    if not keys:
        return {}
    titles = keys
    if "view_names" in file.names:
        titles = [str(title).strip() for title in np.ravel(file.get("view_names"))]
    if len(titles) != len(keys):
        raise DataError(
            f"{path}: view_names holds {len(titles)} names for {len(keys)} arrays view_0, view_1,"
            " ...; give one name for each array."
        )
    views = {key: np.asarray(file.get(key)) for key in keys}
    for key, view in views.items():
        if view.ndim != 2 or len(view) != len(views[keys[0]]):
            raise DataError(
                f"{path}: {key} has shape {view.shape}; each view must have shape (n, width), with"
                " the same n samples."
            )
    if repeated := {title for title in titles if titles.count(title) > 1}:
        raise DataError(
            f"{path}: view_names holds {min(repeated)} twice; give each modality a different name."
        )
    return dict(zip(titles, views.values(), strict=True))
