"""The number of features that the inner scores choose."""

from __future__ import annotations

from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.evaluation.records import choose_n

SCORES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 8), min_size=n, max_size=n), min_size=2, max_size=5)
)


@settings(max_examples=200)
@given(SCORES)
def test_each_rule_is_its_definition(scores):
    scores = [[value / 8 for value in row] for row in scores]
    columns = list(zip(*scores, strict=True))
    means = [mean(column) for column in columns]
    best = means.index(max(means))
    limit = means[best] - stdev(columns[best]) / len(scores) ** 0.5
    within = next(j for j, value in enumerate(means) if value >= limit - 1e-12)
    table = np.array(scores)
    assert choose_n(table, "best") == pytest.approx((best, means[best]))
    assert choose_n(table, "mean") == pytest.approx((best, mean(means)))
    assert choose_n(table, "one_se") == pytest.approx((within, means[within]))
    assert choose_n(table[::-1], "one_se") == pytest.approx((within, means[within]))  # the order of the folds is free


def test_without_spread_over_the_folds_one_standard_error_is_the_best():
    scores = np.array([[0.5, 0.75, 0.75, 0.25]] * 3)
    assert choose_n(scores, "one_se") == choose_n(scores, "best") == (1, 0.75)


def test_means_that_differ_in_their_last_bit_are_tied():
    low, high = sorted([(0.1 + 0.2) / 3, 0.1])
    assert low != high
    assert choose_n(np.array([[low, high]] * 2), "best").position == 0
