"""Newton's method on D_i x D_i matrices: the exact solution without the reduction to the range
of S_t.
"""

from __future__ import annotations

import scipy.linalg
from dense import dense_scatters


def run(tasks, size, iterations):
    """``iterations`` steps from the ratio 0."""
    scatters = [dense_scatters(X, y) for X, y in tasks]
    ratio = 0.0
    for _ in range(iterations):
        between = total = 0.0
        for B, T in scatters:
            subset = (len(T) - size, len(T) - 1)
            U = scipy.linalg.eigh(B - min(ratio, 1 - 1e-8) * T, subset_by_index=subset)[1]
            between, total = between + ((B @ U) * U).sum(), total + ((T @ U) * U).sum()
        ratio = between / total
    return ratio
