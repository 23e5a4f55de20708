r"""Regions of neighbouring columns: clusterings of random subsets, and p values joined over them.

Each clustering divides the columns into regions by Ward's method with the neighbours as
connectivity. A region is tested by the mean of its columns given those of all other regions. The p
value of a column is twice the median of those of its regions over the clusterings. This keeps the
error rate of a single clustering (Meinshausen, Meier & Bühlmann 2009, JASA 104(488), 1671-1681),
up to columns in the same region as one that tells: ensembles of clustered inference (Chevalier,
Nguyen, Thirion & Salmon 2022, Statistics and Computing 32, 93).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import FeatureAgglomeration

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.numerics.conditional_tests import Folds, conditional_test, distil_labels


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


def region_means(X: FloatArray, regions: IntArray) -> FloatArray:
    """Return the mean of each region's columns, with mean 0 and variance 1; shape (n, r)."""
    n_regions = int(regions.max()) + 1
    of_region = csr_array(
        (np.ones(len(regions)), (np.arange(len(regions)), regions)), (len(regions), n_regions)
    )
    means = np.asarray(X @ of_region) / np.bincount(regions)
    means -= means.mean(axis=0)
    return means / np.maximum(means.std(axis=0), np.finfo(float).tiny)


def region_p_values(
    X: FloatArray,
    Y: FloatArray,
    regions: IntArray,
    units: IntArray,
    *,
    beside: FloatArray,
    folds: Folds,
) -> FloatArray:
    """Return the p value of each region given all others and the columns `beside` them (n, k).

    It is 1 of the regions to which a lasso of all regions gives no weight. `Y`, `units` and `folds`
    are as of `conditional_test`.
    """
    means = region_means(X, regions)
    columns = np.hstack([means, beside])
    distilled = distil_labels(columns, Y, folds)
    p_values = np.ones(means.shape[1])
    for region in np.flatnonzero(distilled.has_weight[: len(p_values)]).tolist():
        found = conditional_test(
            columns, Y, np.array([region]), units, alpha=distilled.alpha, folds=folds
        )
        p_values[region] = found.p_value
    return p_values


def join_p_values(p_values: FloatArray) -> FloatArray:
    """Return twice the median over the clusterings, at most 1; of shape (b, d) to (d,)."""
    return np.minimum(1.0, 2 * np.median(p_values, axis=0))


def connected_sets(chosen: BoolArray, neighbours: csr_array) -> IntArray:
    """Return the number of each chosen column's connected set, from 0, and -1 of the others."""
    columns = np.flatnonzero(chosen)
    sets = np.full(len(chosen), -1)
    sets[columns] = connected_components(neighbours[columns][:, columns], directed=False)[1]
    return sets


def _symmetric(first: IntArray, second: IntArray, n: int) -> csr_array:
    """Return a symmetric matrix with a 1 for each pair of columns."""
    rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
