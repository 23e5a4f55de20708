"""Arrangement of columns and choice of samples of a file's content, before it is a `Dataset`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from raysel.core.arrays import BoolArray, IntArray, LabelArray
from raysel.core.errors import DataError, suggestion
from raysel.core.printing import listed
from raysel.data.formats.files import Confounds, RawData, matching, without_label
from raysel.data.layouts import Layout, Modalities, Tensor, WithConfounds
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSIFICATION, REGRESSION, Classes, Quantities, Target
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.data.whole_numbers import beyond_floats, rounded_columns

#: What the values of the key ``task`` ask for; an indicator is a classification too.
_TARGETS: dict[str, Target] = {REGRESSION: Quantities(), CLASSIFICATION: Classes()}


def arrange(
    raw: RawData,
    source: str,
    *,
    task: str | None = None,
    shape: Sequence[int] | None = None,
    order: Literal["C", "F"] = "C",
    modes: Sequence[str] | None = None,
    modalities: Mapping[str, int] | None = None,
    only: Collection[str] | None = None,
    classes: Collection[str | int] | None = None,
    exclude_classes: Collection[str | int] = (),
    exclude_labels: Collection[str] = (),
    confounds: Sequence[str] = (),
) -> RawData:
    """Arrange the columns of a file's raw content, and choose samples and labels."""
    if order not in ("C", "F"):
        raise DataError(f"order={order!r} must be 'C', row by row, or 'F', column by column.")
    raw = _apart(raw, confounds)
    raw = _without_missing_labels(_with_target(raw, task), source)
    raw = _exclude(_as_classes(raw, exclude_labels, source), exclude_labels, source)
    raw = _choose_classes(raw, classes, exclude_classes, source)
    X, names, rounded = raw.X, raw.feature_names, raw.rounded
    if isinstance(X, TaskBlocks):
        if shape is not None or modalities is not None or modes is not None or order == "F":
            raise DataError(
                f"{source} holds several tasks and their shapes: leave shape, modes, order and"
                " modalities out."
            )
        layout = raw.layout or Tensor(X.shape[1:])
    else:
        _check_samples(X, source)
        if order == "F":
            _check_order(raw, shape, modalities, source)
        layout = _layout(raw, shape, modalities=modalities, order=order, source=source)
        if modes is not None:
            layout = _with_modes(layout, modes, source)
        if isinstance(X, np.ndarray):
            X = X.reshape(len(X), math.prod(X.shape[1:]))
        if order == "F":
            cells = np.arange(layout.n_features).reshape(layout.shape, order="F").ravel()
            X, names = _columns(X, names, cells)
    if only is not None:
        chosen, layout = _only(only, layout, source)
        X, names = _columns(X, names, chosen)
        left = set(names or layout.default_names())
        rounded = tuple(name for name in rounded if name in left)
    categories = {name: texts for name, texts in raw.categories.items() if name in names}
    if raw.confounds is not None:
        if layout.is_multitask:
            raise DataError(f"{source} holds several tasks, which have no confounds beside them.")
        names = tuple(names or layout.default_names())
        X = np.asarray(X)
        rounded += tuple(names[i] for i in rounded_columns(X))
        X = np.hstack([X.astype(np.float64), raw.confounds.values])
        names = (*names, *raw.confounds.names)
        layout = WithConfounds(layout, len(raw.confounds.names))
        categories |= dict(raw.confounds.categories)
    if isinstance(X, np.ndarray):
        X.flags.writeable = False  # not shared with other code, so that Dataset need not copy it
    notes = (*raw.notes, *beyond_floats(rounded))
    return replace(raw, X=X, layout=layout, feature_names=names, categories=categories, notes=notes)


def _apart(raw: RawData, named: Sequence[str]) -> RawData:
    """Take confounds apart from the features: those named, and those that a file stores so."""
    layout, X = raw.layout, raw.X
    stored = layout is not None and layout.n_beside > 0
    if not isinstance(X, np.ndarray) or X.ndim != 2 or not X.size or not (named or stored):
        return raw
    names = raw.feature_names or tuple((layout or Tensor(X.shape[1:])).default_names())
    places: list[int] = []
    if layout is not None and stored:
        places = list(range(layout.n_features - layout.n_beside, layout.n_features))
    elif layout is None or len(layout.grid) == 1 or layout.is_multimodal:
        places = matching(named, names)
    if not places:
        return raw
    found = tuple(names[i] for i in places)
    texts = {name: raw.categories[name] for name in found if name in raw.categories}
    kept = np.setdiff1d(np.arange(X.shape[1]), places)
    return replace(
        raw,
        X=np.take(X, kept, axis=1),
        layout=layout and _narrowed(layout, kept),
        feature_names=tuple(names[i] for i in kept),
        confounds=Confounds(np.take(X, places, axis=1).astype(np.float64), found, texts),
    )


