"""Scores of nearest-neighbour classifiers: differences of the distances to the classes."""

from __future__ import annotations

import numpy as np

from raysel.arrays import FloatArray


def distance_differences(nearest: FloatArray) -> FloatArray:
    """Score of each class: distance to the nearest sample of another class minus that to the nearest of its own.

        s_r(x) = min_(q != r) d_q(x) - d_r(x)

    The largest score is that of the class of the nearest sample. Unlike -d_r(x), the scores of a class are comparable
    across samples: a sample that is far from all classes is no worse than one that is near to all.

    `nearest` is (n_samples, n_classes); returns (n_samples, n_classes).
    """
    rows = np.arange(len(nearest))
    own = nearest.argmin(axis=1)
    first_two = np.partition(nearest, 1, axis=1)
    others = np.repeat(first_two[:, :1], nearest.shape[1], axis=1)
    others[rows, own] = first_two[:, 1]
    return others - nearest
