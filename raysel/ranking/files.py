"""Writing a result's files: each appears whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from matplotlib.figure import Figure

from raysel.errors import StudyError
from raysel.files import whole
from raysel.ranking.feature_ranking import FeatureRanking


def write_whole(path: str | Path, content: bytes) -> Path:
    """Write a file beside its place, then move it there; a reader never sees a part.

    Parameters
    ----------
    path : str or Path
    content : bytes

    Returns
    -------
    Path

    Raises
    ------
    StudyError
        If the file cannot be written: no folder, no permission, no space left.
    """
    path = Path(path)
    try:
        with whole(path, durable=True) as beside:
            beside.write_bytes(content)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}; what stood there before is kept.") from error
    return path


def write_ranking(ranking: FeatureRanking, folder: str | Path) -> tuple[Path, Path]:
    """Write ``ranking.csv`` and ``ranking.parquet``, the same table to the last digit.

    Parameters
    ----------
    ranking : FeatureRanking
    folder : str or Path

    Returns
    -------
    csv, parquet : Path

    Raises
    ------
    StudyError
        If a file cannot be written.
    """
    table = ranking.to_table()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")  # writes a float as its repr, which reads back exactly
    writer.writerow(table.column_names)
    writer.writerows(zip(*table.to_pydict().values(), strict=True))
    parquet = io.BytesIO()
    pyarrow.parquet.write_table(table, parquet)
    return (
        write_whole(Path(folder, "ranking.csv"), text.getvalue().encode()),
        write_whole(Path(folder, "ranking.parquet"), parquet.getvalue()),
    )


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    StudyError
        If the file cannot be written.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150, metadata={"Software": "raysel"})
    return write_whole(path, png.getvalue())


def write_manifest(path: str | Path, manifest: Mapping[str, Any]) -> Path:
    """Write a manifest as canonical JSON: keys sorted, numpy's numbers as plain ones, NaN and infinity as null.

    Parameters
    ----------
    path : str or Path
    manifest : mapping
        Of strings, numbers, arrays, lists and mappings.

    Returns
    -------
    Path

    Raises
    ------
    StudyError
        If the file cannot be written.
    TypeError
        If a value has no place in JSON.
    """
    text = json.dumps(_plain(manifest), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return write_whole(path, f"{text}\n".encode())


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
