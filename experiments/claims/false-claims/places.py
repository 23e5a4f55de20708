"""Pixels of a map, which resemble those near them: blocks that are too small for that."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter
from trap import Data, StudyTrap, says

#: Side of the map and of the blocks, standard deviation of the Gaussian that smooths it, all in
#: pixels.
SIDE, BLOCK, WIDTH = 60, 15, 8


def pixels_in_blocks(rng: np.random.Generator) -> Data:
    """600 pixels in any order: ten smooth bands, and a smooth class that they do not tell, in
    blocks of 15 x 15.
    """
    fields = [gaussian_filter(rng.standard_normal((SIDE, SIDE)), WIDTH) for _ in range(11)]
    *bands, of_class = (field.ravel() / field.std() for field in fields)
    rows = rng.permutation(SIDE * SIDE)[:600]
    row, col = np.unravel_index(rows, (SIDE, SIDE))
    X = pd.DataFrame({f"band{i}": band[rows] for i, band in enumerate(bands)})
    X = X.assign(row=row, col=col, block=row // BLOCK * SIDE + col // BLOCK)
    y = np.searchsorted(np.quantile(of_class, [1 / 3, 2 / 3]), of_class[rows])
    return (
        X,
        y,
        {"cv": {"outer": 5, "inner": 3, "groups": "block"}, "dataset": {"drop": ["row", "col"]}},
    )


def _drawn(rng: np.random.Generator, bands: np.ndarray, of_class: np.ndarray) -> Data:
    """600 pixels of a map in any order, with their places, which the study drops."""
    rows = rng.permutation(SIDE * SIDE)[:600]
    row, col = np.unravel_index(rows, (SIDE, SIDE))
    X = pd.DataFrame(bands[rows], columns=[f"band{i}" for i in range(bands.shape[1])])
    keys = {"dataset": {"drop": ["row", "col"]}}
    return X.assign(row=row, col=col), (of_class[rows] > 0).astype(int), keys


def noisy_scene(rng: np.random.Generator) -> Data:
    """30 bands, of which each is mostly noise, and a class as smooth as they are that they do
    not tell.
    """
    *fields, of_class = (gaussian_filter(rng.standard_normal((SIDE, SIDE)), 6) for _ in range(31))
    bands = np.stack([field.ravel() / field.std() for field in fields], axis=1)
    return _drawn(rng, bands + 2 * rng.standard_normal(bands.shape), of_class.ravel())


def mixed_scene(rng: np.random.Generator) -> Data:
    """Ten bands that show the smooth field whose sign is the class, and noise: far pixels show
    as much as near ones.
    """
    field = gaussian_filter(rng.standard_normal((SIDE, SIDE)), 6).ravel()
    bands = np.outer(field / field.std(), rng.standard_normal(10))
    return _drawn(rng, bands + rng.standard_normal(bands.shape), field)


_NEAR = says("like training samples near them in row and col")

TRAPS: dict[str, StudyTrap] = {
    "pixels in blocks": StudyTrap(
        pixels_in_blocks,
        "asks for larger blocks",
        _NEAR,
    ),
    "noisy pixels of a scene": StudyTrap(noisy_scene, "asks for blocks as groups", _NEAR),
    "mixed pixels of a scene": StudyTrap(
        mixed_scene, "no remark on places", lambda result: not _NEAR(result)
    ),
}
