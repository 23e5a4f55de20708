"""One door for every data set: a built-in name or a file, by its suffix."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from raysel.arrays import LabelArray
from raysel.data.builtin import BUILTIN_NAMES, load_builtin
from raysel.data.dataset import Dataset
from raysel.data.formats.files import RawData, find_data_file
from raysel.data.formats.named_arrays import read_mat, read_npz
from raysel.data.formats.tables import read_arrow, read_csv, read_parquet
from raysel.data.layouts import Layout, Modalities, Tensor
from raysel.data.task_blocks import TaskBlocks
from raysel.errors import ConfigError, DataError
from raysel.plugins import load_plugin, plugin_names

#: Reads a file; the second argument names the array of groups, if any is asked for.
Reader: TypeAlias = Callable[[Path, str | None], RawData]

#: The entry point group in which other packages register readers, each by the suffix of its files without the dot.
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
) -> Dataset:
    """Load a data set from a file, or one of scikit-learn's built-in sets by its name.

    Parameters
    ----------
    path_or_name : str or Path
        digits, iris, wine or breast_cancer, or a file, looked up from the working directory, then
        from ``$RAYSEL_DATA``:

        - .npz and .mat: arrays ``X``, (n, d) or (n, h, w), or one array a modality, ``view_0``,
          ``view_1``, ..., (n, width), with ``view_names``; and ``y``, (n,), or an indicator ``Y``,
          (n, labels), with ``label_names``; also ``fea`` and ``gnd``. Nothing is ever unpickled.
        - .csv, .parquet, .arrow or .feather: a column ``y``, ``label`` or ``target``, or one column
          ``y.<label>`` a label; every other column is a feature, of a modality if all are called
          ``<modality>.<feature>``; or a file written by `save_dataset`;
        - what another package reads that registers a suffix under the entry point ``raysel.readers``.
    shape : sequence of int, default=None
        E.g. [32, 32], where the file does not say how its columns form an image (C order).
    modalities : mapping of str to int, default=None
        Each modality's name and number of columns, in order, where the file does not say.
    groups : str, default=None
        The array or column of the file that says which samples belong together.
    exclude_labels : collection of str, default=()
        Labels of an indicator that are left out.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, lacks a part, or holds what cannot be used.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', 1797 samples x 64 features, 10 classes, Tensor(shape=(8, 8)))
    """
    if path_or_name in BUILTIN_NAMES:
        source = str(path_or_name)
        if groups is not None:
            raise DataError(f"the built-in set {source} has no array '{groups}' for the groups.")
        contents = load_builtin(source)
    else:
        path = _find(path_or_name)
        source = str(path)
        contents = _reader(path.suffix.lower())(path, groups)
    X = contents.X
    if isinstance(X, TaskBlocks):
        if shape is not None or modalities is not None:
            raise DataError(f"{source} holds several tasks, whose shapes it tells: leave shape and modalities out.")
        layout = contents.layout or Tensor(X.shape[1:])
    else:
        if X.ndim < 2 or X.size == 0:
            raise DataError(
                f"{source}: X is {'' if X.size else 'empty, '}of shape {X.shape}; give (n, d), (n, h, w) or more axes, "
                "none empty."
            )
        layout = _layout(X.shape[1:], contents.layout, shape, source)
        if modalities is not None:
            layout = _declared(modalities, X.shape[1:], source)
        X = X.reshape(len(X), math.prod(X.shape[1:]))
        X.flags.writeable = False  # nobody else holds it: the data set may keep it as it is
    y, label_names = _without(contents.y, contents.label_names, exclude_labels, source)
    try:
        return Dataset(
            X=X,
            y=y,
            layout=layout,
            name=contents.name or Path(source).stem,
            groups=contents.groups,
            feature_names=contents.feature_names,
            label_names=label_names,
        )
    except MemoryError as error:
        raise DataError(f"{source} is too large for the memory of this machine: {error}.") from error


def _declared(modalities: Mapping[str, int], sides: tuple[int, ...], source: str) -> Layout:
    layout, n_features = Modalities(modalities), math.prod(sides)
    if layout.n_features != n_features:
        raise DataError(
            f"the modalities {dict(modalities)} have {layout.n_features} columns together, "
            f"but {source} has {n_features} features; the widths must add up to {n_features}."
        )
    return layout


def _without(
    y: LabelArray, names: tuple[str, ...], excluded: Collection[str], source: str
) -> tuple[LabelArray, tuple[str, ...]]:
    """The indicator without the excluded labels."""
    if not excluded:
        return y, names
    if y.ndim != 2:
        raise DataError(f"exclude_labels: the labels of {source} are no indicator; leave these samples out instead.")
    names = names or tuple(str(i) for i in range(y.shape[1]))
    if len(names) != y.shape[1]:
        raise DataError(f"{source}: {y.shape[1]} labels have {len(names)} names; give each label one.")
    for label in excluded:
        if label not in names:
            near = get_close_matches(label, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}."
            raise DataError(f"exclude_labels: {source} has no label {label}; {hint}")
    kept = [i for i, name in enumerate(names) if name not in excluded]
    return y[:, kept], tuple(names[i] for i in kept)


def _find(path_or_name: str | Path) -> Path:
    suffix = Path(path_or_name).suffix.lower()
    if suffix in _READERS or suffix[1:] in plugin_names(GROUP):
        return find_data_file(path_or_name)
    near = get_close_matches(str(path_or_name), BUILTIN_NAMES, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise DataError(
        f"{path_or_name} is neither a built-in set ({', '.join(BUILTIN_NAMES)}) "
        f"nor a file that raysel reads ({', '.join([*_READERS, *(f'.{name}' for name in plugin_names(GROUP))])}).{hint}"
    )


def _reader(suffix: str) -> Reader:
    """The reader of files of a suffix: raysel's own, else another package's."""
    if suffix in _READERS:
        return _READERS[suffix]
    try:
        registered: Reader = load_plugin(GROUP, suffix[1:])
    except ConfigError as error:
        raise DataError(str(error)) from error
    return registered


def _layout(sides: tuple[int, ...], stored: Layout | None, shape: Sequence[int] | None, source: str) -> Layout:
    """The layout that was asked for, if it fits; else the file's; else that of the array's own axes."""
    if shape is None:
        return stored or Tensor(sides)
    asked = Tensor(tuple(shape))
    n_features = math.prod(sides)
    if asked.n_features != n_features:
        raise DataError(
            f"shape {list(shape)} has {asked.n_features} cells, but {source} has {n_features} features; "
            f"the sides must multiply to {n_features}, e.g. {_factor_pairs(n_features)}."
        )
    return asked


def _factor_pairs(number: int) -> str:
    """Up to three ways to write the number as height x width, the squarest first."""
    low = [side for side in range(1, math.isqrt(number) + 1) if number % side == 0]
    return " or ".join(str([side, number // side]) for side in low[:-4:-1])
