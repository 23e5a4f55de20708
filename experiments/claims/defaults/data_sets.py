"""Data sets on which the drafted study is measured, and the columns of generated ones that tell
the classes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Samples(NamedTuple):
    """Samples as a script has them, and the file or the name that `raysel.init_study` is given."""

    source: str
    X: np.ndarray
    y: np.ndarray
    #: Names of the columns as raysel has them; None: their numbers.
    names: list[str] | None = None
    #: Columns that tell the classes; none are known of real data.
    telling: frozenset[int] = frozenset()


@dataclass(frozen=True)
class DataSet:
    """One data set: how its file is written into a folder, and whether it was looked at while
    choices were made.
    """

    write: Callable[[Path], Samples]
    looked_at: bool


def builtin(name: str, per_class: int | None = None) -> Callable[[Path], Samples]:
    """One of scikit-learn's data sets, by name, or its first samples of each class as a file."""

    def write(folder: Path) -> Samples:
        from sklearn import datasets  # noqa: PLC0415

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if per_class is None:
            return Samples(name, X, y)
        rows = np.concatenate([np.flatnonzero(y == label)[:per_class] for label in np.unique(y)])
        np.savez(folder / f"{name}.npz", X=X[rows], y=y[rows])
        return Samples(f"{name}.npz", X[rows], y[rows])

    return write


def stored(
    name: str, n_classes: int, per_class: int, views: tuple[str, ...] = ()
) -> Callable[[Path], Samples]:
    """The first classes and samples of a file in $RAYSEL_DATA, as images, modalities, or one
    table of a modality.
    """

    def write(folder: Path) -> Samples:
        with np.load(Path(os.environ["RAYSEL_DATA"]) / f"{name}.npz") as file:
            arrays = {key: file[key] for key in file.files}
        y = arrays["y"]
        rows = np.concatenate(
            [np.flatnonzero(y == label)[:per_class] for label in np.unique(y)[:n_classes]]
        )
        if "X" in arrays:
            X = arrays["X"][rows]
            np.savez(folder / f"{name}.npz", X=X, y=y[rows])
            return Samples(f"{name}.npz", X.reshape(len(X), -1).astype(float), y[rows])
        known = [str(view) for view in arrays["view_names"]]
        parts = [arrays[f"view_{known.index(view)}"][rows].astype(float) for view in views or known]
        X, names = np.hstack(parts), np.array(views or known)
        if len(parts) == 1:
            np.savez(folder / f"{name}-{views[0]}.npz", X=X, y=y[rows])
            return Samples(f"{name}-{views[0]}.npz", X, y[rows])
        arranged = {f"view_{i}": part for i, part in enumerate(parts)}
        np.savez(folder / f"{name}.npz", y=y[rows], view_names=names, **arranged)
        return Samples(f"{name}.npz", X, y[rows])

    return write


#: Shift of each telling column, in standard deviations, by their number; the more there are, the
#: less each tells.
SHIFTS = {5: 0.9, 20: 0.6, 100: 0.35}
#: Columns of a block of correlated ones, and their correlation.
BLOCK, CORRELATION = 10, 0.6


