"""Data files as strangers have them, made from real data sets, each with the clean arrays that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

#: How a test finds a real data file, or skips.
RealData = Callable[[str], Path]


@dataclass(frozen=True)
class Stranger:
    """A data file, and what a reader should find in it.

    ``X`` and ``y`` are the clean arrays, the images row by row; ``dataset`` holds the expected keys of the drafted
    section, without path, scaling and comments.
    """

    path: Path
    X: np.ndarray
    y: np.ndarray
    solver: str
    label: str | None = None
    shape: tuple[int, ...] | None = None
    groups: np.ndarray | None = None
    dataset: dict[str, Any] = field(default_factory=dict)
    cv_groups: str | None = None


def _frame(bunch: Any) -> pd.DataFrame:
    return pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names])


def _images(path: Path, classes: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images of the first classes of a real set, shuffled."""
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    chosen = np.concatenate([np.flatnonzero(y == c)[:each] for c in range(classes)])
    chosen = np.random.default_rng(0).permutation(chosen)
    return X[chosen], y[chosen]


def pandas_index(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """`df.to_csv` with its index, rows sorted by class."""
    bunch = load_wine()
    frame = _frame(bunch).assign(target=bunch.target)
    frame.to_csv(folder / "wine_index.csv")
    return Stranger(
        folder / "wine_index.csv",
        bunch.data,
        bunch.target,
        "rfs",
        "target",
        dataset={"label": "target", "drop": ["Unnamed: 0"]},
    )


def semicolons(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """Excel in a country of decimal commas; an identifier; the label in words."""
    bunch = load_breast_cancer()
    frame, y = _frame(bunch), np.array(["M", "B"])[bunch.target]
    frame.insert(0, "id", np.random.default_rng(0).permutation(10**6)[: len(frame)])
    frame.insert(1, "diagnosis", y)
    frame.to_csv(folder / "breast;cancer.csv", sep=";", decimal=",", index=False)
    return Stranger(
        folder / "breast;cancer.csv",
        bunch.data,
        y,
        "rfs",
        "diagnosis",
        dataset={"label": "diagnosis", "drop": ["id"]},
    )


def participants(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """Rows sorted by class, three nearly equal ones a participant."""
    bunch, rng = load_wine(), np.random.default_rng(0)
    X, y = np.repeat(bunch.data, 3, axis=0), np.repeat(bunch.target, 3)
    X = X + 0.1 * X.std(axis=0) * rng.standard_normal(X.shape)
    groups = np.repeat([f"P{i:03d}" for i in rng.permutation(len(bunch.data))], 3)
    frame = pd.DataFrame(X, columns=bunch.feature_names).assign(condition=np.array(["a", "b", "c"])[y])
    frame.insert(0, "participant_id", groups)
    frame.to_csv(folder / "visits.csv", index=False)
    return Stranger(
        folder / "visits.csv",
        X,
        frame.condition.to_numpy(),
        "rfs",
        "condition",
        groups=groups,
        dataset={"label": "condition"},
        cv_groups="participant_id",
    )


def pandas_parquet(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """`df.to_parquet` of a frame that was shuffled, with its old index and the label as a category."""
    bunch = load_breast_cancer()
    y = bunch.target_names[bunch.target].astype(str)
    frame = _frame(bunch).assign(label=pd.Categorical(y)).sample(frac=1, random_state=0)
    frame.to_parquet(folder / "tumours.parquet")
    order = frame.index.to_numpy()
    return Stranger(folder / "tumours.parquet", bunch.data[order], y[order], "rfs", "label", dataset={"label": "label"})


def uci(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """wine.data as UCI has it: no header, the class, 1 to 3, first."""
    bunch = load_wine()
    pd.DataFrame(np.column_stack([bunch.target + 1, bunch.data])).astype({0: int}).to_csv(
        folder / "wine.data", header=False, index=False
    )
    return Stranger(folder / "wine.data", bunch.data, bunch.target + 1, "rfs", "column0", dataset={"label": "column0"})


def image_stack(folder: Path, real_data: RealData) -> Stranger:
    """An archive with X of shape (n, h, w)."""
    X, y = _images(real_data("UMIST.npz"), 10, 19)
    np.savez(folder / "faces.npz", X=X, y=y)
    return Stranger(folder / "faces.npz", X.reshape(len(X), -1), y, "smr", "y", X.shape[1:])


def scikit_feature(folder: Path, real_data: RealData) -> Stranger:
    """A .mat file of images as rows, column by column, and labels from 1 on as one column of doubles."""
    X, y = _images(real_data("ORL.npz"), 20, 10)
    columns = X.transpose(0, 2, 1).reshape(len(X), -1)
    scipy.io.savemat(folder / "orlraws.mat", {"X": columns.astype(float), "Y": (y[:, None] + 1).astype(float)})
    return Stranger(
        folder / "orlraws.mat",
        X.reshape(len(X), -1),
        y + 1,
        "smr",
        "Y",
        (32, 32),
        dataset={"shape": [32, 32], "order": "F"},
    )


def matlab_73(folder: Path, real_data: RealData) -> Stranger:
    """A .mat file of version 7.3: HDF5, in which every array stands transposed."""
    import h5py  # noqa: PLC0415 - an extra

    X, y = _images(real_data("USPS.npz"), 6, 60)
    columns = X.transpose(0, 2, 1).reshape(len(X), -1)
    path = folder / "usps.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in (("fea", columns.astype(float)), ("gnd", (y[:, None] + 1).astype(float))):
            file.create_dataset(name, data=values.T).attrs["MATLAB_class"] = np.bytes_("double")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Sun Nov 22 11:00:00 2026 HDF5 schema 1.00 ."
    with path.open("r+b") as file:
        file.write(header.ljust(116) + bytes(8) + b"\x00\x02IM")
    return Stranger(
        path,
        X.reshape(len(X), -1).astype(float),
        y + 1,
        "smr",
        "gnd",
        (16, 16),
        dataset={"shape": [16, 16], "order": "F"},
    )


def picture_folder(folder: Path, real_data: RealData) -> Stranger:  # noqa: ARG001
    """One folder of PNG files for each class."""
    bunch = load_digits()
    chosen = np.concatenate([np.flatnonzero(bunch.target == c)[:40] for c in range(6)])
    words = np.array(["zero", "one", "two", "three", "four", "five"])
    images, y = (bunch.images[chosen] * 15).astype(np.uint8), words[bunch.target[chosen]]
    for number, (image, name) in enumerate(zip(images, y, strict=True)):
        place = folder / "pictures" / name
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number:04d}.png")
    order = np.argsort(y, kind="stable")
    return Stranger(
        folder / "pictures", images[order].reshape(len(images), -1).astype(float), y[order], "smr", None, (8, 8)
    )


def modality_arrays(folder: Path, real_data: RealData) -> Stranger:
    """An archive with one array for each modality, under its own name."""
    with np.load(real_data("MSRCv1_6v.npz")) as data:
        names, y = data["view_names"].tolist(), data["y"]
        views = {name.lower(): data[f"view_{names.index(name)}"] for name in ("CM", "HOG", "SIFT")}
    np.savez(folder / "scenes.npz", **views, labels=y)
    return Stranger(folder / "scenes.npz", np.hstack(list(views.values())).astype(float), y, "smml", "labels")


MAKERS = (
    pandas_index,
    semicolons,
    participants,
    pandas_parquet,
    uci,
    image_stack,
    scikit_feature,
    matlab_73,
    picture_folder,
    modality_arrays,
)


def strangers(folder: Path, real_data: RealData) -> Iterator[Stranger]:
    """Write all ten files."""
    return (make(folder, real_data) for make in MAKERS)
