"""Remark on samples that resemble those near them in the file, while their labels stand in runs."""

from __future__ import annotations

import math

import numpy as np
from sklearn.neighbors import NearestNeighbors

from raysel.arrays import IntArray
from raysel.cv.plan import NestedPlan
from raysel.inspection.columns.rows import follows_file, in_runs, runs
from raysel.inspection.duplicates import MOST_QUERIES, projected
from raysel.inspection.parts import Part

#: Distances in the file, in samples of one class, that are tried; at most an eighth of the class.
_DISTANCES = (1, 2, 3, 5, 8, 12, 16)
#: Fewest samples of a class whose order is looked at.
_FEWEST = 8
#: Excess over chance of the share of samples whose nearest one is near in the file, for a remark: where classes recur
#: in the file, and where each is one run, so that the labels are no evidence. Standard score of the share.
_EXCESS, _EXCESS_SORTED, _SCORE = 0.3, 0.6, 5.0
#: Largest share of such samples tested against their nearest one for folds that keep them apart.
_APART = 0.25


def order_remark(part: Part, plan: NestedPlan | None = None) -> str | None:
    """Remark if near rows are alike: samples of one class only are compared, so a file sorted by class is none.

    With the folds of a plan, None if few such samples are tested with their nearest one in the training set.
    """
    if not in_runs(part.codes):
        return None
    rows, nearest, apart, chance = _nearest(part)
    if 2 * len(rows) < min(len(part.X), MOST_QUERIES):
        return None
    n_runs, expected_runs = runs(part.codes)
    least, best = _EXCESS_SORTED if n_runs == part.codes.max() + 1 else _EXCESS, None
    for index, distance in enumerate(_DISTANCES):
        known = chance[:, index] > 0
        if known.sum() < len(rows) / 2:
            break
        near, expected = apart[known] <= distance, chance[known, index]
        excess = (near.mean() - expected.mean()) / (1 - expected.mean())
        score = (near.sum() - expected.sum()) / math.sqrt(float((expected * (1 - expected)).sum()) or 1.0)
        if excess >= least and score >= _SCORE and (best is None or excess > best[0]):
            best = (excess, distance, near.mean(), expected.mean())
    if best is None:
        return None
    _, distance, share, expected = best
    tested = ""
    if plan is not None:
        close = apart <= distance
        leaked = _tested(part.rows[rows[close]], part.rows[nearest[close]], plan)
        if leaked <= _APART:
            return None
        tested = f"; {leaked:.0%} of these are tested with it in the training set"
    return (
        f"Samples near each other in the file are alike: within a class, the nearest one of {share:.0%} is at most "
        f"{distance} of its samples away in the file ({expected:.0%} in a random order), and the labels stand in "
        f"{n_runs} runs (about {expected_runs:.0f}){tested}. If they were measured one after another, or several are "
        "of one subject, the scores are too high for new recordings or subjects: name the subject in cv.groups, or set "
        f"cv.blocks.size to the number of rows that belong together{_length(part, n_runs)}, and cv.blocks.forward if "
        "later samples are to be predicted from earlier ones."
    )


def _nearest(part: Part) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """Samples, the nearest one of the class of each, how far apart both are in the file, and the chances of that."""
    # Columns that follow the file would make near rows alike by themselves and do not count.
    n = len(part.X)
    kept = np.concatenate([~follows_file(block, part.codes) for _, block in part.columns()])
    empty = np.empty(0, dtype=np.int64)
    if not kept.any() or n < _FEWEST:
        return empty, empty, empty, np.empty((0, len(_DISTANCES)))
    rng = np.random.default_rng(0)
    Z = projected(part.X if kept.all() else part.X[:, kept], np.arange(n), not part.image, rng)
    samples, others, apart, chances = [], [], [], []
    for code in np.unique(part.codes):
        rows = np.flatnonzero(part.codes == code)
        if (m := len(rows)) < _FEWEST:
            continue
        place = np.arange(m)
        if n > MOST_QUERIES:
            place = np.sort(rng.choice(m, max(1, m * MOST_QUERIES // n), replace=False))
        found = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(Z[rows]).kneighbors(Z[rows[place]])[1]
        nearest = np.where(found[:, 0] == place, found[:, 1], found[:, 0])
        samples.append(rows[place])
        others.append(rows[nearest])
        apart.append(np.abs(nearest - place))
        within = [(np.minimum(place, k) + np.minimum(m - 1 - place, k)) / (m - 1) for k in _DISTANCES]
        chances.append(np.stack([p if 8 * k <= m else 0 * p for k, p in zip(_DISTANCES, within, strict=True)], axis=1))
    if not samples:
        return empty, empty, empty, np.empty((0, len(_DISTANCES)))
    return np.concatenate(samples), np.concatenate(others), np.concatenate(apart), np.concatenate(chances)


def _tested(samples: IntArray, nearest: IntArray, plan: NestedPlan) -> float:
    """Share of the test samples, over the outer folds, whose nearest one is in the training set."""
    tested = leaked = 0
    for fold in plan.outer:
        here = np.isin(samples, fold.test)
        tested += int(here.sum())
        leaked += int(np.isin(nearest[here], fold.train).sum())
    return leaked / tested if tested else 0.0


def _length(part: Part, n_runs: int) -> str:
    """Mean length of a run of labels, where the classes recur in the file."""
    if n_runs < 2 * len(np.unique(part.codes)):
        return ""
    return f" (a run of labels has {len(part.X) / n_runs:.0f} on average)"
