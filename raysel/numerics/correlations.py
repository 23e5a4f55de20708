"""Correlations of columns, and the groups of those that correlate."""

from __future__ import annotations

import math

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from raysel.core.arrays import BoolArray, FloatArray, IntArray

#: A column whose standard deviation is below this share of its largest absolute value is constant
#: up to rounding.
_CONSTANT = 1e-9
#: Correlations that are held at once.
_AT_ONCE = 4_000_000
#: Rounding of a correlation.
_ROUNDING = 1e-10


def unit_columns(samples: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Shift and scale each column to mean zero and length one; constant columns become zero.

    The samples are overwritten.
    """
    largest = np.maximum(samples.max(axis=0), -samples.min(axis=0))
    samples /= np.where(largest > 0, largest, 1.0)  # so that squares neither overflow nor vanish
    samples -= samples.mean(axis=0)
    squares = np.zeros(samples.shape[1])
    for row in samples:  # all squares at once would take as much memory as the samples
        squares += row**2
    lengths = np.sqrt(squares)
    varies: BoolArray = lengths > _CONSTANT * math.sqrt(len(samples))
    samples /= np.where(varies, lengths, 1.0)
    samples[:, ~varies] = 0.0
    return samples, varies


def correlated_groups(X: FloatArray, at: float) -> IntArray:
    """Return the number of each column's group; the columns of a group correlate with each other.

    The groups are the clusters of complete linkage by the distance 1 - abs(r), cut at 1 - ``at``:
    any two columns of a group have an absolute correlation of ``at`` or more. A constant column is
    a group of its own.

    X has no NaN, and ``at`` lies above 0 and is at most 1. Returns shape (n_features,), numbered
    from 0 in the order of the first column of each group.
    """
    columns, _ = unit_columns(np.array(X, dtype=np.float64))
    numbers = np.arange(columns.shape[1])
    # Complete linkage joins only columns of one component below the cut, so each is one problem.
    for component in _components(columns, at):
        Z = columns[:, component]
        apart = np.clip(1.0 - np.abs(Z.T @ Z), 0.0, None)
        distances = apart[np.triu_indices(len(component), 1)]
        clusters = fcluster(linkage(distances, "complete"), 1.0 - at + _ROUNDING, "distance")
        first = np.unique(clusters, return_index=True)[1]
        numbers[component] = component[first[clusters - 1]]
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _components(Z: FloatArray, at: float) -> list[IntArray]:
    """Return the components of two columns or more of the graph abs(r) >= ``at``."""
    n = Z.shape[1]
    numbers: IntArray = np.arange(n)
    step = max(1, _AT_ONCE // n)
    for start in range(0, n, step):
        correlations = np.abs(Z[:, start : start + step].T @ Z[:, start:])
        first, second = np.nonzero(correlations >= at - _ROUNDING)
        pairs = numbers[first + start], numbers[second + start]
        graph = coo_array((np.ones(len(first), dtype=bool), pairs), shape=(n, n))
        numbers = connected_components(graph, directed=False)[1][numbers].astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    components = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    return [component for component in components if len(component) > 1]
