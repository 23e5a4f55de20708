"""Files of named arrays: NumPy's .npz and MATLAB's .mat, never unpickled."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from raysel.arrays import LabelArray
from raysel.data.formats.files import RawData, as_labels, missing, reading
from raysel.data.formats.mat5 import plain_variables
from raysel.data.layouts import Modalities
from raysel.errors import DataError

# Names in common use for the features and for the labels; the first is ours.
_X_NAMES = ("X", "fea")
_Y_NAMES = ("y", "Y", "gnd")


def read_npz(path: Path, groups: str | None) -> RawData:
    """Read arrays X and y of a NumPy archive.

    Parameters
    ----------
    path : Path
    groups : str or None
        The array that holds the sample groups.

    Returns
    -------
    RawData

    Raises
    ------
    DataError
        If the file is broken, holds pickled objects, or lacks an array.
    """
    with reading(path, "a NumPy archive (.npz)"):
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path} is no whole .npz archive: it is cut short or of another kind; write it again.")
        with np.load(path, allow_pickle=False) as archive:

            def get(name: str) -> Any:
                try:
                    return _checked_text(archive[name])
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise DataError(
                        f"{path}: the array {name} holds pickled Python objects, which raysel never loads; "
                        "save it as numbers or text, e.g. y.astype(str)."
                    ) from error

            return _contents(path, archive.files, get, groups)


def read_mat(path: Path, groups: str | None) -> RawData:
    """Read X and y (also called fea, Y, gnd) of a MATLAB file of version 7 or older.

    Images that MATLAB stored as rows of a matrix are in its column order: transposed, once reshaped here.

    Parameters
    ----------
    path : Path
    groups : str or None
        The variable that holds the sample groups.

    Returns
    -------
    RawData

    Raises
    ------
    DataError
        If the file is broken, of version 7.3, or lacks a variable.
    """
    with reading(path, "a MATLAB file (.mat)"):
        with path.open("rb") as file:
            start = file.read(520)
        if start.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in start:
            raise DataError(f"{path} is a MATLAB 7.3 (HDF5) file; save it again with save(..., '-v7').")
        plain = plain_variables(path) if scipy.io.matlab.matfile_version(path)[0] == 1 else None
        wanted = None if plain is None else [name for name, readable in plain.items() if readable]
        variables = scipy.io.loadmat(path, variable_names=wanted)

        def get(name: str) -> Any:
            if name not in variables:
                raise DataError(f"{path}: {name} is a cell array or a struct; save it as a matrix of numbers.")
            return _dense(variables[name])

        names = variables if plain is None else plain
        return _contents(path, [name for name in names if name and not name.startswith("__")], get, groups)


def _checked_text(values: Any) -> Any:
    """The same, unless it is text with code points that are no characters, which Python cannot hold or write."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        points = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).view(np.uint32)
        if np.any((points > 0x10FFFF) | (points >= 0xD800) & (points < 0xE000)):
            raise ValueError("text of what are no characters")
    return values


def _dense(values: Any) -> Any:
    if getattr(values, "format", "") == "csc":
        # A damaged index would otherwise be followed, out of the memory; where the last of the column starts is 0,
        # SciPy takes the matrix for empty and looks no further.
        values.check_format()
        if np.any(np.diff(values.indptr) < 0):
            raise ValueError("a sparse matrix whose columns end before they start")
    return values.toarray() if hasattr(values, "toarray") else values


def _contents(path: Path, names: Collection[str], get: Callable[[str], Any], groups: str | None) -> RawData:
    def find(candidates: tuple[str, ...], wanted: str) -> LabelArray:
        name = next((name for name in candidates if name in names), None)
        if name is None:
            raise missing(path, wanted, names)
        return np.asarray(get(name))

    views = _views(path, names, get) if "X" not in names else {}
    X = np.hstack(list(views.values())) if views else find(_X_NAMES, "array X")
    y = as_labels(find(_Y_NAMES, "array y"))
    named = y.ndim == 2 and "label_names" in names
    return RawData(
        X=X,
        y=y,
        groups=None if groups is None else as_labels(find((groups,), f"array {groups} for the groups")),
        layout=Modalities({name: view.shape[1] for name, view in views.items()}) if views else None,
        label_names=tuple(map(str, np.ravel(get("label_names")))) if named else (),
    )


def _views(path: Path, names: Collection[str], get: Callable[[str], Any]) -> dict[str, LabelArray]:
    """The arrays view_0, view_1, ... by the names that view_names gives them."""
    keys = sorted((n for n in names if re.fullmatch(r"view_\d+", n)), key=lambda name: int(name[5:]))
    if not keys:
        return {}
    titles = [str(title).strip() for title in np.ravel(get("view_names"))] if "view_names" in names else keys
    if len(titles) != len(keys):
        raise DataError(f"{path}: view_names holds {len(titles)} names for {len(keys)} arrays view_0, view_1, ...")
    views = {key: np.asarray(get(key)) for key in keys}
    for key, view in views.items():
        if view.ndim != 2 or len(view) != len(views[keys[0]]):
            raise DataError(
                f"{path}: {key} has shape {view.shape}; each view must be (n, width), and all of the same n samples."
            )
    if twice := {title for title in titles if titles.count(title) > 1}:
        raise DataError(f"{path}: view_names names {min(twice)} twice; give each modality a name of its own.")
    return dict(zip(titles, views.values(), strict=True))
