"""Regions of neighbouring columns that vary alike, by Ward's method with their neighbourhood."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from raysel.core.arrays import FloatArray, IntArray


def grid_neighbours(cells: IntArray) -> csr_array:
    """Return which columns are neighbours along an axis of an array, as a symmetric matrix.

    `cells` holds the number of each cell's column, from 0, and -1 where there is none.
    """
    n = int(cells.max()) + 1
    firsts, seconds = [], []
    for axis in range(cells.ndim):
        along = np.moveaxis(cells, axis, 0)
        first, second = along[:-1].ravel(), along[1:].ravel()
        both = (first >= 0) & (second >= 0)
        firsts.append(first[both])
        seconds.append(second[both])
    return _symmetric(np.concatenate(firsts), np.concatenate(seconds), n)


def form_regions(X: FloatArray, neighbours: csr_array, n_regions: int) -> IntArray:
    """Return the number of each column's region, from 0; shape (d,).

    The columns of a region are connected. There are more than `n_regions` regions where the columns
    are in more pieces.
    """
    from sklearn.cluster import FeatureAgglomeration  # noqa: PLC0415 - takes long to import

    if X.shape[1] <= n_regions:
        return np.arange(X.shape[1])
    pieces = connected_components(neighbours, directed=False)[1]
    # Pieces are chained, since Ward's method needs one; a region over several is divided again.
    firsts = np.unique(pieces, return_index=True)[1]
    chain = _symmetric(firsts[:-1], firsts[1:], X.shape[1])
    ward = FeatureAgglomeration(n_regions, connectivity=neighbours + chain)
    joined = np.stack([ward.fit(X).labels_, pieces])
    regions: IntArray = np.unique(joined, axis=1, return_inverse=True)[1].ravel()
    return regions.astype(np.int64)


def average_regions(X: FloatArray, regions: IntArray) -> FloatArray:
    """Return the mean of each region's columns; shape (n, r)."""
    counts = np.bincount(regions)
    of_region = csr_array(
        (np.ones(len(regions)), (np.arange(len(regions)), regions)), (len(regions), len(counts))
    )
    means: FloatArray = np.asarray(X @ of_region) / counts
    return means


def _symmetric(first: IntArray, second: IntArray, n: int) -> csr_array:
    """Return a symmetric matrix with a 1 for each pair of columns."""
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
