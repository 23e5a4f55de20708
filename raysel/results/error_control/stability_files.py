"""Files of the stability selection of a finished study."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.arrays import BoolArray, LabelArray
from raysel.errors import DirectoryError
from raysel.files import read_json, write_result
from raysel.ranking.export import csv_content, write_manifest
from raysel.results.error_control.small_tables import read_numbers
from raysel.results.error_control.stability_selection import StabilitySelection
from raysel.statistics.selection_bounds import ASSUMPTIONS

#: Folder of the files in a study's directory.
FOLDER = "stability"
_TABLE, _RESULT = "selection.parquet", "result.json"


def write_stability_selection(
    found: StabilitySelection, folder: Path, feature_names: Sequence[str], coordinates: Mapping[str, LabelArray]
) -> tuple[Path, Path, Path]:
    """Write ``selection.parquet``, ``selection.csv`` and ``result.json``."""
    columns: dict[str, Any] = {
        "feature": np.array(feature_names),
        "index": np.arange(len(found.counts)),
        **coordinates,
        "selection_probability": found.probability,
        "simultaneous_probability": found.simultaneous_probability,
        "selected": found.selected,
        "n_halves": found.counts,
        "n_pairs": found.pair_counts,
    }
    order = found.order()
    table = pa.table({name: pa.array(np.asarray(values)[order]) for name, values in columns.items()})
    parquet = io.BytesIO()
    pyarrow.parquet.write_table(table, parquet)
    return (
        write_result(folder / _TABLE, parquet.getvalue()),
        write_result(folder / "selection.csv", csv_content(table)),
        write_manifest(folder / _RESULT, _described(found, [feature_names[i] for i in order if found.selected[i]])),
    )


def _described(found: StabilitySelection, names: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "sentence": found.sentence(),
        "remarks": found.remarks(),
        "top": found.top,
        "threshold": found.threshold,
        "threshold_is_default": found.is_default,
        "q": found.q,
        "p": found.p,
        "theta": found.theta,
        "expected_false_selections_at_most": {"simple": found.simple_bound, "unimodal": found.unimodal_bound},
        "assumptions": ASSUMPTIONS,
        "selected": names,
        "halves": {
            "asked_for": found.n_halves,
            "counted": 2 * found.n_pairs,
            "n_selected": found.n_selected,
            "stability_of_pairs": found.stability,
            "failed": {str(number): reason for number, reason in found.errors.items()},
            "not_converged": found.n_unconverged,
        },
        "identity": found.identity,
        "mixed": list(found.mixed),
    }


def read_stability_selection(folder: Path, constant: BoolArray) -> StabilitySelection | None:
    """Read the result that `write_stability_selection` wrote."""
    if not (folder / _RESULT).exists():
        return None
    try:
        found = read_json(folder / _RESULT)
        table = read_numbers(folder / _TABLE, ("index", "n_halves", "n_pairs", "selection_probability"), len(constant))
        by_index = np.argsort(table["index"])
        if not np.array_equal(np.asarray(table["index"])[by_index], np.arange(len(constant))):
            raise ValueError("the features are not those of the study")
        halves = found["halves"]
        if halves["counted"] != len(halves["n_selected"]) or not np.allclose(
            np.array(table["n_halves"]) / halves["counted"], table["selection_probability"], rtol=0, atol=1e-12
        ):
            raise ValueError(f"{_TABLE} and {_RESULT} are of different runs")
        return StabilitySelection(
            found["top"],
            found["threshold"],
            found["threshold_is_default"],
            np.array(table["n_halves"], dtype=np.int64)[by_index],
            np.array(table["n_pairs"], dtype=np.int64)[by_index],
            np.array(halves["n_selected"], dtype=np.int64),
            constant,
            halves["asked_for"],
            {int(number): reason for number, reason in halves["failed"].items()},
            halves["not_converged"],
            found["identity"],
            tuple(found.get("mixed", ())),  # of an earlier version
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as a stability selection: {error}. Run raysel.stability again, or remove it."
        ) from error
