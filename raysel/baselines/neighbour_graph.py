"""Spectrum of the Laplacian of a nearest-neighbour graph with Gaussian weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from raysel.baselines.recent import RecentResults
from raysel.core.arrays import FloatArray

#: Largest number of samples: the dense matrices grow with its square, the time with its cube.
MOST_SAMPLES = 6000

#: Rounding error of a squared distance, as a share of the squared norms of its two samples.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


class GraphSpectrum(NamedTuple):
    """Eigenvalues and eigenvectors of a graph's Laplacian D - W."""

    #: Eigenvalues, ascending; the smallest is 0; shape (n,).
    values: FloatArray
    #: Eigenvectors, one a column; shape (n, n).
    vectors: FloatArray


#: Latest spectra, which configurations on one fold share; one of the largest graph fits.
_recent: RecentResults[GraphSpectrum] = RecentResults(MOST_SAMPLES * (MOST_SAMPLES + 1))


def graph_spectrum(X: FloatArray, n_neighbors: int) -> GraphSpectrum:
    """Decompose the Laplacian of the nearest-neighbour graph of some samples.

    Samples a and b are joined if one is among the ``n_neighbors`` nearest others of the other, with the weight
    exp(-||x_a - x_b||^2 / g); g is the mean of the squared distances of all pairs of different samples. All samples at
    the distance of the last neighbour count as neighbours, so that the order of the samples does not matter.

    `X` is (n, d).
    """

    def decompose() -> GraphSpectrum:
        # Transposed, i.e. in LAPACK's order, the matrix is overwritten and not copied.
        L = laplacian(X, n_neighbors).T
        return GraphSpectrum(*scipy.linalg.eigh(L, overwrite_a=True, check_finite=False))

    return _recent.get(f"{n_neighbors}", (X,), decompose)


def laplacian(X: FloatArray, n_neighbors: int) -> FloatArray:
    """Laplacian D - W of the nearest-neighbour graph of `graph_spectrum`. `X` is (n, d); returns (n, n)."""
    n = len(X)
    centred = X - X.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squared = centred @ centred.T
    squared *= -2.0
    squared += norms[:, None]
    squared += norms
    np.maximum(squared, 0.0, out=squared)
    squared[np.diag_indices(n)] = np.inf
    # The sum over all pairs is n times that of the squared distances to the mean.
    width = 2.0 * float(norms.sum()) / (n - 1) or 1.0
    k = min(n_neighbors, n - 1)
    joined = np.empty((n, n), dtype=bool)
    for row, norm, near in zip(squared, norms, joined, strict=True):
        # Distances that differ by less than their rounding errors count as equal.
        np.less_equal(row, np.partition(row, k - 1)[k - 1] + ROUNDING * (norm + norms), out=near)
    joined |= joined.T
    joined[np.diag_indices(n)] = False
    squared /= -width
    W = np.exp(squared, out=squared)
    W[~joined] = 0.0
    np.negative(W, out=W)
    W[np.diag_indices(n)] = -W.sum(axis=1)
    return W
