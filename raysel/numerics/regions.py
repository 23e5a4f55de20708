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

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.numerics.conditional_tests import Folds, conditional_test, distil_labels
from raysel.numerics.parcels import average_regions


def region_means(X: FloatArray, regions: IntArray) -> FloatArray:
    """Return the mean of each region's columns, with mean 0 and variance 1; shape (n, r)."""
    means = average_regions(X, regions)
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