def _narrowed(layout: Layout, kept: IntArray) -> Layout | None:
    """Layout of some of the columns of a table or of modalities; None for a table."""
    if isinstance(layout, WithConfounds):
        return layout.features
    widths = {name: int(np.isin(kept, np.r_[part]).sum()) for name, part in layout.slices().items()}
    if widths:
        return Modalities({name: width for name, width in widths.items() if width})
    return None


def _check_samples(X: LabelArray | StoredSamples, source: str) -> None:
    """Check that there are samples, with at least one axis."""
    if len(X.shape) < 2 or 0 in X.shape:
        empty = "empty, " if 0 in X.shape else ""
        raise DataError(
            f"{source}: X is {empty}of shape {X.shape}; give a non-empty array of shape (n, d),"
            " (n, h, w) or with more axes."
        )


def _columns(X: Samples, names: tuple[str, ...], columns: IntArray) -> tuple[Any, tuple[str, ...]]:
    if isinstance(X, StoredSamples):
        raise DataError(
            "order and only choose columns, and the samples stay in their file: leave in_memory"
            " out."
        )
    return np.take(X, columns, axis=1), tuple(names[i] for i in columns) if names else ()


def _check_order(
    raw: RawData, shape: Sequence[int] | None, modalities: Mapping[str, int] | None, source: str
) -> None:
    """Check that samples that are to be read in column-major order have a shape."""
    if modalities is not None or (raw.layout is not None and raw.layout.is_multimodal):
        raise DataError(
            f"order=F: the columns of {source} are those of modalities, which have no rows; leave"
            " it out."
        )
    sides = raw.X.shape[1:]
    if len(sides if shape is None else shape) < 2:
        n_features = math.prod(sides)
        raise DataError(
            f"order=F: {source} has {n_features} columns, and how many rows a sample has is not"
            f" known; give shape, height first, e.g. {_factor_pairs(n_features)}. Or leave order"
            " out."
        )


def _with_target(raw: RawData, task: str | None) -> RawData:
    """Set the target that a task is for."""
    if task is None:
        return raw
    if task not in _TARGETS:
        raise DataError(f"task={task!r} must be {' or '.join(_TARGETS)}.")
    if raw.target is not None and raw.target.task == task:
        return raw
    return replace(raw, target=_TARGETS[task])


def _without_missing_labels(raw: RawData, source: str) -> RawData:
    """Leave out the samples of which a label or a quantity is missing, and say how many."""
    y = np.asarray(raw.y)
    if y.dtype.kind != "f" or not y.ndim:
        return raw
    missing = np.isnan(y).any(axis=tuple(range(1, y.ndim)))
    if not missing.any() or isinstance(raw.X, TaskBlocks) or len(raw.X) != len(y):
        return raw
    if missing.all():
        raise DataError(
            f"{source}: no sample has a label; name the column or array of the labels by label."
        )
    kept = ~missing
    note = without_label(np.flatnonzero(missing).tolist(), len(y))
    return replace(
        _rows(replace(raw, y=y), kept),
        notes=(*raw.notes, note),
        n_unlabelled=int(missing.sum()),
    )


def _as_classes(raw: RawData, excluded: Collection[str], source: str) -> RawData:
    """Replace an indicator that has exactly one label for each sample by the classes."""
    # An indicator from a file by `save_dataset`, which stores the data set's name, remains as it
    # is.
    y = np.asarray(raw.y)
    if (
        (raw.target is not None and not raw.target.is_of_classes)
        or raw.name is not None
        or y.ndim != 2
        or y.shape[1] < 2
        or y.dtype.kind not in "biuf"
        or not y.size
    ):
        return raw
    ones = y == 1
    if (ones.sum(axis=1) != 1).any():
        return raw
    if not (np.isin(y, (0, 1)).all() or np.isin(y, (-1, 1)).all()):
        return raw
    names = _label_names(raw, source)
    if excluded:
        raise DataError(
            f"exclude_labels: y of {source} has exactly one label in each row, so that its"
            f" {y.shape[1]} columns are classes; use exclude_classes."
        )
    columns = ones.argmax(axis=1)
    classes = np.array(names)[columns] if raw.label_names else columns
    note = (
        f"y of shape {y.shape} has exactly one 1 in each row and is used as classes, one for each"
        " column"
    )
    return replace(raw, y=classes, label_names=(), notes=(*raw.notes, note))


def _label_names(raw: RawData, source: str) -> tuple[str, ...]:
    """Names of the columns of an indicator: those of the file, or else their numbers."""
    n_labels = raw.y.shape[1]
    names = raw.label_names or tuple(map(str, range(n_labels)))
    if len(names) != n_labels:
        raise DataError(
            f"{source}: {n_labels} labels have {len(names)} names; give one name for each label."
        )
    return names


def _check_known(key: str, wanted: Iterable[str], known: Collection[str], what: str) -> None:
    for name in wanted:
        if name not in known:
            raise DataError(f"{key}: {what} {name}; {suggestion(name, known)}")


