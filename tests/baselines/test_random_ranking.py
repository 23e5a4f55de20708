"""A random ranking depends on its seed only, and every order is equally likely."""

from __future__ import annotations

import numpy as np

from raysel.baselines.random_ranking import RandomRanking


def test_a_random_ranking_is_drawn_from_random_state_alone(usps):
    X, y = usps
    found = RandomRanking(random_state=3).fit(X, y).ranking_
    varies = np.ptp(X, axis=0) > 0
    other = np.random.default_rng(0).random(X.shape)
    other[:, ~varies] = 0.5
    np.testing.assert_array_equal(RandomRanking(random_state=3).fit(other, y[::-1]).ranking_, found)
    assert (RandomRanking(random_state=4).fit(X, y).ranking_ != found).any()


def test_every_feature_is_equally_likely_to_be_first():
    X, y = np.random.default_rng(0).standard_normal((4, 4)), [0, 0, 1, 1]
    first = [RandomRanking(random_state=seed).fit(X, y).scores_.argmax() for seed in range(400)]
    counts = np.bincount(first, minlength=4)
    assert abs(counts - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)


def test_constant_features_are_not_selected():
    X = np.column_stack([np.ones(6), np.arange(6.0), np.full(6, 0.1), np.arange(6.0) ** 2])
    for seed in range(20):
        ranking = RandomRanking(n_features_to_select=4, random_state=seed).fit(X, [0, 1] * 3)
        assert ranking.get_support().tolist() == [False, True, False, True]
