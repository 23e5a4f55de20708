"""Readers of files of named arrays, NumPy's .npz and MATLAB's .mat, without unpickling."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from raysel.arrays import LabelArray
from raysel.data.formats.files import RawData, ReadOptions, as_labels, missing, reading
from raysel.data.formats.mat5 import plain_variables
from raysel.data.layouts import Modalities
from raysel.errors import DataError

# Common names of the features and of the labels; those of raysel first.
_X_NAMES = ("X", "fea")
_Y_NAMES = ("y", "Y", "gnd")


def read_npz(path: Path, options: ReadOptions) -> RawData:
    """Read the arrays X and y of a NumPy archive.

    Parameters
    ----------
    path : Path
        Path of an .npz file.
    options : ReadOptions
        Names of the labels and the groups, and whatever else the format needs.

    Returns
    -------
    RawData
        Content of the file.

    Raises
    ------
    DataError
        If the file is damaged, holds pickled objects, or lacks an array.
    """
    with reading(path, "a NumPy archive (.npz)"):
        if not zipfile.is_zipfile(path):
            raise DataError(
                f"{path} is not a complete .npz archive: it is truncated or of another format; write it again."
            )
        with np.load(path, allow_pickle=False) as archive:

            def get(name: str) -> Any:
                try:
                    return _checked_text(archive[name])
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise DataError(
                        f"{path}: the array {name} holds pickled Python objects, which raysel does not load; "
                        "save it as numbers or text, e.g. y.astype(str)."
                    ) from error

            return _contents(path, archive.files, get, options)


def read_mat(path: Path, options: ReadOptions) -> RawData:
    """Read X and y (also called fea, Y, gnd) of a MATLAB file of version 7 or older.

    Images that MATLAB stored as rows of a matrix are in column-major order, so that they appear transposed if they
    are reshaped in C order.

    Parameters
    ----------
    path : Path
        Path of a .mat file.
    options : ReadOptions
        Names of the labels and the groups, and whatever else the format needs.

    Returns
    -------
    RawData
        Content of the file.

    Raises
    ------
    DataError
        If the file is damaged, of version 7.3, or lacks a variable.
    """
    with reading(path, "a MATLAB file (.mat)"):
        with path.open("rb") as file:
            start = file.read(520)
        if start.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in start:
            raise DataError(f"{path} is a MATLAB 7.3 (HDF5) file; save it again with save(..., '-v7').")
        plain = plain_variables(path) if scipy.io.matlab.matfile_version(path)[0] == 1 else None
        matrices = None if plain is None else [name for name, is_matrix in plain.items() if is_matrix]
        variables = scipy.io.loadmat(path, variable_names=matrices)

        def get(name: str) -> Any:
            if name not in variables:
                raise DataError(f"{path}: {name} is a cell array or a struct; save it as a matrix of numbers.")
            return _dense(variables[name])

        names = variables if plain is None else plain
        return _contents(path, [name for name in names if name and not name.startswith("__")], get, options)


def _checked_text(values: Any) -> Any:
    """Return the values; raise ValueError for text with invalid code points, which Python cannot write."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        points = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).view(np.uint32)
        if np.any((points > 0x10FFFF) | (points >= 0xD800) & (points < 0xE000)):
            raise ValueError("text with invalid Unicode code points")
    return values


def _dense(values: Any) -> Any:
    if getattr(values, "format", "") == "csc":
        # SciPy would access memory outside the arrays by a damaged index. check_format checks nothing if the last
        # of the column starts is 0, because the matrix then counts as empty.
        values.check_format()
        if np.any(np.diff(values.indptr) < 0):
            raise ValueError("the column starts of a sparse matrix decrease")
    return values.toarray() if hasattr(values, "toarray") else values


def _contents(path: Path, names: Collection[str], get: Callable[[str], Any], options: ReadOptions) -> RawData:
    def find(candidates: tuple[str, ...], wanted: str) -> LabelArray:
        name = next((name for name in candidates if name in names), None)
        if name is None:
            raise missing(path, wanted, names)
        return np.asarray(get(name))

    views = _views(path, names, get) if "X" not in names else {}
    X = np.hstack(list(views.values())) if views else find(_X_NAMES, "array X")
    y_names = _Y_NAMES if options.label is None else (options.label,)
    y = as_labels(find(y_names, f"array {y_names[0]}"))
    named = y.ndim == 2 and "label_names" in names
    return RawData(
        X=X,
        y=y,
        groups=None
        if options.groups is None
        else as_labels(find((options.groups,), f"array {options.groups} for the groups")),
        layout=Modalities({name: view.shape[1] for name, view in views.items()}) if views else None,
        label_names=tuple(map(str, np.ravel(get("label_names")))) if named else (),
        label=next(name for name in y_names if name in names),
    )


def _views(path: Path, names: Collection[str], get: Callable[[str], Any]) -> dict[str, LabelArray]:
    """Read the arrays view_0, view_1, ... as a dict by the names in view_names."""
    keys = sorted((n for n in names if re.fullmatch(r"view_\d+", n)), key=lambda name: int(name[5:]))
    if not keys:
        return {}
    titles = [str(title).strip() for title in np.ravel(get("view_names"))] if "view_names" in names else keys
    if len(titles) != len(keys):
        raise DataError(
            f"{path}: view_names holds {len(titles)} names for {len(keys)} arrays view_0, view_1, ...; "
            "give one name for each array."
        )
    views = {key: np.asarray(get(key)) for key in keys}
    for key, view in views.items():
        if view.ndim != 2 or len(view) != len(views[keys[0]]):
            raise DataError(
                f"{path}: {key} has shape {view.shape}; each view must have shape (n, width), with the same n samples."
            )
    if repeated := {title for title in titles if titles.count(title) > 1}:
        raise DataError(f"{path}: view_names holds {min(repeated)} twice; give each modality a different name.")
    return dict(zip(titles, views.values(), strict=True))
