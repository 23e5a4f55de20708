"""Spectrum of the Laplacian of a nearest-neighbour graph with Gaussian weights."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.neighbors import NearestNeighbors

from raysel.arrays import FloatArray

#: Largest number of samples: the dense matrices grow with its square, the time with its cube.
MOST_SAMPLES = 6000


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


def graph_spectrum(X: FloatArray, n_neighbors: int) -> GraphSpectrum:
    """Decompose the Laplacian of the nearest-neighbour graph of some samples.

    Samples a and b are joined if one is among the ``n_neighbors`` nearest others of the other, with the weight
    exp(-||x_a - x_b||^2 / g); g is the mean of the squared distances of all pairs of different samples.

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
    if key in _latest:
        _latest.move_to_end(key)
        return _latest[key]
    values, vectors = scipy.linalg.eigh(laplacian(X, n_neighbors), overwrite_a=True, check_finite=False)
    spectrum = GraphSpectrum(values, vectors)
    for array in (values, vectors):
        array.flags.writeable = False
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
    [1.22, 1.0, 0.22]
    """
    n = len(X)
    search = NearestNeighbors(n_neighbors=min(n_neighbors, n - 1), algorithm="brute").fit(X)
    distances, neighbours = search.kneighbors()
    # The sum over all pairs is n times that of the squared distances to the mean.
    width = 2.0 * float(((X - X.mean(axis=0)) ** 2).sum()) / (n - 1)
    weights = np.exp(-(distances**2) / width) if width > 0 else np.ones_like(distances)
    W = np.zeros((n, n))
    W[np.arange(n)[:, None], neighbours] = weights
    np.maximum(W, W.T, out=W)
    np.negative(W, out=W)
    W[np.diag_indices(n)] = -W.sum(axis=1)
    return W
