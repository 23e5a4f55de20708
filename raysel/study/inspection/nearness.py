"""How much nearest neighbours tell of test samples by training samples near them in place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.evaluation.plan import NestedPlan, OuterFold

#: Shares of the training samples, those nearest in place, that are left out in turn.
_SHARES = (1 / 64, 1 / 8)
#: Nearest neighbours in features that vote, and those among which they are sought once some are
#: left out.
N_NEIGHBORS, _SOUGHT = 5, 128
#: Random choices of others that are left out, most folds, test samples and training samples of a
#: fold.
_DRAWS, _FOLDS, _MOST_TESTS, _MOST_TRAINING = 49, 5, 1000, 5000


@dataclass(frozen=True)
class Nearness:
    """Shares of the nearest neighbours in features with the label of a test sample, on average."""

    of_all: float
    without_near: float
    #: Where as many others of the same classes are left out at random.
    without_others: float
    #: Standard score of the loss over these random choices.
    score: float

    @property
    def loss(self) -> float:
        """Share of neighbours that agree by those near in place, beyond others of the classes."""
        return self.without_others - self.without_near


def nearness(
    P: FloatArray, Z: FloatArray, codes: IntArray, rows: IntArray, plan: NestedPlan | None = None
) -> list[Nearness]:
    """Compare neighbours without those near in place with those without others of the classes.

    P has the places of the samples, Z their features, ``rows`` their positions in the plan. Within
    the classes places are permuted among the training samples, which changes nothing if features do
    not depend on the place beyond the class. There is one result for each share of the training
    samples that is left out.
    """
    rng = np.random.default_rng(0)
    sums = np.zeros((1 + _DRAWS, len(_SHARES)))
    n_tests, of_all = 0, 0.0
    for train, test in _folds(len(P), rows, plan, rng):
        neighbours = _Neighbours.of(P, Z, codes=codes, train=train, test=test)
        places = [np.arange(len(train)), *(_permuted(codes[train], rng) for _ in range(_DRAWS))]
        sums += [neighbours.agreeing(permuted) for permuted in places]
        of_all += neighbours.same[:, :N_NEIGHBORS].mean(axis=1).sum()
        n_tests += len(test)
    if not n_tests:
        return []
    without_near, *draws = sums / n_tests
    spread, others = np.std(draws, axis=0), np.mean(draws, axis=0)
    scores = np.divide(others - without_near, spread, out=np.zeros(len(_SHARES)), where=spread > 0)
    columns = (without_near.tolist(), others.tolist(), scores.tolist())
    return [Nearness(float(of_all / n_tests), *values) for values in zip(*columns, strict=True)]


@dataclass(frozen=True)
class _Neighbours:
    """Test samples of a fold and their nearest neighbours in features among training samples."""

    #: Positions among the training samples, and whether these have the test sample's label; shape
    #: (n_tests, n_sought).
    nearest: IntArray
    same: BoolArray
    #: Distances in place to the training samples; shape (n_tests, n_training).
    apart: FloatArray
    #: Distances up to which training samples are left out; shape (n_tests, number of shares).
    limits: FloatArray

    @classmethod
    def of(
        cls, P: FloatArray, Z: FloatArray, codes: IntArray, train: IntArray, test: IntArray
    ) -> _Neighbours:
        distances = cdist(Z[test], Z[train], "sqeuclidean")
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :_SOUGHT]
        apart = cdist(P[test], P[train])
        last = [max(1, int(share * len(train))) - 1 for share in _SHARES]
        limits = np.partition(apart, last, axis=1)[:, last]
        return cls(nearest, codes[train][nearest] == codes[test, None], apart, limits)

    def agreeing(self, places: IntArray) -> list[float]:
        """Sum the shares of neighbours with a test sample's label, for each share that is left out.

        A training sample has the place of the one whose position is given for it.
        """
        apart = np.take_along_axis(self.apart, places[self.nearest], axis=1)
        sums = []
        for limit in self.limits.T:
            kept = apart > limit[:, None]
            votes = kept & (kept.cumsum(axis=1) <= N_NEIGHBORS)
            n_votes = np.maximum(votes.sum(axis=1), 1)
            sums.append(float(((self.same & votes).sum(axis=1) / n_votes).sum()))
        return sums


def _folds(
    n: int, rows: IntArray, plan: NestedPlan | None, rng: np.random.Generator
) -> list[tuple[IntArray, IntArray]]:
    """Positions of training and test samples of a few folds, random or of a plan."""
    if plan is None:
        tests = np.array_split(rng.permutation(n), _FOLDS)
        pairs = [(np.setdiff1d(np.arange(n), test), test) for test in tests]
    else:
        first = [fold for fold in plan.outer if fold.repeat == plan.outer[0].repeat]
        joined = np.array_split(np.arange(len(first)), min(_FOLDS, len(first)))
        pairs = [_joined([first[i] for i in some], n, rows) for some in joined]
    most = _MOST_TESTS // len(pairs)
    return [
        (_some(train, _MOST_TRAINING, rng), _some(test, most, rng))
        for train, test in pairs
        if len(train) and len(test)
    ]


def _joined(folds: list[OuterFold], n: int, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the samples in all training sets of some folds, and of those in any test set."""
    train, test = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for fold in folds:
        train &= np.isin(rows, fold.train)
        test |= np.isin(rows, fold.test)
    return np.flatnonzero(train), np.flatnonzero(test & ~train)


def _some(positions: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    if len(positions) <= most:
        return positions
    return np.sort(rng.choice(positions, most, replace=False))


def _permuted(codes: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions in a random order within each class."""
    positions, shuffled = np.argsort(codes, kind="stable"), rng.permutation(len(codes))
    permuted = np.empty_like(positions)
    permuted[positions] = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return permuted
