"""NIfTI files: volumes, masks, and tables of files; nibabel is loaded only here."""

from __future__ import annotations

import gzip
import importlib
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import ConfigError, DataError, RayselError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.core.printing import listed
from raysel.data.formats.columns import labels
from raysel.data.formats.compressed import data_suffix
from raysel.data.formats.confounds import read_table_confounds
from raysel.data.formats.files import RawData, ReadOptions, at_home, is_file, reading
from raysel.data.formats.recognition import is_text, likely_labels, numbered_texts, taken_names
from raysel.data.formats.table_contents import labelled_rows, named_columns
from raysel.data.formats.tables import TABLE_SUFFIXES, open_table
from raysel.data.layouts import Layout, MaskedVolume
from raysel.data.layouts.arrays import ALIGNED, SPACES

#: Suffixes of NIfTI files.
NIFTI_SUFFIXES = (".nii", ".nii.gz")
#: Class of the image by the size of its header in bytes, which begins with it, and where which
#: magic number stands.
_HEADERS = {348: ("Nifti1Image", 344, b"n+1\0"), 540: ("Nifti2Image", 4, b"n+2\0")}
_MOST_CELLS = 2**28  # 2 GiB in double precision; the largest brain images have a third of it
_MOST_OTHER = 2**24  # bytes of header extensions, or behind the voxels
_AXES, _SIDE = 7, 32767  # limits of the format NIfTI-1
_LONGEST = 79  # bytes of the description of a volume
#: Tolerance of two affines: of rounding to single precision and of quaternions, far below the size
#: of a voxel.
_RELATIVE, _ABSOLUTE = 1e-4, 1e-3


@dataclass(frozen=True)
class Volume:
    """Content of a NIfTI file of one volume."""

    #: Values of the voxels, with the slope and the intercept of the file's header applied; shape
    #: (a, b, c).
    values: LabelArray
    #: Map from the indices of a voxel to its position in space; shape (4, 4).
    affine: FloatArray
    #: Unit of the positions; None where the header does not tell where the volume lies.
    unit: str | None = "mm"
    #: Name of the space that the header's code gives; "aligned" if it gives none.
    space: str = ALIGNED


def is_nifti(name: str | Path) -> bool:
    """Return whether the name of a file ends as that of a NIfTI file: in .nii or .nii.gz."""
    return str(name).lower().endswith(NIFTI_SUFFIXES)


def load_nibabel(what: str, kind: type[RayselError] = ConfigError) -> Any:
    """Import nibabel."""
    try:
        return importlib.import_module("nibabel")
    except ImportError as error:
        raise kind(
            f"{what} needs nibabel, which is not installed: pip install 'raysel[neuro]'."
        ) from error


def read_volume(path: Path) -> Volume:
    """Read a NIfTI file of one volume.

    The size that the header claims is compared with that of the file before memory is taken, a
    compressed file is decompressed no further than that size, and its checksum is verified.
    """
    if not is_nifti(path):
        raise DataError(
            f"{path} is no NIfTI file by its name; give one that ends in"
            f" {' or '.join(NIFTI_SUFFIXES)}."
        )
    nibabel = load_nibabel(f"the NIfTI file {path}", DataError)
    with reading(path, "a NIfTI file"):
        compressed = path.name.lower().endswith(".gz")
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            kind, shape, content = _content(nibabel, path, file)
        image = kind.from_bytes(content)
        values = np.asanyarray(image.dataobj).reshape(shape)
        affine = np.asarray(image.affine, dtype=np.float64)
        if not np.isfinite(affine).all():
            raise DataError(
                f"{path} has an affine that holds NaN or infinity; write it again with a valid one."
            )
        return Volume(values, affine, _unit(image.header), _space(image.header))


def _unit(header: Any) -> str | None:
    """Unit of the positions, mm if unnamed; None where both codes of the header are 0."""
    if not (int(header["sform_code"]) or int(header["qform_code"])):
        return None
    return {"meter": "m", "micron": "um"}.get(header.get_xyzt_units()[0], "mm")


def _space(header: Any) -> str:
    """Name of the space of the affine: of the sform, or of the qform where there is no sform."""
    code = "sform_code" if int(header["sform_code"]) else "qform_code"
    name: str = header.get_value_label(code)
    return name if name in SPACES else ALIGNED


