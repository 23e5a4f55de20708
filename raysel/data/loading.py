"""Loading of data sets by name or from a file, whose suffix determines the reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.data.builtin import BUILTIN_NAMES, load_builtin
from raysel.data.dataset import Dataset
from raysel.data.formats.files import RawData, find_data_file
from raysel.data.formats.named_arrays import read_mat, read_npz
from raysel.data.formats.tables import read_arrow, read_csv, read_parquet
from raysel.data.layouts import Layout, Modalities, Tensor
from raysel.data.task_blocks import TaskBlocks
from raysel.errors import ConfigError, DataError
from raysel.plugins import load_plugin, plugin_names

#: Function that reads a file; the second argument is the name of the array of groups, or None.
Reader: TypeAlias = Callable[[Path, str | None], RawData]

#: Entry point group in which other packages register readers; the name is the file suffix without the dot.
GROUP = "raysel.readers"

_READERS: dict[str, Reader] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}


def load_dataset(
    path_or_name: str | Path,
    *,
    shape: Sequence[int] | None = None,
    modalities: Mapping[str, int] | None = None,
    groups: str | None = None,
    exclude_labels: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Dataset:
    """Load a data set by name or from a file.

    Parameters
    ----------
    path_or_name : str or Path
        Name of one of scikit-learn's data sets (digits, iris, wine or breast_cancer), or path of a file, relative
        to the working directory or else to ``$RAYSEL_DATA``:

        - .npz and .mat: arrays ``X``, (n, d) or (n, h, w), or an array for each modality, ``view_0``,
          ``view_1``, ..., (n, width), with ``view_names``; and ``y``, (n,), or an indicator ``Y``,
          (n, labels), with ``label_names``; ``fea`` and ``gnd`` are accepted for ``X`` and ``y``. Pickled objects
          are never loaded.
        - .csv, .parquet, .arrow or .feather: a column ``y``, ``label`` or ``target``, or a column
          ``y.<label>`` for each label; every other column is a feature, of a modality if all are called
          ``<modality>.<feature>``; or a file written by `save_dataset`.
        - a suffix that another package registers under the entry point ``raysel.readers``.
    shape : sequence of int, default=None
        Shape of a sample, e.g. [32, 32], whose cells are the columns in C order. None: as stored in the file.
    modalities : mapping of str to int, default=None
        Name of each modality and its number of columns, in column order. None: as stored in the file.
    groups : str, default=None
        Name of the array or column that holds the group of each sample. None: no groups, or those that
        `save_dataset` stored.
    exclude_labels : collection of str, default=()
        Names of the columns of an indicator to exclude.
    only : collection of str, default=None
        Names of the modalities to use; the data set is the one of a file that holds only those, in the file's order.
        None: all.

    Returns
    -------
    Dataset
        The validated data set.

    Raises
    ------
    DataError
        If the file does not exist, cannot be read, lacks an array or column, or holds invalid values.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', 1797 samples x 64 features, 10 classes, Tensor(shape=(8, 8)))
    """
    if path_or_name in BUILTIN_NAMES:
        source = str(path_or_name)
        if groups is not None:
            raise DataError(f"the built-in data set {source} has no array '{groups}' for the groups.")
        contents = load_builtin(source)
    else:
        path = _find(path_or_name)
        source = str(path)
        contents = _reader(path.suffix.lower())(path, groups)
    X = contents.X
    if isinstance(X, TaskBlocks):
        if shape is not None or modalities is not None:
            raise DataError(f"{source} holds several tasks and their shapes: leave shape and modalities out.")
        layout = contents.layout or Tensor(X.shape[1:])
    else:
        if X.ndim < 2 or X.size == 0:
            raise DataError(
                f"{source}: X is {'' if X.size else 'empty, '}of shape {X.shape}; give a non-empty array of shape "
                "(n, d), (n, h, w) or with more axes."
            )
        layout = _layout(X.shape[1:], contents.layout, shape, source)
        if modalities is not None:
            layout = _modalities(modalities, X.shape[1:], source)
        X = X.reshape(len(X), math.prod(X.shape[1:]))
    names = contents.feature_names
    if only is not None:
        columns, layout = _only(only, layout, source)
        X, names = np.take(X, columns, axis=1), tuple(names[i] for i in columns) if names else ()
    if not isinstance(X, TaskBlocks):
        X.flags.writeable = False  # not shared with other code, so that Dataset need not copy it
    y, label_names = _exclude(contents.y, contents.label_names, exclude_labels, source)
    try:
        return Dataset(
            X=X,
            y=y,
            layout=layout,
            name=contents.name or Path(source).stem,
            groups=contents.groups,
            feature_names=names,
            label_names=label_names,
        )
    except MemoryError as error:
        raise DataError(f"{source} is too large for the memory of this machine: {error}.") from error


def _modalities(modalities: Mapping[str, int], sides: tuple[int, ...], source: str) -> Layout:
    layout, n_features = Modalities(modalities), math.prod(sides)
    if layout.n_features != n_features:
        raise DataError(
            f"modalities={dict(modalities)} have {layout.n_features} columns in total, "
            f"but {source} has {n_features} features; the numbers of columns must sum to {n_features}."
        )
    return layout


def _only(only: Collection[str], layout: Layout, source: str) -> tuple[IntArray, Layout]:
    """Columns of the named modalities in their order in the file, and their layout."""
    if not isinstance(layout, Modalities):
        raise DataError(f"only={list(only)}: {source} has no modalities; leave only out, or name its modalities.")
    for name in only:
        if name not in layout.modalities:
            close = get_close_matches(name, layout.modalities, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(layout.modalities)}."
            raise DataError(f"only: {source} has no modality {name}; {hint}")
    kept = Modalities({name: width for name, width in layout.modalities.items() if name in only})
    slices = layout.slices()
    return np.concatenate([np.r_[slices[name]] for name in kept.modalities]), kept


def _exclude(
    y: LabelArray, names: tuple[str, ...], excluded: Collection[str], source: str
) -> tuple[LabelArray, tuple[str, ...]]:
    """Remove the excluded labels from an indicator and from its names."""
    if not excluded:
        return y, names
    if y.ndim != 2:
        raise DataError(
            f"exclude_labels requires an indicator, but y of {source} has one label for each sample; remove the "
            "samples of these labels from the file instead."
        )
    names = names or tuple(str(i) for i in range(y.shape[1]))
    if len(names) != y.shape[1]:
        raise DataError(f"{source}: {y.shape[1]} labels have {len(names)} names; give one name for each label.")
    for label in excluded:
        if label not in names:
            close = get_close_matches(label, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}."
            raise DataError(f"exclude_labels: {source} has no label {label}; {hint}")
    remaining = [i for i, name in enumerate(names) if name not in excluded]
    return y[:, remaining], tuple(names[i] for i in remaining)


def _find(path_or_name: str | Path) -> Path:
    suffix = Path(path_or_name).suffix.lower()
    if suffix in _READERS or suffix[1:] in plugin_names(GROUP):
        return find_data_file(path_or_name)
    close = get_close_matches(str(path_or_name), BUILTIN_NAMES, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    suffixes = [*_READERS, *(f".{name}" for name in plugin_names(GROUP))]
    raise DataError(
        f"{path_or_name} is neither a built-in data set ({', '.join(BUILTIN_NAMES)}) "
        f"nor a file of a known format ({', '.join(suffixes)}).{hint}"
    )


def _reader(suffix: str) -> Reader:
    """Return the reader for a file suffix: raysel's own, or else one of another package."""
    if suffix in _READERS:
        return _READERS[suffix]
    try:
        registered: Reader = load_plugin(GROUP, suffix[1:])
    except ConfigError as error:
        raise DataError(str(error)) from error
    return registered


def _layout(sides: tuple[int, ...], stored: Layout | None, shape: Sequence[int] | None, source: str) -> Layout:
    """Layout of the given shape, or else the one stored in the file, or else that of the array's axes."""
    if shape is None:
        return stored or Tensor(sides)
    layout = Tensor(tuple(shape))
    n_features = math.prod(sides)
    if layout.n_features != n_features:
        raise DataError(
            f"shape {list(shape)} has {layout.n_features} cells, but {source} has {n_features} features; "
            f"the product of its sides must be {n_features}, e.g. {_factor_pairs(n_features)}."
        )
    return layout


def _factor_pairs(number: int) -> str:
    """Up to three factorisations of a number as height x width, the closest to a square first."""
    heights = [side for side in range(1, math.isqrt(number) + 1) if number % side == 0]
    return " or ".join(str([side, number // side]) for side in heights[:-4:-1])
