"""What is refused or remarked on in data sets with planted leaks, and in data sets without one."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn import datasets

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset
from raysel.study.inspection.leaks import refuse_leaks
from raysel.study.inspection.remarks import data_remarks

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))
from planted_leaks import (
    NEARLY,
    OF_QUANTITY,
    REFUSED,
    REMARKED,
    Planting,
    interleaved,
    sorted_by_class,
    table,
)

TABLES = ("iris", "wine", "breast_cancer", "digits")
#: What is said of a data set without a leak, and is true of it: columns that tell nothing, equal
#: images or flowers.
TRUE = (
    "tells nothing of the label|equal to another|nearly equal|separate the classes|different"
    " spreads|standard dev"
)


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
    "30 subjects of 8 rows, in turn": (interleaved, "30 rows apart"),
}


def of_quantity(X: np.ndarray, y: np.ndarray) -> Dataset:
    """A table of a quantity, moved so that its logarithm is defined."""
    positive = y - y.min() + 0.1 * y.std()
    return Dataset(X, positive, Tensor((X.shape[1],)), target="quantities")


#: Tables of a quantity by the seed.
QUANTITIES: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "diabetes": lambda _: datasets.load_diabetes(return_X_y=True),
    "regression": lambda seed: datasets.make_regression(150, 40, noise=10, random_state=seed),
    "friedman1": lambda seed: datasets.make_friedman1(150, random_state=seed),
    "friedman2": lambda seed: datasets.make_friedman2(150, random_state=seed),
    "heavy tails": lambda seed: heavy_tails(np.random.default_rng(seed)),
}


def heavy_tails(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """200 samples of 500 columns with Student's distribution of two degrees of freedom, five of
    which tell.
    """
    X = rng.standard_t(2, size=(200, 500))
    return X, X[:, :5].sum(axis=1) + rng.standard_t(2, size=200)


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
        for name, make in QUANTITIES.items():
            X, y = make(seed)
            yield f"{name}, a quantity, seed {seed}", of_quantity(X, y)
            order = np.argsort(y, kind="stable")
            yield f"{name}, sorted by the quantity, seed {seed}", of_quantity(X[order], y[order])
        for places in ("row,col", "x,y", "lat,lon"):
            yield f"pixels in any order by {places}, seed {seed}", pixels(seed, places.split(","))


def pixels(seed: int, names: Sequence[str]) -> Dataset:
    """400 pixels of a map, whose bands tell two classes and are no more alike near each other
    than elsewhere.
    """
    rng = np.random.default_rng(seed)
    row, col = np.unravel_index(rng.permutation(3600)[:400], (60, 60))
    y = (row + col + 10 * rng.standard_normal(400) > 60).astype(int)
    X = rng.standard_normal((400, 10)) + y[:, None]
    bands = tuple(f"band{i}" for i in range(10))
    return table(np.column_stack([row, col, X]), y, (*names, *bands))


def print_found(
    leaks: Mapping[str, tuple[Planting, str]],
    sources: Mapping[str, Callable[[int], Dataset]],
    seeds: int,
) -> None:
    """Print how often each leak is found in each source of a data set by the seed."""
    print(f"\n| leak | {' | '.join(sources)} |\n{'|---' * (1 + len(sources))}|")
    for what, (plant, words) in leaks.items():
        cells = []
        for make in sources.values():
            planted = [plant(make(seed), np.random.default_rng(seed)) for seed in range(seeds)]
            n_found = sum(bool(re.search(words, answer(data))) for data in planted)
            cells.append(f"{n_found} of {seeds}")
        print(f"| {what} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the tables of the leaks, and the clean sets with a remark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = parser.parse_args().seeds
    of_classes = {name: load_dataset(name) for name in TABLES}
    plain = {name: table(data.X, data.y) for name, data in of_classes.items()}
    print_found(LEAKS, {name: lambda _, d=data: d for name, data in plain.items()}, seeds)
    quantities = {
        name: lambda seed, make=make: of_quantity(*make(seed)) for name, make in QUANTITIES.items()
    }
    print_found(OF_QUANTITY, quantities, seeds)
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