def _content(
    nibabel: Any, path: Path, file: IO[bytes] | gzip.GzipFile
) -> tuple[Any, tuple[int, ...], bytes]:
    """Class of the image, shape of its volume, and bytes of the file that its header claims."""
    head = file.read(max(_HEADERS))
    claimed = {int.from_bytes(head[:4], "little"), int.from_bytes(head[:4], "big")}
    size = next(
        (n for n in _HEADERS if n in claimed),
        None,
    )
    name, place, magic = _HEADERS.get(size or 0, ("", 0, b""))
    if size is None or len(head) < size or head[place : place + 4] != magic:
        raise DataError(
            f"{path} cannot be read as NIfTI: it has no valid header; it is damaged or of another"
            " format."
        )
    kind = getattr(nibabel, name)
    header = kind.header_class(head[:size], check=False)
    sides, number = tuple(map(int, header.get_data_shape())), header.get_data_dtype()
    if number.kind not in "biuf":
        raise DataError(
            f"{path} holds values of type {number}, not real numbers; convert them, e.g. to"
            " float32."
        )
    if len(sides) < 3 or min(sides) < 1 or math.prod(sides[3:]) > 1:
        axes = " x ".join(map(str, sides)) or "nothing"
        raise DataError(
            f"{path} holds {axes}; give a file of one volume of three axes for each sample."
        )
    if math.prod(sides) > _MOST_CELLS:
        raise DataError(
            f"{path} claims {math.prod(sides)} voxels; the most that is read is {_MOST_CELLS}."
        )
    check_data_bytes(path, BYTES_OF_A_NUMBER * math.prod(sides), f"a volume of shape {sides}")
    offset = float(header["vox_offset"])
    if not 0 <= offset <= _MOST_OTHER:
        raise DataError(
            f"{path} claims that its voxels begin at byte {offset:g}: its header is damaged."
        )
    needed = int(offset) + math.prod(sides) * number.itemsize
    # Deflate compresses at most about 1030 to 1.
    if path.stat().st_size * (1100 if isinstance(file, gzip.GzipFile) else 1) < needed:
        raise DataError(
            f"{path} is truncated: its header claims {needed} bytes, more than it can hold."
        )
    content = head + file.read(max(0, needed - len(head)))
    if len(content) < needed:
        raise DataError(f"{path} is truncated: it holds {len(content)} of {needed} bytes.")
    left = _MOST_OTHER
    while part := file.read(2**20):  # to the end, where the checksum stands
        left -= len(part)
        if left < 0:
            raise DataError(
                f"{path} holds more bytes than the {needed} of its volume: it is damaged."
            )
    return kind, sides[:3], content


def nifti_content(
    values: LabelArray,
    layout: Layout | None,
    path: str | Path,
    *,
    description: str = "",
    limits: tuple[float, float] = (0.0, 0.0),
) -> bytes:
    """Return the content of a compressed NIfTI-1 file in the space of a layout.

    A viewer shows the values between the limits; two zeros leave the choice to it.
    """
    if not 2 <= values.ndim <= _AXES or max(values.shape) > _SIDE:
        raise ConfigError(
            f"{path} cannot hold an array of shape {values.shape}: NIfTI has 2 to {_AXES} axes of"
            f" up to {_SIDE}."
        )
    nibabel = load_nibabel(f"the file {path}")
    if values.dtype == bool:
        values = values.astype(np.uint8)
    affine = np.eye(4)
    if layout is not None and layout.affine is not None:
        affine = layout.affine
    image = nibabel.Nifti1Image(values, affine)
    header = image.header
    header["descrip"] = description.encode("ascii", "replace")[:_LONGEST]
    header["cal_min"], header["cal_max"] = limits
    if layout is not None and layout.affine is not None:
        _write_space(image, layout)
    return gzip.compress(image.to_bytes(), mtime=0)


def _write_space(image: Any, layout: Layout) -> None:
    """Write the unit and the space of a layout; the code 0 where it lies nowhere."""
    if layout.unit is None:
        image.set_sform(image.affine, 0)
        return
    image.set_sform(image.affine, layout.space)
    image.header.set_xyzt_units({"m": "meter", "um": "micron"}.get(layout.unit, layout.unit))


def read_nifti_table(path: Path, options: ReadOptions) -> RawData:
    """Read a table of NIfTI files and labels, and the voxels of a mask in each file.

    The column of the files is the text column whose values all end in .nii or .nii.gz; a relative
    path is looked up from the folder of the table. Columns other than files, labels, groups and
    confounds are left out, which a note says. One volume at a time is held in memory besides the
    features.
    """
    if options.mask is None:
        raise DataError(
            f"{path} is a table of NIfTI files, which needs a mask; give mask=, a NIfTI file."
        )
    layout = read_mask(options.mask)
    if data_suffix(path) not in TABLE_SUFFIXES:
        raise DataError(
            f"{path} is no table of NIfTI files; with a mask, give one of"
            f" {', '.join(TABLE_SUFFIXES)}."
        )
    table, recognised = open_table(path, options)
    names: list[str] = table.column_names
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"{path}: two columns are called '{twice[0]}'; give each column a different name."
        )
    drop = named_columns(table, options, str(path))
    files = _file_column(path, table, {options.label, options.groups, *drop})
    label = options.label or _label(path, table, {files, options.groups, *drop})
    left_out: tuple[str, ...] = ()
    if options.drop_unlabelled:
        table, left_out = labelled_rows(table, label, files, of="label or no volume")
    y = labels(table, label, str(path))
    groups = None if options.groups is None else labels(table, options.groups, str(path), "groups")
    confounds = read_table_confounds(table, options, str(path))
    used = {files, label, options.groups, *drop, *(confounds.names if confounds else ())}
    others = [name for name in names if name not in used]
    notes = [*recognised, *left_out, f"the samples are the files in column {files}"]
    if others:
        notes.append(f"columns that are not used: {listed(others)}")
    return RawData(
        X=_voxels(path, labels(table, files, str(path)), layout, options.mask),
        y=y,
        groups=groups,
        layout=layout,
        label=label,
        notes=tuple(notes),
        confounds=confounds,
    )


