"""False claims and power of the regions of `raysel claims` on generated images and volumes.

python -m experiments.claims.discoveries.regions --studies 30
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.stats import false_discovery_control
from sklearn.feature_selection import f_classif, f_regression

from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.data.layouts import Tensor
from raysel.data.targets import find_target
from raysel.numerics.conditional_tests import (
    adjust_for_fdr,
    adjust_for_fwer,
    independent_columns,
)
from raysel.numerics.parcels import form_regions, grid_neighbours
from raysel.numerics.regions import connected_sets, join_p_values, region_p_values
from raysel.run.region_claims import N_CLUSTERINGS, SHARE, default_n_regions, region_extents

FOLDER = Path(__file__).parent
N_SAMPLES, N_BLOBS, RADIUS = 80, 3, 2.5
#: Standard deviation of the Gaussian that smooths the noise, in cells.
SMOOTHNESS = 1.5
SHAPES = {"images": (20, 20), "volumes": (20, 20, 10)}
TARGETS = ("two classes", "quantity", "no effect")
#: Levels of the claims: family-wise error rate, and false discovery rate.
FWER, FDR = 0.05, 0.1
#: Figures of a set of claimed cells: connected sets, share of those without a telling cell, and
#: without one within the median extent of a region, share of blobs with a claimed cell.
FIGURES = ("regions", "without", "beyond", "power")
#: Figures of a study, in this order; those of a family-wise error are whether there is one.
COLUMNS = (
    *(f"fwer_{name}" for name in FIGURES),
    *(f"fdr_{name}" for name in FIGURES),
    *(f"f_test_{name}" for name in FIGURES),
    "extent",
    "seconds",
)


def smooth_noise(n: int, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Noise of unit variance, smoothed by a Gaussian; shape (n, *shape)."""
    width = (0.0, *(SMOOTHNESS for _ in shape))
    noise = gaussian_filter(rng.standard_normal((n, *shape)), width, mode="wrap")
    return noise / noise.std()


def draw_blobs(shape: tuple[int, ...], rng: np.random.Generator) -> BoolArray:
    """Balls in the array whose centres are three radii apart or more; shape (n_blobs, *shape)."""
    places, centres = np.stack(np.indices(shape), axis=-1), np.empty((0, len(shape)))
    while len(centres) < N_BLOBS:
        centre = np.array([rng.uniform(RADIUS, side - 1 - RADIUS) for side in shape])
        if (np.linalg.norm(centres - centre, axis=1) > 3 * RADIUS).all():
            centres = np.vstack([centres, centre])
    distances = np.linalg.norm(places - centres[:, *[None] * len(shape), :], axis=-1)
    return distances <= RADIUS


def generate(
    target: str, blobs: BoolArray, rng: np.random.Generator
) -> tuple[FloatArray, LabelArray]:
    """Samples as rows of cells, and labels that the blobs tell, each with a random sign."""
    X = smooth_noise(N_SAMPLES, blobs.shape[1:], rng).reshape(N_SAMPLES, -1)
    inside, signs = blobs.reshape(N_BLOBS, -1), rng.choice([-1.0, 1.0], N_BLOBS)
    y: LabelArray = np.arange(N_SAMPLES) % 2
    if target == "two classes":
        X = X + np.outer(y, signs @ inside)
    if target == "quantity":
        means = np.stack([X[:, each].mean(axis=1) for each in inside], axis=1)
        y = (means / means.std(axis=0)) @ signs + 0.7 * rng.standard_normal(N_SAMPLES)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def claim(
    X: FloatArray, y: LabelArray, shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float]:
    """Adjusted p values of the cells for FWER and FDR as `raysel.claim_features` computes them.

    Third is the median extent of a region.
    """
    target = find_target(y)
    Y = independent_columns(target.contrasts(y))
    folds = target.folds(y, 5, groups=None, random_state=0, where="folds")
    neighbours = grid_neighbours(np.arange(X.shape[1]).reshape(shape))
    n_regions = default_n_regions(len(X), X.shape[1])
    by_fwer, by_fdr, extents = [], [], []
    for _ in range(N_CLUSTERINGS):
        drawn = rng.choice(len(X), round(SHARE * len(X)), replace=False)
        regions = form_regions(X[drawn], neighbours, n_regions)
        beside = np.empty((len(X), 0))
        p_values = region_p_values(X, Y, regions, np.arange(len(X)), beside=beside, folds=folds)
        by_fwer.append(adjust_for_fwer(p_values)[regions])
        by_fdr.append(adjust_for_fdr(p_values)[regions])
        extents.append(region_extents(regions, Tensor(shape)))
    extent = float(np.median(np.concatenate(extents)))
    return join_p_values(np.array(by_fwer)), join_p_values(np.array(by_fdr)), extent


def figures(claimed: BoolArray, blobs: BoolArray, extent: float) -> list[float]:
    """Figures of a set of claimed cells, in the order of FIGURES."""
    shape = blobs.shape[1:]
    sets = connected_sets(claimed, grid_neighbours(np.arange(claimed.size).reshape(shape)))
    apart = np.full(claimed.size, np.inf)
    if blobs.any():
        apart = distance_transform_edt(~blobs.any(axis=0)).ravel()
    n = int(sets.max()) + 1
    nearest = np.array([apart[sets == number].min() for number in range(n)])
    found = [bool(claimed[blob].any()) for blob in blobs.reshape(len(blobs), -1)]
    shares = [float((nearest > limit).sum() / max(1, n)) for limit in (0, extent)]
    return [n, *shares, float(np.mean(found))]


def study(target: str, shape: tuple[int, ...], seed: int) -> list[float]:
    """Figures of one generated study."""
    rng = np.random.default_rng(seed)
    blobs = draw_blobs(shape, rng)
    X, y = generate(target, blobs, rng)
    if target == "no effect":
        blobs = np.zeros_like(blobs)
    begun = process_time()
    by_fwer, by_fdr, extent = claim(X, y, shape, rng)
    seconds = process_time() - begun
    strict = figures(by_fwer <= FWER, blobs, extent)
    strict[1:3] = [float(share > 0) for share in strict[1:3]]
    test = f_regression if y.dtype.kind == "f" else f_classif
    marginal = false_discovery_control(test(X, y)[1]) <= FDR
    return [
        *strict,
        *figures(by_fdr <= FDR, blobs, extent),
        *figures(marginal, blobs, extent),
        extent,
        seconds,
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write a row for each target and shape."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=30)
    parser.add_argument("--samples", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--output", type=Path, default=FOLDER / "regions.csv")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for samples in chosen.samples:
        for target in chosen.targets:
            found = [study(target, SHAPES[samples], seed) for seed in range(chosen.studies)]
            row = {"samples": samples, "target": target, "studies": chosen.studies}
            means = np.round(np.mean(found, axis=0), 3).tolist()
            row |= dict(zip(COLUMNS, means, strict=True))
            rows.append(row)
            print(" | ".join(map(str, row.values())), flush=True)
    with chosen.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
