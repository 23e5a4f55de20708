"""Matrix products whose exact zeros survive rounding."""

from __future__ import annotations

import numpy as np

from raysel.core.arrays import FloatArray

EPS = float(np.finfo(np.float64).eps)


def rounding(A: FloatArray, B: FloatArray) -> FloatArray:
    """Bound of the rounding errors of ``A @ B``.

    A sum of n products has an error of at most ``n eps / 2 sum |a||b|``, in whatever order it is made; twice that
    bounds it for entries that are rounded themselves.
    """
    return A.shape[1] * EPS * (np.abs(A) @ np.abs(B))


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """``A @ B``, with 0 where it may be rounding alone."""
    C = A @ B
    C[np.abs(C) <= rounding(A, B)] = 0.0
    return C
