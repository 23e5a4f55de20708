"""Spectrum of the Laplacian of a nearest-neighbour graph with Gaussian weights."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from raysel.arrays import FloatArray

#: Largest number of samples: the dense matrices grow with its square, the time with its cube.
MOST_SAMPLES = 6000

#: Rounding error of a squared distance, as a share of the squared norms of its two samples.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class GraphSpectrum:
    """Eigenvalues and eigenvectors of a graph's Laplacian D - W.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Eigenvalues, ascending; the smallest is 0.
    vectors : ndarray of shape (n, n)
        Eigenvectors, one a column.
    """

    values: FloatArray
    vectors: FloatArray


#: Latest spectra by a digest of their samples, so that configurations on one fold share them; in total they hold at
#: most MOST_SAMPLES^2 numbers.
_latest: OrderedDict[bytes, GraphSpectrum] = OrderedDict()
#: Held while `_latest` is read or changed, so that models can predict in several threads.
_lock = threading.Lock()


def graph_spectrum(X: FloatArray, n_neighbors: int) -> GraphSpectrum:
    """Decompose the Laplacian of the nearest-neighbour graph of some samples.

    Samples a and b are joined if one is among the ``n_neighbors`` nearest others of the other, with the weight
    exp(-||x_a - x_b||^2 / g); g is the mean of the squared distances of all pairs of different samples. All samples at
    the distance of the last neighbour count as neighbours, so that the order of the samples does not matter.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples, at least two.
    n_neighbors : int
        Number of neighbours; more than n - 1 count as n - 1.

    Returns
    -------
    GraphSpectrum
        Read-only arrays, which later calls with the same arguments may return again.
    """
    digest = hashlib.blake2b(f"{X.shape} {n_neighbors}".encode())
    digest.update(np.ascontiguousarray(X).data)
    key = digest.digest()
    with _lock:
        if key in _latest:
            _latest.move_to_end(key)
            return _latest[key]
    # Transposed, i.e. in LAPACK's order, the matrix is overwritten and not copied.
    values, vectors = scipy.linalg.eigh(laplacian(X, n_neighbors).T, overwrite_a=True, check_finite=False)
    spectrum = GraphSpectrum(values, vectors)
    for array in (values, vectors):
        array.flags.writeable = False
    with _lock:
        _latest[key] = spectrum
        while sum(kept.vectors.size for kept in _latest.values()) > MOST_SAMPLES**2:
            _latest.popitem(last=False)
    return spectrum


def laplacian(X: FloatArray, n_neighbors: int) -> FloatArray:
    """Laplacian D - W of the nearest-neighbour graph of `graph_spectrum`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples, at least two.
    n_neighbors : int
        Number of neighbours; more than n - 1 count as n - 1.

    Returns
    -------
    ndarray of shape (n, n)
        Symmetric, positive semidefinite matrix whose rows sum to zero.

    Examples
    --------
    >>> laplacian(np.array([[0.0], [0.0], [5.0]]), 1).diagonal().round(2).tolist()
    [1.22, 1.22, 0.45]
    """
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