def read_mask(path: Path) -> MaskedVolume:
    """Read the mask of a data set: a NIfTI file whose voxels above 0 are the features."""
    volume = read_volume(path)
    if n := int(np.isnan(volume.values).sum()):
        raise DataError(
            f"the mask {path} holds NaN in {n} voxels; set them to 0, or to 1 where they are"
            " features."
        )
    inside = volume.values > 0
    if not inside.any():
        raise DataError(
            f"the mask {path} has no voxel above 0; set the voxels that are features to 1."
        )
    return MaskedVolume(inside, volume.affine, volume.unit, volume.space)


def check_grid(path: Path, volume: Volume, layout: Layout, of: str) -> None:
    """Check that a volume has the shape and the affine of a mask."""
    if volume.values.shape != layout.shape:
        raise DataError(
            f"{path} has the shape {volume.values.shape}, but {of} has {layout.shape}; resample one"
            " to the other."
        )
    affine = np.asarray(layout.affine)
    if not np.allclose(volume.affine, affine, rtol=_RELATIVE, atol=_ABSOLUTE):
        raise DataError(
            f"{path} has the affine {_rows(volume.affine)}, but {of} has {_rows(affine)}: their"
            " voxels lie at different positions; resample one to the other."
        )


def _rows(affine: LabelArray) -> str:
    return (
        "["
        + ", ".join("[" + " ".join(f"{value:.6g}" for value in row) + "]" for row in affine[:3])
        + "]"
    )


def _voxels(path: Path, files: LabelArray, layout: MaskedVolume, mask: Path) -> LabelArray:
    """Values of the mask's voxels in each file, shape (n_files, n_features)."""
    what = f"{len(files)} volumes of {layout.n_features} voxels"
    check_data_bytes(path, BYTES_OF_A_NUMBER * len(files) * layout.n_features, what)
    X = np.empty((len(files), layout.n_features))
    for row, (name, values) in enumerate(zip(files.tolist(), X, strict=True)):
        file = path.parent / at_home(name)
        if not is_file(file):
            raise DataError(
                f"{path}: row {row} (counted from 0, without the header) names {name}, but there is"
                f" no file {file}. Give paths relative to the table's folder, or absolute ones."
            )
        volume = read_volume(file)
        check_grid(file, volume, layout, f"the mask {mask}")
        values[:] = volume.values[layout.mask]
        if n := int((~np.isfinite(values)).sum()):
            raise DataError(
                f"{file} holds NaN or infinity in {n} of the {layout.n_features} voxels of the mask"
                f" {mask}. Leave these voxels out of the mask, or the file out of the table."
            )
    return X


def volume_columns(table: Any, others: Collection[str | None] = ()) -> list[str]:
    """Return the columns, besides some others, whose values all end as names of NIfTI files."""
    texts = {
        name: numbered_texts(column)[0]
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name not in others and is_text(column.type)
    }
    return [
        name
        for name, values in texts.items()
        if any(values) and all(value is None or is_nifti(value.strip()) for value in values)
    ]


def _file_column(path: Path, table: Any, others: set[str | None]) -> str:
    """Name of the column of the volumes."""
    columns = volume_columns(table, others)
    if len(columns) > 1:
        raise DataError(
            f"{path}: the columns {' and '.join(columns)} name NIfTI files; keep one, and drop the"
            " others."
        )
    if not columns:
        raise DataError(
            f"{path} has no column of NIfTI files, with names that all end in .nii or .nii.gz; it"
            f" has the columns {listed(table.column_names)}."
        )
    return columns[0]


def _label(path: Path, table: Any, others: set[str | None]) -> str:
    """Name of the labels' column: a usual name, or the only column that is left."""
    left = [name for name in table.column_names if name not in others]
    columns = taken_names(left) or left
    if len(columns) != 1:
        shown = "no column besides the files"
        if left:
            shown = listed(likely_labels(table.select(left)) or left)
        raise DataError(
            f"{path}: which column holds the labels? Give label, the name of one; it has {shown}."
        )
    return columns[0]