def _choose_classes(
    raw: RawData,
    classes: Collection[str | int] | None,
    excluded: Collection[str | int],
    source: str,
) -> RawData:
    """Restrict the samples to those of the chosen classes."""
    if classes is None and not excluded:
        return raw
    if raw.y.ndim != 1 or isinstance(raw.X, TaskBlocks):
        raise DataError(
            f"classes and exclude_classes need one label for each sample, which {source} has not."
        )
    values, codes = np.unique(raw.y, return_inverse=True)
    known = [_class_name(value) for value in values]
    for key, wanted in (("classes", classes or ()), ("exclude_classes", excluded)):
        _check_known(key, map(_class_name, wanted), known, f"{source} has no class")
    chosen = set(known)
    if classes is not None:
        chosen = set(map(_class_name, classes))
    chosen -= set(map(_class_name, excluded))
    if len(chosen) < 2:
        left = f"only class {min(chosen)}" if chosen else "no class"
        raise DataError(
            f"classes and exclude_classes leave {left} of {source}; leave two or more of"
            f" {listed(known)}."
        )
    kept = np.array([name in chosen for name in known])[codes]
    return _rows(raw, kept)


def _rows(raw: RawData, kept: BoolArray) -> RawData:
    """Restrict the samples to some."""
    groups = None if raw.groups is None else raw.groups[kept]
    places = {name: values[kept] for name, values in raw.places.items()}
    confounds = None if raw.confounds is None else raw.confounds.of(kept)
    return replace(
        raw, X=raw.X[kept], y=raw.y[kept], groups=groups, places=places, confounds=confounds
    )


def _class_name(value: Any) -> str:
    """Name of a class; that of a whole number is the same for every type of numbers."""
    number = isinstance(value, int | float | np.number | np.bool_) and float(value).is_integer()
    if number:
        return str(int(value))
    return str(value)


def _layout(
    raw: RawData,
    shape: Sequence[int] | None,
    modalities: Mapping[str, int] | None,
    order: str,
    source: str,
) -> Layout:
    """Layout of the given modalities or shape, else that of the file, else of the array's axes."""
    sides = raw.X.shape[1:]
    n_features = math.prod(sides)
    if modalities is not None:
        parts = Modalities(modalities)
        if parts.n_features != n_features:
            raise DataError(
                f"modalities={dict(modalities)} have {parts.n_features} columns in total, but"
                f" {source} has {n_features} features; the numbers of columns must sum to"
                f" {n_features}."
            )
        return parts
    if shape is None and order == "F":
        return Tensor(sides[::-1])
    if shape is None:
        return raw.layout or Tensor(sides)
    layout = Tensor(tuple(shape))
    if layout.n_features != n_features:
        raise DataError(
            f"shape {list(shape)} has {layout.n_features} cells, but {source} has {n_features}"
            f" features; the product of its sides must be {n_features}, e.g."
            f" {_factor_pairs(n_features)}."
        )
    return layout


def _with_modes(layout: Layout, modes: Sequence[str], source: str) -> Tensor:
    """Name the axes of an array."""
    if not isinstance(layout, Tensor):
        raise DataError(
            f"modes name the axes of arrays, and {source} has {layout.noun}: leave modes out."
        )
    return replace(layout, modes=tuple(modes))


def _only(only: Collection[str], layout: Layout, source: str) -> tuple[IntArray, Layout]:
    """Columns of the named modalities in their order in the file, and their layout."""
    widths = layout.parameters().get("modalities")
    if widths is None:
        raise DataError(
            f"only={list(only)}: {source} has no modalities; leave only out, or name its"
            " modalities."
        )
    _check_known("only", only, widths, f"{source} has no modality")
    kept = Modalities({name: width for name, width in widths.items() if name in only})
    slices = layout.slices()
    return np.concatenate([np.r_[slices[name]] for name in kept.modalities]), kept


def _exclude(raw: RawData, excluded: Collection[str], source: str) -> RawData:
    """Remove the excluded labels from an indicator and from its names."""
    if not excluded:
        return raw
    if raw.y.ndim != 2:
        raise DataError(
            f"exclude_labels requires an indicator, but y of {source} has one label for each"
            " sample; remove the samples of these labels from the file instead."
        )
    names = _label_names(raw, source)
    _check_known("exclude_labels", excluded, names, f"{source} has no label")
    remaining = [i for i, name in enumerate(names) if name not in excluded]
    return replace(raw, y=raw.y[:, remaining], label_names=tuple(names[i] for i in remaining))


def _factor_pairs(number: int) -> str:
    """Up to three factorisations of a number as height x width, the closest to a square first."""
    heights = [side for side in range(1, math.isqrt(number) + 1) if number % side == 0]
    return " or ".join(str([side, number // side]) for side in heights[:-4:-1])
