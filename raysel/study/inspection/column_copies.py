"""Remark on columns that are copies of others, of which permutation importance misses none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import by_number, listed
from raysel.data.dataset import Dataset
from raysel.study.inspection.column_correlations import chosen_samples
from raysel.study.inspection.parts import Part, parts

#: Least rank correlation, of either sign, of two columns that replace each other.
_COPIES = 0.99
#: Columns that are compared with all others at once.
_COLUMNS = 512
#: Fewer samples may have equal ranks by chance.
_FEWEST = 20
#: Groups that a remark names, and columns of each.
_GROUPS, _NAMED = 3, 4


def column_copies(X: FloatArray) -> list[IntArray]:
    """Return the groups of columns of equal ranks, whatever their units and signs, largest first.

    Columns of one group are joined by pairs of absolute rank correlation (Spearman) of 0.99 or
    more, on 500 samples at most; constant columns are in none. Of fewer than 20 samples no groups
    are told.
    """
    samples, _ = chosen_samples(X)
    if len(samples) < _FEWEST:
        return []
    ranks = rankdata(samples, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.linalg.norm(ranks, axis=0)
    ranks /= np.where(norms > 0, norms, 1.0)
    n = X.shape[1]
    numbers: IntArray = np.arange(n)
    for start in range(0, n, _COLUMNS):
        first, second = np.nonzero(np.abs(ranks[:, start : start + _COLUMNS].T @ ranks) >= _COPIES)
        pairs = numbers[first + start], numbers[second]
        graph = coo_array((np.ones(len(first), dtype=bool), pairs), shape=(n, n))
        numbers = connected_components(graph, directed=False)[1][numbers].astype(np.int64)
    groups = np.split(
        np.argsort(numbers, kind="stable"), np.flatnonzero(np.diff(np.sort(numbers))) + 1
    )
    copies = [group.astype(np.int64) for group in groups if len(group) > 1]
    return sorted(copies, key=lambda group: (-len(group), int(group[0])))


def column_copy_remarks(dataset: Dataset) -> Iterator[str]:
    """Remark on the groups of copies among the columns, in each task."""
    for part in parts(dataset):
        groups = column_copies(part.X)
        if groups:
            yield f"{part.heading}{_remark(groups, part)}"


def _remark(groups: list[IntArray], part: Part) -> str:
    n_columns, n_groups = sum(map(len, groups)), len(groups)
    named = [
        listed([part.own_name(column) for column in group.tolist()], _NAMED)
        for group in groups[:_GROUPS]
    ]
    if n_groups > _GROUPS:
        named.append("...")
    return (
        f"{n_columns} columns are {n_groups} {by_number(n_groups, 'group', 'groups')} of copies,"
        " whose permutation importance is too low, as each replaces the other: keep one of each"
        f" group (dataset.drop).\nTheir ranks correlate at {_COPIES} or more: {'; '.join(named)}."
    )
