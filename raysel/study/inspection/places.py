"""Remark on samples that resemble those near them in place, by columns that tell where each was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.spatial import cKDTree

from raysel.core.arrays import FloatArray, IntArray
from raysel.data.formats.recognition import places
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.label_columns import BY_CHANCE
from raysel.study.inspection.parts import MOST_QUERIES, Part, deviations, projected

#: Fewest samples of which places are looked at, and fewest values of each column of a grid.
_FEWEST, _FEWEST_VALUES = 40, 5
#: Most columns of few, equally spaced values among which a grid is sought: more are pixels or counts.
_MOST_COLUMNS = 20
#: First samples which, if all have values of their own, show that a column is a measurement.
_GLIMPSE = 256
#: Mean correlation, within the classes, of samples with the nearest in place, above which they are alike, and the
#: standard score of it, and of the share of them with one label, that is no chance.
_ALIKE, _SCORE = 0.2, 5.0
#: Correlation at which samples are not alike any more, and the most samples that this is measured on.
_APART, _MOST_SAMPLES = 0.1, 1000
#: Number of pairs of samples over which the correlation at one distance is taken.
_PAIRS = 200


def place_remark(
    part: Part, plan: NestedPlan | None = None, beside: Mapping[str, FloatArray] | None = None
) -> str | None:
    """Remark if samples near each other in place are alike, and so are their labels.

    Places are the columns of the part, or those ``beside`` it, that are called so or hold the cells of a grid. With the
    folds of a plan, None if test samples are hardly like the training samples that are nearest in place.
    """
    found = _places(part, beside or {})
    if found is None or len(part.X) < _FEWEST:
        return None
    names, columns, P = found
    kept = np.setdiff1d(np.arange(len(part.names)), columns)
    if not len(kept):
        return None
    n, rng = len(part.X), np.random.default_rng(0)
    X = part.X if len(kept) == len(part.names) else part.X[:, kept]
    W = deviations(projected(X, np.arange(n), not part.image, rng), part.codes)
    rows = np.sort(rng.permutation(n)[:MOST_QUERIES])
    near = _nearest(P, rows)
    alike = (W[rows] * W[near]).sum(axis=1)
    by_chance = float((W[rows] * W[rng.permutation(n)[: len(rows)]]).sum(axis=1).std())
    least = max(_ALIKE, _SCORE * by_chance / math.sqrt(len(rows)))
    if alike.mean() < least or not _agree(part.codes, rows, near):
        return None
    where, reach = " and ".join(names), _reach(P, W, float(alike.mean()))
    if plan is None:
        return (
            f"Samples up to about {reach:.2g} apart in {where} are alike: for the score of new places, name blocks "
            "several times as wide in cv.groups."
        )
    left = _left(P, W, part.rows, plan)
    if left <= _ALIKE:
        return None
    return (
        f"Test samples are like training samples near them in {where}: name blocks several times {reach:.2g} wide in "
        f"cv.groups.\nThey correlate with the nearest training sample, within a class, by {left:.2f}; the scores are too "
        "high for new places."
    )


def _places(
    part: Part, beside: Mapping[str, FloatArray]
) -> tuple[tuple[str, ...], list[int], FloatArray] | None:
    """Names of the columns that tell the place, which columns of the part they are, and the places."""
    if part.image:
        return None
    own = [part.own_name(column) for column in range(len(part.names))] if part.named else []
    for names in places([*own, *beside]):
        columns = [own.index(name) for name in names if name in own]
        values = [
            part.X[:, own.index(name)] if name in own else beside[name][part.rows] for name in names
        ]
        return names, columns, np.stack(values, axis=1)
    pair = _grid(part)
    if pair is None:
        return None
    return tuple(map(part.own_name, pair)), list(pair), part.X[:, pair]


def _grid(part: Part) -> tuple[int, int] | None:
    """Find two columns of equally spaced values that each sample has another pair of, which is no chance.

    Of n samples at random cells of a grid of m about n^2 / 2 m share theirs with another one.
    """
    n = len(part.X)
    sizes = {column: size for column in range(len(part.names)) if (size := _length(part, column))}
    if not 2 <= len(sizes) <= _MOST_COLUMNS:
        return None
    for pair in combinations(sizes, 2):
        shared = n**2 / (2 * math.prod(sizes[column] for column in pair))
        by_chance = shared <= math.log(math.comb(len(sizes), 2) / BY_CHANCE)
        if not by_chance and len(np.unique(part.X[:, pair], axis=0)) == n:
            return pair
    return None


def _length(part: Part, column: int) -> int:
    """Number of steps from the least to the largest value of a column of equally spaced ones; 0 for any other."""
    values = part.X[:, column]
    if len(np.unique(values[:_GLIMPSE])) == _GLIMPSE:
        return 0
    distinct = np.unique(values)
    if not _FEWEST_VALUES <= len(distinct) <= len(values) // 2:
        return 0
    steps = np.diff(distinct) / np.diff(distinct).min()
    if np.abs(steps - steps.round()).max() > 1e-6:
        return 0
    return 1 + int(steps.round().sum())


def _nearest(P: FloatArray, rows: IntArray) -> IntArray:
    """Position of the sample that is nearest in place to each of some."""
    found = np.asarray(cKDTree(P).query(P[rows], k=2)[1])
    return np.asarray(np.where(found[:, 0] == rows, found[:, 1], found[:, 0]))


def _agree(codes: IntArray, rows: IntArray, near: IntArray) -> bool:
    """Whether samples have the label of the nearest in place more often than by chance."""
    expected = float(((np.bincount(codes) / len(codes)) ** 2).sum())
    spread = math.sqrt(max(expected * (1 - expected), np.finfo(np.float64).tiny) / len(rows))
    return bool((codes[rows] == codes[near]).mean() - expected >= _SCORE * spread)


def _left(P: FloatArray, W: FloatArray, rows: IntArray, plan: NestedPlan) -> float:
    """Mean correlation of the test samples, over the outer folds, with the training sample nearest in place."""
    place = np.full(plan.n_samples, -1)
    place[rows] = np.arange(len(rows))
    products = []
    for fold in plan.outer:
        test, train = place[fold.test], place[fold.train]
        test, train = test[test >= 0], train[train >= 0]
        if len(test) and len(train):
            near = train[np.asarray(cKDTree(P[train]).query(P[test])[1])]
            products.append((W[test] * W[near]).sum(axis=1))
    return float(np.concatenate(products).mean()) if products else 0.0


def _reach(P: FloatArray, W: FloatArray, nearest: float) -> float:
    """Distance at which samples do not correlate any more."""
    rows = np.random.default_rng(0).permutation(len(P))[:_MOST_SAMPLES]
    first, second = np.triu_indices(len(rows), 1)
    apart = np.linalg.norm(P[rows[first]] - P[rows[second]], axis=1)
    order = np.argsort(apart, kind="stable")
    alike = (W[rows] @ W[rows].T)[first, second][order]
    n_bins = max(1, len(alike) // _PAIRS)
    means = [piece.mean() for piece in np.array_split(alike, n_bins)]
    ends = [piece[-1] for piece in np.array_split(apart[order], n_bins)]
    below = np.flatnonzero(np.array(means) < min(_APART, nearest / 3))
    return float(ends[below[0]] if len(below) else ends[-1])
