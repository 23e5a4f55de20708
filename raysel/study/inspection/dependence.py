"""Remarks on samples that resemble those near them in the order of the file."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import fft
from sklearn.neighbors import NearestNeighbors

from raysel.core.arrays import FloatArray, IntArray
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.parts import MOST_QUERIES, Part, deviations, projected
from raysel.study.inspection.row_columns import follows_file, in_runs, runs

#: Distances in the file, in samples of one class, that are tried; at most an eighth of the class.
_DISTANCES = (1, 2, 3, 5, 8, 12, 16)
#: Fewest samples of a class whose order is looked at.
_FEWEST = 8
#: Excess over chance of the share of samples whose nearest one is near in the file, for a remark:
#: where classes recur in the file, and where each is one run, so that the labels are no evidence.
#: Standard score of the share.
_EXCESS, _EXCESS_SORTED, _SCORE = 0.3, 0.6, 5.0
#: Largest share of such samples tested against their nearest one, and largest mean correlation of
#: the tested samples with the training sample that is nearest in the file, for folds that keep them
#: apart.
_APART, _CORRELATED = 0.25, 0.3
#: Correlation below which samples are not alike any more, and largest number of rows that this is
#: measured on.
_ALIKE, _MOST_ROWS = 0.1, 2**14
#: Mean correlation, within the classes, of samples a number of rows apart that is no chance, its
#: standard score, and its share of that at any other number; standard score of the share of them
#: with one label.
_PERIODIC, _PERIODIC_SCORE, _MOST_OF, _LABEL_SCORE = 0.2, 6.0, 0.8, 3.0


def order_remark(part: Part, plan: NestedPlan | None = None) -> str | None:
    """Remark if near rows of one class are alike, which a file sorted by class is not.

    With the folds of a plan, None if few such samples are tested with their nearest one in the
    training set, and tested samples correlate little with the training samples nearest in the file.
    """
    if not in_runs(part.codes) or (Z := _own_course(part)) is None:
        return None
    rows, nearest, apart, chance = _nearest(part.codes, Z)
    if 2 * len(rows) < min(len(part.X), MOST_QUERIES):
        return None
    n_runs, expected_runs = runs(part.codes)
    least, best = _EXCESS, None
    if n_runs == part.codes.max() + 1:
        least = _EXCESS_SORTED
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
            f" Of these, {leaked:.0%} are tested with that one in the training set. A tested sample"
            f" correlates by {correlation:.2f} on average with the training sample nearest in the"
            " file."
        )
    return (
        "Samples near each other in the file are alike: name their subject in cv.groups, or set"
        f" cv.blocks.size to several times the rows that are alike{_about(part, Z)}.\nFor"
        f" {share:.0%} of the samples, the most similar one of their class is at most {distance} of"
        f" its samples away. In a random order this holds for {expected:.0%}. Equal labels stand"
        f" together in {n_runs} runs, in a random order in about {expected_runs:.0f}.{tested}\nIf"
        " such samples share a recording or a subject, the scores are too high for new ones. Set"
        " cv.blocks.forward to predict later samples from earlier ones."
    )


def _own_course(part: Part) -> FloatArray | None:
    """Samples in random directions, without columns that follow the file, which make rows alike."""
    n = len(part.X)
    kept = ~part.scan(lambda block: follows_file(block, part.codes))
    if not kept.any() or n < _FEWEST:
        return None
    X = part.X
    if not kept.all():
        X = X[:, kept]
    return projected(X, np.arange(n), not part.image, np.random.default_rng(0))


def _nearest(codes: IntArray, Z: FloatArray) -> tuple[IntArray, IntArray, IntArray, np.ndarray]:
    """Samples, the nearest of the class of each, their distance in the file, and its chances."""
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
        small = 8 * np.array(_DISTANCES) <= m
        chances.append(np.where(small, np.stack(within, axis=1), 0.0))
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
    if not tested:
        return 0.0
    return leaked / tested


def _left(part: Part, Z: FloatArray, plan: NestedPlan) -> float:
    """Mean correlation of test samples with the training sample nearest in the file."""
    place = np.full(plan.n_samples, -1)
    place[part.rows] = np.arange(len(part.rows))
    W, products = deviations(Z, part.codes), []
    for fold in plan.outer:
        test, train = (
            np.sort(places[places >= 0]) for places in (place[fold.test], place[fold.train])
        )
        if len(test) and len(train):
            after = np.searchsorted(train, test).clip(1, len(train) - 1)
            before = train[after - 1]
            nearest = np.where(test - before <= np.abs(train[after] - test), before, train[after])
            products.append((W[test] * W[nearest]).sum(axis=1))
    if not products:
        return 0.0
    return float(np.concatenate(products).mean())


def _about(part: Part, Z: FloatArray) -> str:
    """Number of rows apart at which samples do not correlate any more."""
    W, lag = deviations(Z, part.codes)[:_MOST_ROWS], 1
    while lag < len(W) // 2 and (W[:-lag] * W[lag:]).sum(axis=1).mean() >= _ALIKE:
        lag += 1 + lag // 8
    return f" (about {lag} here)"


def period_remark(part: Part, plan: NestedPlan | None = None) -> str | None:
    """Remark if every k-th row is alike in features and labels, as of subjects measured in turn.

    With the folds of a plan, None if few test samples have one k rows away in the training set.
    """
    first = slice(_MOST_ROWS)
    part = replace(part, X=part.X[first], y=part.y[first], rows=part.rows[first])
    if (Z := _own_course(part)) is None or len(part.X) < 5 * _FEWEST:
        return None
    W, codes = deviations(Z, part.codes), part.codes
    n = len(W)
    lags = np.arange(1, n // 2)
    spectrum = np.abs(fft.rfft(W, fft.next_fast_len(2 * n), axis=0)) ** 2
    alike = fft.irfft(spectrum.sum(axis=1))[lags] / (n - lags)
    by_chance = float((W * W[np.random.default_rng(0).permutation(n)]).sum(axis=1).std())
    if not by_chance:  # all samples are alike
        return None
    scores = alike * np.sqrt(n - lags) / by_chance
    found = np.flatnonzero(
        (alike >= _PERIODIC) & (scores >= _PERIODIC_SCORE) & (alike >= _MOST_OF * alike.max())
    )
    if not len(found) or (lag := int(lags[found[0]])) == 1:
        return None
    # Where labels stand in runs, they agree as often one row nearer or farther.
    agree, beside = _agreement(codes, lag), (_agreement(codes, lag - 1), _agreement(codes, lag + 1))
    expected = max(float(np.mean(beside)), float(((np.bincount(codes) / n) ** 2).sum()))
    spread = math.sqrt(max(expected * (1 - expected), np.finfo(np.float64).tiny) / (n - lag))
    if agree - expected < max(_LABEL_SCORE * spread, np.finfo(np.float64).eps):
        return None
    if plan is not None and _tested(part.rows[lag:], part.rows[:-lag], plan) <= _APART:
        return None
    return (
        f"Samples {lag} rows apart are alike, and so are their labels: if they are of one subject,"
        f" name it in cv.groups.\nWithin a class they correlate by {alike[lag - 1]:.2f}; scores are"
        " too high for new subjects."
    )


def _agreement(codes: IntArray, lag: int) -> float:
    """Share of the samples with the label of the one a number of rows before."""
    return float((codes[lag:] == codes[: len(codes) - lag]).mean())
