"""Graph of nearest neighbours with weights of a heat kernel, and its Laplacian."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.neighbors import kneighbors_graph

from raysel.arrays import FloatArray


def heat_kernel_laplacian(X: FloatArray, n_neighbors: int) -> csr_array:
    """Laplacian ``L = diag(A 1) - A`` of the graph that joins each sample to its nearest neighbours.

    ``A_ab = exp(-||x_a - x_b||^2 / g)`` where a is among the nearest neighbours of b or b among those of a, and 0
    elsewhere; g is the mean of the squared distances over all n_samples^2 pairs. A sample far from all others, whose
    weights vanish in double precision, has a row of zeros in L. A sample is no neighbour of itself. Without features
    L is zero.

    `X` is (n_samples, n_features); returns (n_samples, n_samples).
    """
    n = len(X)
    if n < 2 or X.shape[1] == 0:
        return csr_array((n, n))
    graph = csr_array(kneighbors_graph(X, min(n_neighbors, n - 1), mode="distance", include_self=False))
    # The mean over all pairs is twice the mean squared distance from the centre.
    width = 2.0 * float(((X - X.mean(axis=0)) ** 2).sum()) / n
    graph.data = np.exp(-(graph.data**2) / (width if width > 0 else 1.0))
    graph = graph.maximum(graph.T)
    return csr_array(diags_array(graph.sum(axis=1)) - graph)
