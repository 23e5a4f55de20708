"""Graphs of neighbours by plain loops, for the tests of the multi-label methods."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform


def graph_by_loops(X, k):
    D = squareform(pdist(X))
    W = np.zeros_like(D)
    g = (pdist(X) ** 2).mean()
    for a in range(len(X)):
        for b in [b for b in np.argsort(D[a], kind="stable") if b != a][:k]:
            W[a, b] = W[b, a] = np.exp(-(D[a, b] ** 2) / g)
    return np.diag(W.sum(axis=1)) - W
