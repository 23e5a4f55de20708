"""Classes of labels, of which every method with classes needs two."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raysel.arrays import IntArray, LabelArray
from raysel.errors import DataError


def distinct_classes(y: ArrayLike) -> tuple[LabelArray, IntArray]:
    """Find the classes of labels, and number them in their order.

    `y` is (n_samples,); returns `classes` (n_classes,), `codes` (n_samples,).
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!s}); at least two are needed.")
    return classes, codes
