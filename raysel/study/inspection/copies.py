"""Remarks on equal and nearly equal samples, and on those that stand on both sides of a split."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from raysel.core.arrays import IntArray
from raysel.core.printing import by_number, listed
from raysel.data.dataset import Dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.leaks import Inspection

#: Number of rows that a remark names.
_NAMED = 3
#: What keeps samples together.
_NEAR = ": give both of a pair one value in a column that cv.groups names"
_EQUAL = ": set cv.groups to `equal samples`"
#: Columns can tell at most this many times as many samples apart as there are, if equal samples are
#: no wonder.
_ROOM = 10


def copy_remarks(
    findings: Inspection, dataset: Dataset, plan: NestedPlan | None = None
) -> Iterator[str]:
    """Remark on equal samples, and on pairs of samples that are nearly equal.

    Equal samples of a table whose few columns have few values are no copies, and are not remarked
    on.
    """
    part = findings.part
    ids = part.row_ids
    sizes = np.bincount(ids)
    if sizes.max() > 1 and not _few_possible(findings):
        equal = np.flatnonzero(sizes[ids] > 1)
        told = f"{len(equal)} of {len(ids)} samples are equal to another in all features"
        if _differ(part.y[equal], ids[equal]):
            told += ", some of them with different labels"
        tested, apart = _across(ids, findings, dataset, plan)
        if apart:
            told += _EQUAL
        first = np.flatnonzero(ids == ids[equal[0]])
        yield f"{told}.\nThey are e.g. {_rows(part.rows[first])}{tested}"
    near = findings.near
    if near is not None and len(near.pairs):
        n_pairs = len(near.pairs)
        told = f"{n_pairs} {by_number(n_pairs, 'pair', 'pairs')} of samples"
        if near.n_searched < len(sizes):
            told += f" among {near.n_searched} samples that were searched"
        told += f" {by_number(n_pairs, 'is', 'are')} nearly equal"
        tested, apart = _across(_joined(ids, near.pairs), findings, dataset, plan)
        if apart:
            told += _NEAR
        yield (
            f"{told}.\nThey are at {near.share:.1%} or less of the usual distance to the nearest"
            f" sample, e.g. {_rows(part.rows[near.pairs[0]])}{tested}"
        )


def _few_possible(findings: Inspection) -> bool:
    """Return whether the columns have so few values that equal samples are to be expected."""
    X = findings.part.X
    room = accumulate(np.log(len(np.unique(X[:, column]))) for column in range(X.shape[1]))
    return all(so_far <= np.log(_ROOM * len(X)) for so_far in room)


def _differ(y: np.ndarray, ids: IntArray) -> bool:
    """Return whether samples of one number have different labels."""
    first = np.unique(ids, return_index=True)[1]
    position = np.searchsorted(ids[first], ids, sorter=np.argsort(ids[first]))
    return bool(np.any(y != y[first][position]))


def _joined(ids: IntArray, pairs: IntArray) -> IntArray:
    """Number the samples of pairs so that both of each have one number; -1 for all others."""
    n = int(ids.max()) + 1
    a, b = ids[pairs[:, 0]], ids[pairs[:, 1]]
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    components = connected_components(graph, directed=False)[1].astype(np.int64)
    return np.where(np.isin(ids, [a, b]), components[ids], -1)


def _across(
    ids: IntArray,
    findings: Inspection,
    dataset: Dataset,
    plan: NestedPlan | None,
) -> tuple[str, bool]:
    """Return how many test samples have their number in the training set, and if any may have."""
    if plan is None:
        return ".", dataset.groups is None
    part = findings.part
    number = np.full(dataset.n_samples, -1)
    number[part.rows] = ids
    codes = np.full(dataset.n_samples, -1)
    codes[part.rows] = part.codes
    leaked: set[int] = set()
    otherwise: set[int] = set()
    for fold in plan.outer:
        test = fold.test[np.isin(number[fold.test], number[fold.train]) & (number[fold.test] >= 0)]
        pairs = number * (part.codes.max() + 2) + codes
        alike = np.isin(pairs[test], pairs[fold.train])
        leaked.update(test.tolist())
        otherwise.update(test[~alike].tolist())
    if not leaked:
        return "; no test sample has one in its training set.", False
    n = len(leaked)
    told = f"; {n} test {by_number(n, 'sample has one in its', 'samples have one in their')}"
    told += " training set"
    if otherwise:
        told += by_number(n, ", ", f", {len(otherwise)} of them ") + "with another label"
    return f"{told}.", True


def _rows(rows: IntArray) -> str:
    return f"rows {listed(rows.tolist(), _NAMED, ', ...')}, counted from 0"
