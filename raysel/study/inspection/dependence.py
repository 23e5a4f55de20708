"""Remarks on equal and nearly equal samples, and on those that stand on both sides of a split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from raysel.core.arrays import FloatArray, IntArray
from raysel.data.dataset import Dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.leaks import Findings
from raysel.study.inspection.parts import MOST_QUERIES, Part, projected
from raysel.study.inspection.row_columns import follows_file, in_runs, runs

#: Number of rows that a remark names.
_NAMED = 3
#: What keeps samples together.
_NEAR = "give them the same value in a column or array that cv.groups names"
_EQUAL = (
    "set cv.groups to `equal samples`, or to a column or array in which they have the same value"
)
#: Columns can tell at most this many times as many samples apart as there are, if equal samples are no wonder.
_ROOM = 10


def copy_remarks(
    findings: Findings, dataset: Dataset, plan: NestedPlan | None = None
) -> Iterator[str]:
    """Remark on equal samples, and on pairs of samples that are nearly equal.

    Equal samples of a table whose few columns have few values are no copies, and are not remarked on.
    """
    part = findings.part
    ids = part.row_ids
    sizes = np.bincount(ids)
    if sizes.max() > 1 and not _few_possible(findings):
        equal = np.flatnonzero(sizes[ids] > 1)
        other = (
            "" if not _differ(part.y[equal], ids[equal]) else ", some of them with different labels"
        )
        first = np.flatnonzero(ids == ids[equal[0]])
        yield (
            f"{len(equal)} of {len(ids)} samples are equal to another in all features{other}, e.g. "
            f"{_rows(part.rows[first])}{_across(ids, findings, dataset, plan, _EQUAL)}"
        )
    near = findings.near
    if near is not None and len(near.pairs):
        sample = (
            ""
            if near.n_searched >= len(sizes)
            else f" among {near.n_searched} samples that were searched"
        )
        n_pairs = f"{len(near.pairs)} pair{'s' if len(near.pairs) > 1 else ''}"
        joined = _joined(ids, near.pairs)
        yield (
            f"{n_pairs} of samples{sample} {'are' if len(near.pairs) > 1 else 'is'} nearly equal, at {near.share:.1%} "
            f"or less of the usual distance to the nearest sample, e.g. {_rows(part.rows[near.pairs[0]])}"
            f"{_across(joined, findings, dataset, plan)}"
        )


def _few_possible(findings: Findings) -> bool:
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
    findings: Findings,
    dataset: Dataset,
    plan: NestedPlan | None,
    remedy: str = _NEAR,
) -> str:
    """Return how many test samples have a sample of their number in the training set, and what keeps them together."""
    if plan is None:
        together = (
            ""
            if dataset.groups is not None
            else f" To keep them on one side of every split, {remedy}."
        )
        return f".{together}"
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
        return "; no test sample has one in its training set."
    of = f"{len(otherwise)} of them " if len(leaked) > 1 else ""
    label = f", {of}with another label" if otherwise else ""
    how_many = (
        "1 test sample has one in its"
        if len(leaked) == 1
        else f"{len(leaked)} test samples have one in their"
    )
    return f"; {how_many} training set{label}. To keep them together, {remedy}."


def _rows(rows: IntArray) -> str:
    shown = ", ".join(map(str, rows[:_NAMED].tolist()))
    return f"rows {shown}{', ...' if len(rows) > _NAMED else ''}, counted from 0"


#: Distances in the file, in samples of one class, that are tried; at most an eighth of the class.
_DISTANCES = (1, 2, 3, 5, 8, 12, 16)
#: Fewest samples of a class whose order is looked at.
_FEWEST = 8
#: Excess over chance of the share of samples whose nearest one is near in the file, for a remark: where classes recur
#: in the file, and where each is one run, so that the labels are no evidence. Standard score of the share.
_EXCESS, _EXCESS_SORTED, _SCORE = 0.3, 0.6, 5.0
#: Largest share of such samples tested against their nearest one, and largest mean correlation of the tested samples
#: with the training sample that is nearest in the file, for folds that keep them apart.
_APART, _CORRELATED = 0.25, 0.3
#: Correlation below which samples are not alike any more, and largest number of rows that this is measured on.
_ALIKE, _MOST_ROWS = 0.1, 2**14


def order_remark(part: Part, plan: NestedPlan | None = None) -> str | None:
    """Remark if near rows are alike: samples of one class only are compared, so a file sorted by class is none.

    With the folds of a plan, None if few such samples are tested with their nearest one in the training set, and tested
    samples correlate little with the training samples nearest in the file.
    """
    if not in_runs(part.codes) or (Z := _own_course(part)) is None:
        return None
    rows, nearest, apart, chance = _nearest(part.codes, Z)
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
        score = (near.sum() - expected.sum()) / math.sqrt(
            float((expected * (1 - expected)).sum()) or 1.0
        )
        if excess >= least and score >= _SCORE and (best is None or excess > best[0]):
            best = (excess, distance, near.mean(), expected.mean())
    if best is None:
        return None
    _, distance, share, expected = best
    tested = ""
    if plan is not None:
        close = apart <= distance
        leaked = _tested(part.rows[rows[close]], part.rows[nearest[close]], plan)
        correlation = _left(part, Z, plan)
        if leaked <= _APART and correlation <= _CORRELATED:
            return None
        tested = (
            f"; {leaked:.0%} of these are tested with it in the training set, and a tested sample correlates with the "
            f"training sample nearest in the file by {correlation:.2f} on average"
        )
    return (
        f"Samples near each other in the file are alike: within a class, the nearest one of {share:.0%} is at most "
        f"{distance} of its samples away in the file ({expected:.0%} in a random order), and the labels stand in "
        f"{n_runs} runs (about {expected_runs:.0f}){tested}. If they were measured one after another, or several are "
        "of one subject, the scores are too high for new recordings or subjects: name the subject in cv.groups, or set "
        f"cv.blocks.size to several times the number of rows over which samples stay alike{_about(part, Z)}, and "
        "cv.blocks.forward if later samples are to be predicted from earlier ones."
    )


def _own_course(part: Part) -> FloatArray | None:
    """Samples in a few random directions, without the columns that follow the file, which make near rows alike."""
    n = len(part.X)
    kept = ~part.scan(lambda block: follows_file(block, part.codes))
    if not kept.any() or n < _FEWEST:
        return None
    return projected(
        part.X if kept.all() else part.X[:, kept],
        np.arange(n),
        not part.image,
        np.random.default_rng(0),
    )


def _nearest(codes: IntArray, Z: FloatArray) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """Samples, the nearest one of the class of each, how far apart both are in the file, and the chances of that."""
    n, rng, empty = len(Z), np.random.default_rng(0), np.empty(0, dtype=np.int64)
    samples, others, apart, chances = [], [], [], []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        if (m := len(rows)) < _FEWEST:
            continue
        place = np.arange(m)
        if n > MOST_QUERIES:
            place = np.sort(rng.choice(m, max(1, m * MOST_QUERIES // n), replace=False))
        neighbours = (
            NearestNeighbors(n_neighbors=2, algorithm="brute")
            .fit(Z[rows])
            .kneighbors(Z[rows[place]])[1]
        )
        nearest = np.where(neighbours[:, 0] == place, neighbours[:, 1], neighbours[:, 0])
        samples.append(rows[place])
        others.append(rows[nearest])
        apart.append(np.abs(nearest - place))
        within = [
            (np.minimum(place, k) + np.minimum(m - 1 - place, k)) / (m - 1) for k in _DISTANCES
        ]
        chances.append(
            np.stack(
                [p if 8 * k <= m else 0 * p for k, p in zip(_DISTANCES, within, strict=True)],
                axis=1,
            )
        )
    if not samples:
        return empty, empty, empty, np.empty((0, len(_DISTANCES)))
    return (
        np.concatenate(samples),
        np.concatenate(others),
        np.concatenate(apart),
        np.concatenate(chances),
    )


def _tested(samples: IntArray, nearest: IntArray, plan: NestedPlan) -> float:
    """Share of the test samples, over the outer folds, whose nearest one is in the training set."""
    tested = leaked = 0
    for fold in plan.outer:
        here = np.isin(samples, fold.test)
        tested += int(here.sum())
        leaked += int(np.isin(nearest[here], fold.train).sum())
    return leaked / tested if tested else 0.0


def _left(part: Part, Z: FloatArray, plan: NestedPlan) -> float:
    """Mean correlation of the test samples, over the outer folds, with the training sample nearest in the file."""
    place = np.full(plan.n_samples, -1)
    place[part.rows] = np.arange(len(part.rows))
    W, products = _deviations(part, Z), []
    for fold in plan.outer:
        test, train = (
            np.sort(places[places >= 0]) for places in (place[fold.test], place[fold.train])
        )
        if len(test) and len(train):
            after = np.searchsorted(train, test).clip(1, len(train) - 1)
            before = train[after - 1]
            nearest = np.where(test - before <= np.abs(train[after] - test), before, train[after])
            products.append((W[test] * W[nearest]).sum(axis=1))
    return float(np.concatenate(products).mean()) if products else 0.0


def _about(part: Part, Z: FloatArray) -> str:
    """Number of rows apart at which samples do not correlate any more."""
    W, lag = _deviations(part, Z)[:_MOST_ROWS], 1
    while lag < len(W) // 2 and (W[:-lag] * W[lag:]).sum(axis=1).mean() >= _ALIKE:
        lag += 1 + lag // 8
    return f" (about {lag} here)"


def _deviations(part: Part, Z: FloatArray) -> FloatArray:
    """Deviations of the samples from the mean of their class, of mean square length 1."""
    W = (
        Z
        - np.stack([Z[part.codes == code].mean(axis=0) for code in range(part.codes.max() + 1)])[
            part.codes
        ]
    )
    return W / math.sqrt(max(float((W**2).sum(axis=1).mean()), np.finfo(np.float64).tiny))
