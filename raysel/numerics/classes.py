"""Classes of labels, of which every method with classes needs two."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError


def distinct_classes(y: ArrayLike) -> tuple[LabelArray, IntArray]:
    """Find the classes of labels, and number them in their order.

    `y` is (n_samples,); returns `classes` (n_classes,), `codes` (n_samples,).
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"y holds one class only ({classes[0]!s}); at least two are needed.")
    return classes, codes


def distance_differences(nearest: FloatArray) -> FloatArray:
    """Score of each class: distance to the nearest sample of another class minus that to the nearest of its own.

        s_r(x) = min_(q != r) d_q(x) - d_r(x)

    The largest score is that of the class of the nearest sample. Unlike -d_r(x), the scores of a class are comparable
    across samples: a sample that is far from all classes is no worse than one that is near to all.

    `nearest` is (n_samples, n_classes); returns (n_samples, n_classes).
    """
    rows = np.arange(len(nearest))
    nearest_class = nearest.argmin(axis=1)
    first_two = np.partition(nearest, 1, axis=1)
    others = np.repeat(first_two[:, :1], nearest.shape[1], axis=1)
    others[rows, nearest_class] = first_two[:, 1]
    return others - nearest
