"""Columns of a data file before anything is chosen from them, and the file of labels beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raysel.arrays import LabelArray
from raysel.data.formats.array_files import ARRAY_SUFFIXES, open_arrays
from raysel.data.formats.column_names import FURTHER_ARRAYS, names_origin
from raysel.data.formats.files import as_labels, find_data_file
from raysel.data.formats.named_arrays import likely_label_arrays
from raysel.data.formats.tables.contents import METADATA_KEY
from raysel.data.formats.tables.reader import TABLE_SUFFIXES, open_table
from raysel.data.formats.volumes import is_nifti
from raysel.errors import DataError

#: Names, without suffix, of files of labels beside an array of samples.
_LABEL_FILES = ("y", "Y", *FURTHER_ARRAYS)
_LABEL_SUFFIXES = (".npy", ".csv", ".txt")


def read_columns(path: str | Path) -> Any:
    """Open the table in a data file, without those columns that the file itself marks as an index."""
    if Path(path).suffix.lower() not in TABLE_SUFFIXES:
        return None
    table, _ = open_table(find_data_file(path))
    if METADATA_KEY in (table.schema.metadata or {}):
        return None
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if isinstance(name, str) and name in table.column_names])


def arrays_of_origin(path: str | Path, n_samples: int) -> dict[str, LabelArray]:
    """Read the arrays of a file that tell by their names which samples are of one origin."""
    found: dict[str, LabelArray] = {}
    if Path(path).suffix.lower() not in ARRAY_SUFFIXES:
        return found
    with open_arrays(find_data_file(path)) as file:
        for name in filter(names_origin, file.names):
            values = as_labels(np.asarray(file.get(name)))
            if values.shape == (n_samples,) and len(np.unique(values)) < n_samples:
                found[name] = values
    return found


def only_label_array(path: str | Path) -> str | None:
    """Return the one array of a file that may be the labels by its values, if none is by its name."""
    if Path(path).suffix.lower() not in ARRAY_SUFFIXES:
        return None
    with open_arrays(find_data_file(path)) as file:
        likely = [name for name in likely_label_arrays(file) if not names_origin(name)]
    return likely[0] if len(likely) == 1 else None


def labels_beside(path: str | Path) -> Path | None:
    """Return the file of labels that stands beside an array of samples, by its name."""
    path = Path(path)
    if path.suffix.lower() != ".npy":
        return None
    stems = [*_LABEL_FILES, *(f"{path.stem}_{name}" for name in _LABEL_FILES)]
    if path.stem.startswith("X"):
        stems.insert(0, f"y{path.stem[1:]}")
    elif path.stem.endswith("_X"):
        stems.insert(0, f"{path.stem[:-1]}y")
    for stem in stems:
        for suffix in _LABEL_SUFFIXES:
            candidate = path.with_name(stem + suffix)
            if candidate != path and _exists(candidate):
                return candidate
    return None


def mask_beside(path: str | Path) -> Path:
    """Return the mask of a table of NIfTI files: the one NIfTI file in its folder that is called a mask."""
    found = sorted(p for p in Path(find_data_file(path)).parent.iterdir() if "mask" in p.name.lower() and is_nifti(p))
    if len(found) != 1:
        there = f"{len(found)} files called so are" if found else "none is"
        raise DataError(
            f"{path} is a table of NIfTI files, of which the voxels of a mask are the features, and {there} beside it: "
            "name the mask by --mask (mask= in Python)."
        )
    return found[0]


def _exists(path: Path) -> bool:
    try:
        find_data_file(path)
    except DataError:
        return False
    return True
