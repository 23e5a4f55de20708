"""Files of a ranking and of a study's manifest, written atomically."""

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

from raysel.files import write_result
from raysel.ranking.feature_ranking import FeatureRanking


def write_ranking(ranking: FeatureRanking, folder: str | Path) -> tuple[Path, Path]:
    """Write a ranking as ``ranking.csv`` and ``ranking.parquet``, without loss of digits.

    Parameters
    ----------
    ranking : FeatureRanking
        Ranking to write.
    folder : str or Path
        Existing folder to write to.

    Returns
    -------
    csv, parquet : Path
        Paths of the files.

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
        write_result(Path(folder, "ranking.csv"), text.getvalue().encode()),
        write_result(Path(folder, "ranking.parquet"), parquet.getvalue()),
    )


def write_manifest(path: str | Path, manifest: Mapping[str, Any]) -> Path:
    """Write a manifest as canonical JSON: keys sorted, NumPy numbers as plain ones, NaN and infinity as null.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    manifest : mapping
        Mapping of strings, numbers, arrays, lists and mappings.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    StudyError
        If the file cannot be written.
    TypeError
        If JSON has no type for a value.
    """
    text = json.dumps(_plain(manifest), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
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
