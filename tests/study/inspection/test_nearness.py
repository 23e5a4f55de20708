"""What neighbours tell without samples near in place is what a search through all pairs finds."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.nearness import N_NEIGHBORS, nearness


def samples(n=90):
    """Features that follow the place, in three classes, at distinct places."""
    rng = np.random.default_rng(0)
    P = rng.random((n, 2))
    Z = np.hstack([P, P**2]) + 0.1 * rng.standard_normal((n, 4))
    return P, Z, rng.permutation(np.arange(n) % 3)


def plan(y, outer=3):
    return NestedPlan.make(y, outer=outer, inner=2, repeats=1, groups=None, seed=0)


def agreeing(P, Z, y, folds, share):
    """Share of the nearest neighbours with a test sample's label, without the share of the
    training samples nearest.
    """
    shares = []
    for fold in folds.outer:
        for test in fold.test:
            by_place = sorted(fold.train, key=lambda i: np.linalg.norm(P[i] - P[test]))
            left = by_place[int(share * len(fold.train)) :]
            nearest = sorted(left, key=lambda i: np.linalg.norm(Z[i] - Z[test]))[:N_NEIGHBORS]
            shares.append(np.mean(y[nearest] == y[test]))
    return np.mean(shares)


def test_the_shares_are_those_of_all_pairs_looked_through():
    P, Z, y = samples()
    y = (P[:, 0] * 3).astype(int)  # the place tells the class
    found = nearness(P, Z, y, np.arange(len(y)), plan(y))
    for look, share in zip(found, (1 / 60, 1 / 8), strict=True):  # at least one sample
        assert look.of_all == pytest.approx(agreeing(P, Z, y, plan(y), 0))
        assert look.without_near == pytest.approx(agreeing(P, Z, y, plan(y), share))


def test_without_others_is_the_mean_over_places_permuted_within_the_classes():
    P, Z, y = samples(60)
    folds, rng = plan(y), np.random.default_rng(1)
    means = []
    for _ in range(15):
        elsewhere = np.empty(len(y), dtype=int)
        for code in range(3):
            rows = np.flatnonzero(y == code)
            elsewhere[rows] = rng.permutation(rows)
        # The features of a training sample are those of another one of its class; a test sample
        # keeps its own.
        shares = []
        for fold in folds.outer:
            features = Z.copy()
            swapped = [i for i in fold.train if elsewhere[i] in set(fold.train)]
            features[swapped] = Z[elsewhere[swapped]]
            one = NestedPlan(len(y), (fold,))
            shares.append(agreeing(P, features, y, one, 1 / 8))
        means.append(np.mean(shares))
    _, found = nearness(P, Z, y, np.arange(len(y)), folds)
    assert found.without_others == pytest.approx(np.mean(means), abs=0.04)


def test_repeated_calls_and_leave_one_out_give_the_same_and_single_test_samples_are_joined():
    P, Z, y = samples(40)
    rows = np.arange(len(y))
    assert nearness(P, Z, y, rows, plan(y)) == nearness(P, Z, y, rows, plan(y))
    one_out = NestedPlan.make(y, outer=len(y), inner=2, repeats=1, groups=None, seed=0)
    assert nearness(P, Z, y, rows, one_out)


def test_samples_of_another_part_of_the_data_are_found_by_their_rows():
    P, Z, y = samples()
    of_all = np.concatenate([y, y])
    folds = plan(of_all)
    first, second = (nearness(P, Z, y, np.arange(90) + start, folds) for start in (0, 90))
    assert first != second
