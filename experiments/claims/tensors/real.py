"""Nested comparisons on two real sets of samples of order 3: colour moments, and orientations of
scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from experiments.experiment import Experiment, Row, short_grids
from raysel.core.arrays import FloatArray, IntArray

Samples = tuple[FloatArray, IntArray]
OWN = "SMR order 3"


def colour_moments(file: Mapping[str, Any]) -> Samples:
    """Means and variances of L, U and V on a grid of 7 x 7, (n, 6, 7, 7), of the images with
    exactly one label.
    """
    labels = np.asarray(file["Y"])
    one = labels.sum(axis=1) == 1
    views = [np.asarray(file[f"view_{i}"])[one].reshape(-1, 7, 7) for i in range(6)]
    return np.stack(views, axis=1), labels[one].argmax(axis=1)


def orientations(file: Mapping[str, Any]) -> Samples:
    """Eight orientations at 32 x 32 places, (n, 32, 32, 8), of the eight outdoor classes.

    Of a descriptor's 85 patches the last 64 are 8 x 8 row by row; its 128 values are 4 x 4 cells of
    8 orientations.
    """
    outdoor = np.asarray(file["y"]) < 8
    patches = np.asarray(file["X"])[outdoor][:, :, 21:85].reshape(-1, 4, 4, 8, 8, 8)
    cells = patches.transpose(
        0, 4, 1, 5, 2, 3
    )  # patch and cell: row, row, column, column, orientation
    return cells.reshape(-1, 32, 32, 8), np.asarray(file["y"])[outdoor]


@dataclass(frozen=True)
class Data:
    """A data set and what a study of it has of its own."""

    #: Name in `experiment.FILES`.
    source: str
    arranged: Callable[[Mapping[str, Any]], Samples]
    shape: tuple[int, int, int]
    draws: int
    changes: Row


DATA = {
    "colour moments": Data(
        "Scene",
        colour_moments,
        (6, 7, 7),
        10,
        {
            "dataset.prepare": [
                {"standardise": {}, "columns": [f"moment{moment} *"]} for moment in range(6)
            ],
            "dataset.modes": ["moment", "row", "column"],
        },
    ),
    "orientation volume": Data(
        "scenes",
        orientations,
        (32, 32, 8),
        10,
        {
            "dataset.scaling": "unit",
            "dataset.modes": ["row", "column", "orientation"],
            "evaluation.n_features": [50, 100, 200, 400],
        },
    ),
}


def written(experiment: Experiment, name: str) -> Path:
    """Write the samples of a data set as an array of order 3 into the output, once."""
    path = experiment.output / f"{name.replace(' ', '-')}.npz"
    if not path.exists():
        source = experiment.path(DATA[name].source)
        path.parent.mkdir(parents=True, exist_ok=True)
        with np.load(source) as file:
            X, y = DATA[name].arranged(file)
        part = path.with_suffix(".part.npz")
        np.savez(part, X=X, y=y)
        part.replace(path)
    return path


def unfolded(name: str) -> dict[str, Row]:
    """Members that are SMR of order 2, one an axis."""
    shape = DATA[name].shape
    own = yaml.safe_load((Path(__file__).parent / "study.yaml").read_text(encoding="utf-8"))[
        "compare"
    ][OWN]["solver"]
    members = {}
    for axis, side in enumerate(shape, start=1):
        label = f"SMR order 2 ({side} x {np.prod(shape) // side}, axis {axis})"
        solver = {"name": "experiments.claims.tensors.unfolded.UnfoldedSMR"}
        members[label] = {"solver": own | solver | {"params": own["params"] | {"axis": axis}}}
    return members


def compared(experiment: Experiment, name: str) -> Any:
    """Run the comparison on a data set, or what is missing of it."""
    config = experiment.config("study")
    members = config["compare"]
    config["compare"] = {OWN: members.pop(OWN), **unfolded(name), **members}
    changes = DATA[name].changes | {
        "dataset.path": str(written(experiment, name)),
        "cv.repeats": DATA[name].draws,
    }
    if experiment.fast:
        kept = (OWN, next(iter(unfolded(name))))
        config["compare"] = {label: config["compare"][label] for label in kept}
        changes |= {"cv.repeats": 2, "cv.inner": 2, "evaluation.n_features": [20, 50]}
        changes |= short_grids(config["compare"], changes)
    return experiment.compare(name.replace(" ", "-"), config, changes)


def measure(experiment: Experiment, name: str) -> pd.DataFrame:
    """One row a member: its score on the test samples, its difference to SMR of order 3, and the
    CPU time of a fit.
    """
    comparison = compared(experiment, name)
    rows = []
    for member in comparison.members:
        row: Row = {
            "data": name,
            "method": member.label,
            "draws": len(comparison.folds.names),
            "note": member.failure,
        }
        if member.result is not None:
            figures = comparison.rows[member.label]
            row |= {"score": figures.scores.mean(), "sd": figures.scores.std(ddof=1)}
            row |= {
                "inner": float(np.mean(member.result.inner_scores)),
                "cpu_seconds": figures.cpu_seconds,
            }
            row |= {
                "configurations": len(member.result.records),
                "features": text_of(figures.chosen),
            }
        if (pair := comparison.pairs.get(member.label)) and pair.test:
            row |= {
                "difference": pair.compared.mean,
                "lower": pair.test.lower,
                "upper": pair.test.upper,
            }
            row |= {"p": pair.p[pair.main], "test": pair.main}
        rows.append(row)
    return pd.DataFrame(rows)


def text_of(chosen: tuple[int, ...]) -> str:
    """Numbers of cells that the inner folds choose."""
    return (
        ""
        if not chosen
        else f"{min(chosen)} to {max(chosen)}"
        if min(chosen) < max(chosen)
        else str(chosen[0])
    )