def generated(
    n_telling: int, n_columns: int, n_samples: int, seed: int, *, correlated: bool, balanced: bool
) -> Callable[[Path], Samples]:
    """Two classes of normal columns, of which some have another mean in one class.

    Correlated columns come in blocks of ten with a common factor, and those that tell stand in
    whole blocks; otherwise they stand anywhere. Classes that are not balanced have 4 to 1 samples.
    """

    def write(folder: Path) -> Samples:
        rng = np.random.default_rng(seed)
        y = (np.arange(n_samples) < (n_samples // 2 if balanced else n_samples // 5)).astype(int)
        X = rng.normal(size=(n_samples, n_columns))
        if correlated:
            common = np.repeat(rng.normal(size=(n_samples, n_columns // BLOCK)), BLOCK, axis=1)
            X = CORRELATION**0.5 * common + (1 - CORRELATION) ** 0.5 * X
            first = BLOCK * rng.choice(n_columns // BLOCK, -(-n_telling // BLOCK), replace=False)
            telling = (first[:, None] + np.arange(BLOCK)).ravel()[:n_telling]
        else:
            telling = rng.choice(n_columns, n_telling, replace=False)
        X[:, telling] += SHIFTS[n_telling] * y[:, None] * rng.choice([-1.0, 1.0], n_telling)
        order = rng.permutation(n_samples)
        np.savez(folder / "generated.npz", X=X[order], y=y[order])
        return Samples("generated.npz", X[order], y[order], telling=frozenset(telling.tolist()))

    return write


def expression(folder: Path) -> Samples:
    """A table of 200 samples and 5000 genes with ids, batch and sex as text, and five empty cells.

    20 genes have a shift of -0.8, 0 or 0.8 in each of three classes. Two of them drew the same in
    all three, which tells nothing, so that 18 tell.
    """
    rng = np.random.default_rng(23)
    y = np.arange(200) % 3
    X = rng.normal(7, 1, (200, 5000))
    shifted = np.sort(rng.choice(5000, 20, replace=False))
    shifts = 0.8 * rng.choice([-1.0, 0.0, 1.0], (3, 20))
    X[:, shifted] += shifts[y]
    telling = shifted[np.ptp(shifts, axis=0) > 0]
    # One of the five empty cells is in a gene that tells.
    empty = np.array([shifted[0], *rng.choice(5000, 4, replace=False)])
    X[rng.choice(200, 5, replace=False), empty] = np.nan
    names = [f"gene{i}" for i in range(5000)]
    described = {
        "sample": [f"S{i:03d}" for i in range(200)],
        "diagnosis": np.array(["healthy", "mild", "severe"])[y],
        "batch": rng.choice(["B1", "B2", "B3"], 200),
        "sex": rng.choice(["f", "m"], 200),
    }
    table = pd.concat([pd.DataFrame(described), pd.DataFrame(X.round(4), columns=names)], axis=1)
    table.to_csv(folder / "expression.csv", index=False)
    return Samples(
        "expression.csv", X, np.array(described["diagnosis"]), names, frozenset(telling.tolist())
    )


def _generated(
    seed: int, n_telling: int, n_columns: int, n_samples: int, kinds: str
) -> Callable[[Path], Samples]:
    return generated(
        n_telling,
        n_columns,
        n_samples,
        seed,
        correlated="correlated" in kinds,
        balanced="4 to 1" not in kinds,
    )


#: The halves were drawn up before the drafts were measured: each kind of data is in both.
LOOKED_AT: dict[str, Callable[[Path], Samples]] = {
    "iris": builtin("iris"),
    "digits, 30 a digit": builtin("digits", 30),
    "ORL, 10 persons": stored("ORL", 10, 10),
    "mfeat, Fourier": stored("Handwritten_mfeat", 10, 30, ("fou",)),
    "mfeat, 6 modalities": stored("Handwritten_mfeat", 10, 12),
    "expression, 18 of 5000": expression,
    "5 of 200": _generated(1, 5, 200, 120, ""),
    "20 of 200, correlated": _generated(2, 20, 200, 120, "correlated"),
    "20 of 2000, correlated, 4 to 1": _generated(3, 20, 2000, 150, "correlated, 4 to 1"),
    "20 of 20000": _generated(4, 20, 20000, 80, ""),
}
HELD_BACK: dict[str, Callable[[Path], Samples]] = {
    "wine": builtin("wine"),
    "breast_cancer": builtin("breast_cancer"),
    "USPS, 30 a digit": stored("USPS", 10, 30),
    "UMIST, 10 persons": stored("UMIST", 10, 12),
    "MSRC-v1, GIST": stored("MSRCv1_6v", 7, 20, ("GIST",)),
    "MSRC-v1, 6 modalities": stored("MSRCv1_6v", 7, 12),
    "100 of 200, 4 to 1": _generated(5, 100, 200, 150, "4 to 1"),
    "5 of 2000, 4 to 1": _generated(6, 5, 2000, 150, "4 to 1"),
    "100 of 2000, correlated": _generated(7, 100, 2000, 120, "correlated"),
    "5 of 20000, correlated": _generated(8, 5, 20000, 80, "correlated"),
}
DATA_SETS = {
    name: DataSet(write, name in LOOKED_AT) for name, write in (LOOKED_AT | HELD_BACK).items()
}


def write(name: str, folder: Path) -> Samples:
    """Write the file of a data set, if it has one."""
    return DATA_SETS[name].write(folder)


def facts(samples: Samples) -> dict[str, Any]:
    """Size of a data set."""
    counts = np.unique(samples.y, return_counts=True)[1]
    return {"samples": len(samples.y), "columns": samples.X.shape[1], "classes": len(counts)}
