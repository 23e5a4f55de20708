"""Remark on samples like those near them in place, by columns that tell the place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.data.formats.recognition import places
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.label_columns import BY_CHANCE
from raysel.study.inspection.nearness import N_NEIGHBORS, nearness
from raysel.study.inspection.parts import Part, deviations, projected

#: Fewest samples of which places are looked at, and fewest values of each column of a grid.
_FEWEST, _FEWEST_VALUES = 40, 5
#: Most columns of few, equally spaced values among which a grid is sought: more are pixels or
#: counts.
_MOST_COLUMNS = 20
#: First samples which, if all have values of their own, show that a column is a measurement.
_GLIMPSE = 256
#: Correlation, within the classes, at which samples are not alike any more; its share of that of
#: the nearest ones.
_APART, _OF_NEAREST = 0.1, 1 / 3
#: Most samples over which correlation is taken by distance, pairs of a distance, and fewest
#: distances.
_MOST_SAMPLES, _PAIRS, _FEWEST_DISTANCES = 1000, 2000, 10
#: Loss of agreeing neighbours, and its standard score, that is no chance.
_LOSS, _SCORE = 0.02, 4.0


def place_remark(
    part: Part, plan: NestedPlan | None = None, beside: Mapping[str, FloatArray] | None = None
) -> str | None:
    """Remark if labels are told by samples near in place more than by others of their classes.

    Places are the columns of the part, or those ``beside`` it, that are called so or hold the cells
    of a grid. Without places nothing is said: pixels of one scene at random places are independent
    draws of what is in that scene, so that their features and labels alone cannot tell them from
    any other samples.
    """
    found = _places(part, beside or {})
    if found is None or len(part.X) < _FEWEST:
        return None
    names, columns, P = found
    kept = np.setdiff1d(np.arange(len(part.names)), columns)
    if not len(kept):
        return None
    n = len(part.X)
    X = part.X
    if len(kept) < len(part.names):
        X = X[:, kept]
    Z = projected(X, np.arange(n), not part.image, np.random.default_rng(0))
    looks = nearness(P, Z, codes=part.codes, rows=part.rows, plan=plan)
    told = [look for look in looks if look.score >= _SCORE and look.loss >= _LOSS]
    if not told:
        return None
    near = max(told, key=lambda look: look.loss)
    where, wide = " and ".join(names), f"{_reach(P, deviations(Z, part.codes)):.2g}"
    advice = f"name blocks several times {wide} wide in cv.groups"
    kind = part.target.common
    figures = (
        f"Of the {N_NEIGHBORS} nearest neighbours in features {near.of_all:.0%} have the same"
        f" {kind}. Without samples near in place it is {near.without_near:.0%}, without as many"
        f" others alike in {kind} {near.without_others:.0%}."
    )
    if plan is None:
        return f"Samples near each other in {where} are alike: for new places, {advice}.\n{figures}"
    return (
        f"Test samples are like training samples near them in {where}: {advice}.\n{figures} The"
        " scores are too high for new places."
    )


def _places(
    part: Part, beside: Mapping[str, FloatArray]
) -> tuple[tuple[str, ...], list[int], FloatArray] | None:
    """Names and positions of the columns of the part that tell the place, and the places."""
    if part.image:
        return None
    own: list[str] = []
    if part.named:
        own = [part.own_name(column) for column in range(len(part.names))]
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
    """Find two columns of equally spaced values whose pairs all differ, which is no chance.

    Of n samples at random cells of a grid of m about n^2 / 2 m share theirs with another one.
    """
    n = len(part.X)
    at_first = part.n_values(slice(_GLIMPSE))
    few = np.flatnonzero((at_first < _GLIMPSE) & (at_first <= n // 2)).tolist()
    sizes = {column: size for column in few if (size := _length(part, column))}
    if not 2 <= len(sizes) <= _MOST_COLUMNS:
        return None
    for pair in combinations(sizes, 2):
        shared = n**2 / (2 * math.prod(sizes[column] for column in pair))
        by_chance = shared <= math.log(math.comb(len(sizes), 2) / BY_CHANCE)
        if not by_chance and len(np.unique(part.X[:, pair], axis=0)) == n:
            return pair
    return None


def _length(part: Part, column: int) -> int:
    """Number of equally spaced values from a column's least to its largest; 0 if they are not."""
    values = part.X[:, column]
    distinct = np.unique(values)
    if not _FEWEST_VALUES <= len(distinct) <= len(values) // 2:
        return 0
    steps = np.diff(distinct) / np.diff(distinct).min()
    if np.abs(steps - steps.round()).max() > 1e-6:
        return 0
    return 1 + int(steps.round().sum())


def _reach(P: FloatArray, W: FloatArray) -> float:
    """Distance at which samples do not correlate any more, within the classes."""
    rows = np.random.default_rng(0).permutation(len(P))[:_MOST_SAMPLES]
    first, second = np.triu_indices(len(rows), 1)
    apart = np.linalg.norm(P[rows[first]] - P[rows[second]], axis=1)
    order = np.argsort(apart, kind="stable")
    alike = (W[rows] @ W[rows].T)[first, second][order]
    n_distances = max(_FEWEST_DISTANCES, len(alike) // _PAIRS)
    means = [piece.mean() for piece in np.array_split(alike, n_distances)]
    ends = [piece[-1] for piece in np.array_split(apart[order], n_distances)]
    below = np.flatnonzero(np.array(means) < min(_APART, _OF_NEAREST * means[0]))
    if not len(below):
        return float(ends[-1])
    return float(ends[below[0]])
