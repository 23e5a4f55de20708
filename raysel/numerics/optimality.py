"""How far an objective may be above the optimum, by a lower bound of this."""

from __future__ import annotations

import numpy as np


def relative_gap(objective: float, lower: float) -> float:
    """Upper bound of (P - P*) / P* for an objective P and a lower bound of the optimum P*."""
    if objective <= lower:
        return 0.0
    if lower > 0:
        return (objective - lower) / lower
    return np.inf
