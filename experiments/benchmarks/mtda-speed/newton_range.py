"""Newton's method in the range of S_t like raysel's, but step by step where the ratio 1 is
attained too.
"""

from __future__ import annotations

import numpy as np

from raysel.numerics.discriminants import LARGEST_RATIO, scatter_range, shared_ratio, shrunken


def run(tasks, size, iterations):
    """``iterations`` steps from the ratio 0, and the projections in the original features."""
    ranges = [scatter_range(X, y, len(np.unique(y))) for X, y in tasks]
    problems = [shrunken(reduced.between, reduced.total) for reduced in ranges]
    weights = np.array([1 / problem.trace for problem in problems])
    ratio = 0.0
    for _ in range(iterations):
        bases = [problem.leading(min(ratio, LARGEST_RATIO), size) for problem in problems]
        ratio = shared_ratio(problems, bases, weights)
    for (X, _), reduced, V in zip(tasks, ranges, bases, strict=True):
        reduced.lift(X - reduced.mean, V)
    return ratio
