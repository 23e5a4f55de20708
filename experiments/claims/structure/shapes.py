"""Images of noise in which a shape of 72 cells is brighter in one of two classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from raysel.core.arrays import BoolArray, FloatArray, LabelArray

SIDE = 24
#: Cells of each shape: an eighth of the image.
CELLS = 72
#: Difference of the class means in a cell of the shape, in standard deviations of the noise.
EFFECT = 0.5
#: Standard deviation of the Gaussian that makes noise smooth, in cells.
SMOOTHNESS = 1.0


class Images(NamedTuple):
    """Images of two classes, and the cells that tell them apart."""

    X: FloatArray
    y: LabelArray
    telling: BoolArray


def rectangle(_: np.random.Generator) -> BoolArray:
    """Return a rectangle of 6 x 12 cells: connected, and of rank 1."""
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[4:10, 8:20] = True
    return cells


def ring(_: np.random.Generator) -> BoolArray:
    """Return a ring: connected, thin, and of no low rank."""
    return _nearest(np.abs(_radii((11.5, 11.5)) - 7.5))


def blob(_: np.random.Generator) -> BoolArray:
    """Return a disc."""
    return _nearest(_radii((9.0, 14.0)))


def two_regions(_: np.random.Generator) -> BoolArray:
    """Return two distant discs."""
    return _nearest(np.minimum(_radii((6.0, 6.0)), _radii((17.0, 17.0))))


def stripes(_: np.random.Generator) -> BoolArray:
    """Return three whole rows, far apart: of rank 1."""
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[[4, 11, 18]] = True
    return cells


def outer_product(rng: np.random.Generator) -> BoolArray:
    """Return the cells of 6 rows and 12 columns drawn at random: of rank 1, not connected."""
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    rows, columns = rng.choice(SIDE, 6, replace=False), rng.choice(SIDE, 12, replace=False)
    cells[np.ix_(rows, columns)] = True
    return cells


def scattered(rng: np.random.Generator) -> BoolArray:
    """Return cells drawn at random: neither connected nor of low rank."""
    cells = np.zeros(SIDE * SIDE, dtype=bool)
    cells[rng.choice(SIDE * SIDE, CELLS, replace=False)] = True
    return cells.reshape(SIDE, SIDE)


SHAPES: Mapping[str, Callable[[np.random.Generator], BoolArray]] = {
    "rectangle": rectangle,
    "blob": blob,
    "two regions": two_regions,
    "ring": ring,
    "stripes": stripes,
    "outer product": outer_product,
    "scattered": scattered,
}


def draw_images(shape: str, noise: str, n_samples: int, seed: int) -> Images:
    """Draw images of two classes of one size, in white or smooth noise of variance 1."""
    rng = np.random.default_rng([seed, n_samples, list(SHAPES).index(shape)])
    telling = SHAPES[shape](rng)
    X = rng.normal(size=(n_samples, SIDE, SIDE))
    if noise == "smooth":
        X = gaussian_filter(X, (0, SMOOTHNESS, SMOOTHNESS), mode="wrap")
        X /= _smoothed_deviation()
    y = np.arange(n_samples) % 2
    X[y == 1] += EFFECT * telling
    return Images(X.reshape(n_samples, -1), y, telling.ravel())


def _smoothed_deviation() -> float:
    """Standard deviation that smoothing leaves to white noise of variance 1."""
    impulse = np.zeros((SIDE, SIDE))
    impulse[0, 0] = 1.0
    weights = gaussian_filter(impulse, SMOOTHNESS, mode="wrap")
    return float(np.sqrt((weights**2).sum()))


def _radii(centre: tuple[float, float]) -> FloatArray:
    rows, columns = np.indices((SIDE, SIDE))
    return np.hypot(rows - centre[0], columns - centre[1])


def _nearest(distances: FloatArray) -> BoolArray:
    """Return the cells of the smallest distances; of ties the first."""
    cells = np.zeros(SIDE * SIDE, dtype=bool)
    cells[np.argsort(distances, axis=None, kind="stable")[:CELLS]] = True
    return cells.reshape(SIDE, SIDE)
