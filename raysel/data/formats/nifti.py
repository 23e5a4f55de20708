"""Reader of tables of NIfTI files, of which the voxels of a mask are the features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.core.printing import listed
from raysel.data.formats.files import RawData, ReadOptions, at_home, is_file
from raysel.data.formats.names import taken_names
from raysel.data.formats.tables.classes import is_text, likely_labels
from raysel.data.formats.tables.columns import labels
from raysel.data.formats.tables.contents import named_columns
from raysel.data.formats.tables.reader import TABLE_SUFFIXES, open_table
from raysel.data.formats.volumes import Volume, is_nifti, read_volume
from raysel.data.layouts import Layout, MaskedVolume

#: Tolerance of two affines: of rounding to single precision and of quaternions, far below the size of a voxel.
_RELATIVE, _ABSOLUTE = 1e-4, 1e-3


def read_nifti_table(path: Path, options: ReadOptions) -> RawData:
    """Read a table with a NIfTI file and a label in each row, and the voxels of a mask in each file.

    The column of the files is the text column whose values all end in .nii or .nii.gz; a relative path is looked up
    from the folder of the table. Columns other than files, labels and groups are left out, which a note says. One
    volume at a time is held in memory besides the features.
    """
    if options.mask is None:
        raise DataError(f"{path} is a table of NIfTI files, which needs a mask; give mask=, a NIfTI file.")
    layout = read_mask(options.mask)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise DataError(f"{path} is no table of NIfTI files; with a mask, give one of {', '.join(TABLE_SUFFIXES)}.")
    table, recognised = open_table(path, options)
    names: list[str] = table.column_names
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{path}: two columns are called '{twice[0]}'; give each column a different name.")
    drop = named_columns(options, Counter(names), str(path))
    files = _file_column(path, table, {options.label, options.groups, *drop})
    label = options.label or _label(path, table, {files, options.groups, *drop})
    y = labels(table, label, str(path))
    groups = None if options.groups is None else labels(table, options.groups, str(path), "groups")
    others = [name for name in names if name not in {files, label, options.groups, *drop}]
    notes = [*recognised, f"the samples are the files in column {files}"]
    if others:
        notes.append(f"columns that are not used: {listed(others)}")
    return RawData(
        X=_voxels(path, labels(table, files, str(path)), layout, options.mask),
        y=y,
        groups=groups,
        layout=layout,
        label=label,
        notes=tuple(notes),
    )


def read_mask(path: Path) -> MaskedVolume:
    """Read the mask of a data set: a NIfTI file whose voxels above 0 are the features."""
    volume = read_volume(path)
    if n := int(np.isnan(volume.values).sum()):
        raise DataError(f"the mask {path} holds NaN in {n} voxels; set them to 0, or to 1 where they are features.")
    inside = volume.values > 0
    if not inside.any():
        raise DataError(f"the mask {path} has no voxel above 0; set the voxels that are features to 1.")
    return MaskedVolume(inside, volume.affine)


def check_grid(path: Path, volume: Volume, layout: Layout, of: str) -> None:
    """Check that a volume has the shape and the affine of a mask."""
    if volume.values.shape != layout.shape:
        raise DataError(
            f"{path} has the shape {volume.values.shape}, but {of} has {layout.shape}; resample one to the other."
        )
    affine = np.asarray(layout.affine)
    if not np.allclose(volume.affine, affine, rtol=_RELATIVE, atol=_ABSOLUTE):
        raise DataError(
            f"{path} has the affine {_rows(volume.affine)}, but {of} has {_rows(affine)}: their voxels lie at "
            "different positions; resample one to the other."
        )


def _rows(affine: LabelArray) -> str:
    return "[" + ", ".join("[" + " ".join(f"{value:.6g}" for value in row) + "]" for row in affine[:3]) + "]"


def _voxels(path: Path, files: LabelArray, layout: MaskedVolume, mask: Path) -> LabelArray:
    """Values of the mask's voxels in each file, shape (n_files, n_features)."""
    what = f"{len(files)} volumes of {layout.n_features} voxels"
    check_data_bytes(path, BYTES_OF_A_NUMBER * len(files) * layout.n_features, what)
    X = np.empty((len(files), layout.n_features))
    for row, (name, values) in enumerate(zip(files.tolist(), X, strict=True)):
        file = path.parent / at_home(name)
        if not is_file(file):
            raise DataError(
                f"{path}: row {row} (counted from 0, without the header) names {name}, but there is no file {file}; "
                "give paths relative to the table's folder, or absolute ones."
            )
        volume = read_volume(file)
        check_grid(file, volume, layout, f"the mask {mask}")
        values[:] = volume.values[layout.mask]
        if n := int((~np.isfinite(values)).sum()):
            raise DataError(
                f"{file} holds NaN or infinity in {n} of the {layout.n_features} voxels of the mask {mask}; leave "
                "these voxels out of the mask, or leave the file out of the table."
            )
    return X


def volume_columns(table: Any, others: Collection[str | None] = ()) -> list[str]:
    """Return the columns, besides some others, whose values all end as names of NIfTI files."""
    texts = [name for name in table.column_names if name not in others and is_text(table.schema.field(name).type)]
    files = {name: [value for value in table.column(name).to_pylist() if value is not None] for name in texts}
    return [name for name, values in files.items() if values and all(is_nifti(value.strip()) for value in values)]


def _file_column(path: Path, table: Any, others: set[str | None]) -> str:
    """Name of the column of the volumes."""
    columns = volume_columns(table, others)
    if len(columns) > 1:
        raise DataError(f"{path}: the columns {' and '.join(columns)} name NIfTI files; keep one, and drop the others.")
    if not columns:
        raise DataError(
            f"{path} has no column of NIfTI files, with names that all end in .nii or .nii.gz; it has the columns "
            f"{listed(table.column_names)}."
        )
    return columns[0]


def _label(path: Path, table: Any, others: set[str | None]) -> str:
    """Name of the labels' column: a usual name, or the only column that is left."""
    left = [name for name in table.column_names if name not in others]
    columns = taken_names(left) or left
    if len(columns) != 1:
        shown = listed(likely_labels(table.select(left)) or left) if left else "no column besides the files"
        raise DataError(f"{path}: which column holds the labels? Give label, the name of one; it has {shown}.")
    return columns[0]
