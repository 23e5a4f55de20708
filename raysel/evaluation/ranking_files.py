"""Files of a ranking and of a study's manifest, written atomically."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import BoolArray
from raysel.core.errors import ConfigError
from raysel.core.files import write_result
from raysel.core.printing import csv_row
from raysel.data.formats.nifti import nifti_content
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking

#: Formats of a ranking's file, which is ``ranking.<format>``.
FORMATS = ("csv", "parquet", "json", "npz")
#: Endings of the files of a mask.
NPY, NIFTI = ".npy", ".nii.gz"


def write_ranking(
    ranking: FeatureRanking, folder: str | Path, formats: Sequence[str] = ("csv", "parquet")
) -> tuple[Path, ...]:
    """Write a ranking as files, e.g. ``ranking.csv``, without loss of digits."""
    check_formats(formats)
    return write_table(ranking.to_table(), folder, "ranking", formats)


def write_table(
    table: pa.Table, folder: str | Path, name: str, formats: Sequence[str] = ("csv", "parquet")
) -> tuple[Path, ...]:
    """Write a table as files of a name, one a format."""
    contents = {form: _WRITERS[form](table) for form in formats}
    return tuple(
        write_result(Path(folder, f"{name}.{form}"), content) for form, content in contents.items()
    )


def check_formats(formats: Sequence[str]) -> None:
    """Check that there are formats, and that all are known."""
    known = ", ".join(FORMATS)
    if not formats:
        raise ConfigError(f"no format of the ranking is given; choose from {known}.")
    for form in formats:
        if form not in FORMATS:
            raise ConfigError(f"{form!r} is not a format of a ranking; choose from {known}.")


def csv_content(table: pa.Table) -> bytes:
    r"""Return a table as a CSV file without loss of digits, texts as `csv_cell` returns them."""
    text = io.StringIO(newline="")
    columns = table.to_pydict()
    quoting: Any = csv.QUOTE_MINIMAL
    # A lone carriage return would end a line when it is read, and is quoted in this way only.
    if any(map(_has_return, chain.from_iterable(columns.values()))):
        quoting = csv.QUOTE_NONNUMERIC
    # It writes a float as its repr, which reads back exactly.
    writer = csv.writer(text, lineterminator="\n", quoting=quoting)
    writer.writerow(csv_row(table.column_names))
    writer.writerows(map(csv_row, zip(*columns.values(), strict=True)))
    return text.getvalue().encode()


def _has_return(value: Any) -> bool:
    return isinstance(value, str) and "\r" in value


def _parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pyarrow.parquet.write_table(table, content)
    return content.getvalue()


def _json(table: pa.Table) -> bytes:
    rows = ",\n".join(
        json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) for row in table.to_pylist()
    )
    return f"[\n{rows}\n]\n".encode()


def _npz(table: pa.Table) -> bytes:
    content = io.BytesIO()
    columns: dict[str, Any] = {name: np.array(values) for name, values in table.to_pydict().items()}
    np.savez_compressed(content, allow_pickle=False, **columns)
    return content.getvalue()


_WRITERS = {"csv": csv_content, "parquet": _parquet, "json": _json, "npz": _npz}


def write_manifest(path: str | Path, manifest: Mapping[str, Any]) -> Path:
    """Write a manifest as canonical JSON: sorted keys, NaN and infinity as null."""
    text = json.dumps(
        _plain(manifest), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False
    )
    return write_result(path, f"{text}\n".encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def selection_mask(ranking: FeatureRanking, layout: Layout) -> BoolArray:
    """Return the mask of the selected features in the shape of a sample."""
    return layout.arranged(ranking.selected)


def mask_content(path: str | Path, mask: BoolArray, layout: Layout | None = None) -> bytes:
    """Return a mask's file in the format that its name asks for, in the space of a layout."""
    name = Path(path).name
    if name.endswith(NPY):
        file = io.BytesIO()
        np.save(file, mask, allow_pickle=False)
        return file.getvalue()
    if not name.endswith(NIFTI):
        raise ConfigError(f"the mask {path} must end in {NPY} or {NIFTI}, which says its format.")
    try:
        described = "raysel: 1 where a feature is selected"
        return nifti_content(mask, layout, path, description=described, limits=(0, 1))
    except ConfigError as error:
        raise ConfigError(f"{error} Or name the file *{NPY}.") from error
