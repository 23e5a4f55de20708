"""The next feature does not depend on rounding, and the scores of an order give that order back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.baselines.filter import first_largest, order_scores


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 12), scale=st.sampled_from([1e-8, 1.0, 1e8]))
def test_rounding_does_not_decide_between_copies(seed, n, scale):
    rng = np.random.default_rng(seed)
    values = scale * rng.integers(-3, 4, n).astype(float)
    first = int(np.argmax(values))  # the first of the equal ones
    noise = 1 + 1e-14 * rng.standard_normal(n)
    assert first_largest(values * noise, 3 * scale) == first


def test_differences_of_large_terms_are_compared_by_the_terms_size():
    values = np.array([0.0, 1e-12, -1.0])
    assert first_largest(values, 0.0) == 1
    assert first_largest(values, 1.0) == 0
    assert first_largest(values, np.array([1.0, 1e-6, 1.0])) == 1
    assert first_largest(np.array([-np.inf, -5.0, -np.inf])) == 1


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), d=st.integers(1, 10), n_ordered=st.integers(0, 10))
def test_the_order_of_the_scores_is_the_order(seed, d, n_ordered):
    rng = np.random.default_rng(seed)
    order, others = rng.permutation(d)[:n_ordered], rng.integers(0, 4, d).astype(float)
    given_others = others.copy()
    scores = order_scores(order, others)
    np.testing.assert_array_equal(others, given_others)
    left = np.setdiff1d(np.arange(d), order)
    assert np.argsort(-scores, kind="stable").tolist() == [*order, *left[np.argsort(-others[left], kind="stable")]]
    assert scores[left].max(initial=0) <= 0.5
    assert scores.min() >= 0
