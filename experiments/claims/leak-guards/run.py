"""What is refused or remarked on in data sets with planted leaks, and in data sets without one."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.loading import load_dataset
from raysel.study.inspection.leaks import refuse_leaks
from raysel.study.inspection.remarks import data_remarks

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from planted_leaks import NEARLY, REFUSED, REMARKED, Planting, sorted_by_class, table

TABLES = ("iris", "wine", "breast_cancer", "digits")
#: What is said of a data set without a leak, and is true of it: columns that tell nothing, equal images or flowers.
TRUE = "tells nothing of the label|equal to another|nearly equal|separate the classes|different spreads|standard dev"


def twins(share: float, noise: float) -> Planting:
    """A second, noisy measurement of a share of the samples."""

    def plant(data: Dataset, rng: np.random.Generator) -> Dataset:
        rows = rng.choice(data.n_samples, round(share * data.n_samples), replace=False)
        again = data.X[rows] + noise * data.X.std(axis=0) * rng.standard_normal(
            (len(rows), data.n_features)
        )
        return table(
            np.vstack([data.X, again]), np.concatenate([data.y, data.y[rows]]), data.feature_names
        )

    return plant


def adjacent(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Six noisy copies of each of 40 samples below each other, each with a random label."""
    rows = np.repeat(rng.choice(data.n_samples, 40, replace=False), 6)
    X = data.X[rows] + data.X.std(axis=0) * rng.standard_normal((240, data.n_features))
    return table(X, np.repeat(rng.permutation([0, 1] * 20), 6), data.feature_names)


def walk(data: Dataset, rng: np.random.Generator) -> Dataset:
    """A random walk of 240 rows with labels in blocks of 30."""
    X = np.cumsum(rng.standard_normal((240, data.n_features)), axis=0)
    return table(X, np.repeat(rng.permutation([0, 1] * 4), 30), data.feature_names)


LEAKS: dict[str, tuple[Planting, str]] = {
    **REFUSED,
    **REMARKED,
    **NEARLY,
    **{
        f"{share:.0%} twins, noise {noise:g} SD": (twins(share, noise), "nearly equal")
        for share in (0.02, 0.2, 0.5, 1.0)
        for noise in (1e-4, 0.1)
    },
    "40 subjects of 6 adjacent rows": (adjacent, "cv.blocks"),
    "a random walk, labels in blocks": (walk, "cv.blocks"),
}


def answer(data: Dataset) -> str:
    """The refusal, or all remarks."""
    try:
        refuse_leaks(data)
    except DataError as error:
        return str(error)
    return " ".join(data_remarks(data))


def clean(seeds: int) -> Iterator[tuple[str, Dataset]]:
    """Data sets without a leak, as stored and sorted by class, and generated ones."""
    for name in TABLES:
        data = load_dataset(name)
        yield name, data
        yield f"{name}, sorted by class", sorted_by_class(data)
    for path in (
        sorted(Path(os.environ.get("RAYSEL_DATA", "")).glob("*.npz"))
        if os.environ.get("RAYSEL_DATA")
        else ()
    ):
        yield path.stem, load_dataset(path)
    for seed in range(seeds):
        for n in (80, 300):
            for make in (
                datasets.make_classification,
                datasets.make_gaussian_quantiles,
                datasets.make_blobs,
            ):
                X, y = make(n_samples=n, random_state=seed)
                yield f"{make.__name__}, {n}, seed {seed}", table(X, y)
            X, y = datasets.make_classification(n_samples=n, n_features=500, random_state=seed)
            yield f"500 columns, {n}, seed {seed}", table(X, y)
            yield f"500 columns, sorted by class, {n}, seed {seed}", sorted_by_class(table(X, y))


def main() -> None:
    """Print the table of the leaks, and the clean sets with a remark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = parser.parse_args().seeds
    print(f"| leak | {' | '.join(TABLES)} |\n{'|---' * (1 + len(TABLES))}|")
    sources = {name: load_dataset(name) for name in TABLES}
    for what, (plant, words) in LEAKS.items():
        cells = []
        for data in sources.values():
            plain = table(data.X, data.y)
            found = [
                bool(re.search(words, answer(plant(plain, np.random.default_rng(seed)))))
                for seed in range(seeds)
            ]
            cells.append(f"{sum(found)} of {seeds}")
        print(f"| {what} | {' | '.join(cells)} |", flush=True)
    n = 0
    for name, data in clean(seeds):
        n += 1
        try:
            refuse_leaks(data)
            said = [remark for remark in data_remarks(data) if not re.search(TRUE, remark)]
        except DataError as error:
            said = [str(error)]
        for remark in said:
            print(f"\n{name}: {remark}", flush=True)
    print(f"\n{n} sets without a leak")


if __name__ == "__main__":
    main()
