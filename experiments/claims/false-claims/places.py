"""Pixels of a map, which resemble those near them: blocks that are too small for that."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter
from trap import Data, StudyTrap, says

#: Side of the map and of the blocks, standard deviation of the Gaussian that smooths it, all in pixels.
SIDE, BLOCK, WIDTH = 60, 15, 8


def pixels_in_blocks(rng: np.random.Generator) -> Data:
    """600 pixels in any order: ten smooth bands, and a smooth class that they do not tell, in blocks of 15 x 15."""
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


TRAPS: dict[str, StudyTrap] = {
    "pixels in blocks": StudyTrap(
        pixels_in_blocks,
        "asks for larger blocks",
        says("like training samples near them in row and col"),
    ),
}
