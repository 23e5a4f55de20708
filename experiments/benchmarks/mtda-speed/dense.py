"""The scatter matrices that both dense peers start from."""

from __future__ import annotations

import numpy as np


def dense_scatters(X, y):
    """S_b and S_t (D x D), divided by n, in units of tr(S_t)."""
    centred = X - X.mean(axis=0)
    total = centred.T @ centred / len(X)
    means = np.stack(
        [centred[y == c].sum(axis=0) / np.sqrt((y == c).sum() * len(X)) for c in np.unique(y)]
    )
    return means.T @ means / np.trace(total), total / np.trace(total)
