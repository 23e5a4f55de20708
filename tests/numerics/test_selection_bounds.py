"""The bounds of stability selection against the worst distributions, found by linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from raysel.core.errors import ConfigError
from raysel.numerics.selection_bounds import simple_bound, smallest_threshold, threshold_on_grid, unimodal_bound


def worst(n_pairs, count, mean, mode=None):
    """Largest P(X >= count / B) of X on 0, 1/B, ..., 1 with at most this mean, and this mode if one is given."""
    x = np.arange(n_pairs + 1) / n_pairs
    A, b = [x], [mean]
    for i in range(n_pairs) if mode is not None else ():
        step = np.zeros(n_pairs + 1)
        step[[i, i + 1]] = (1, -1) if i < mode else (-1, 1)  # rises to the mode, falls behind it
        A.append(step)
        b.append(0.0)
    found = linprog(-1.0 * (np.arange(n_pairs + 1) >= count), A_ub=A, b_ub=b, A_eq=[np.ones(n_pairs + 1)], b_eq=[1.0])
    assert found.status in (0, 2)
    return -found.fun if found.status == 0 else 0.0  # 2: no distribution has this mode and so small a mean


def worst_unimodal(n_pairs, count, mean):
    return max(worst(n_pairs, count, mean, mode) for mode in range(n_pairs + 1))


# A feature of selection probability theta: both halves of a pair select it with probability theta^2 on average, and
# a share of at least tau of the halves needs a share of at least 2 tau - 1 of the pairs. q of p features have theta.


@pytest.mark.parametrize("n_pairs", [4, 10, 25])
@pytest.mark.parametrize("theta", [0.05, 0.2, 0.5])
def test_simple_is_the_worst_of_all_distributions(n_pairs, theta):
    for count in range(1, n_pairs + 1):
        tau = (1 + count / n_pairs) / 2
        assert min(1.0, simple_bound(theta * 1000, 1000, tau) / 1000) == pytest.approx(
            worst(n_pairs, count, theta**2), rel=1e-7
        )


@pytest.mark.parametrize(("n_pairs", "theta"), [(6, 0.02), (7, 0.4), (10, 0.1), (10, 0.3), (11, 0.57)])
def test_unimodal_is_the_worst_of_the_unimodal_distributions(n_pairs, theta):
    defined = 0
    for count in range(2, n_pairs + 1):
        bound = unimodal_bound(theta * 1000, 1000, (1 + count / n_pairs) / 2, n_pairs)
        if bound is not None:
            defined += 1
            assert bound / 1000 == pytest.approx(worst_unimodal(n_pairs, count, theta**2), rel=1e-7)
    assert defined > n_pairs / 3


def test_it_is_not_given_where_another_mode_is_worse():
    n_pairs, theta, count = 20, 0.55, 4
    tau = (1 + count / n_pairs) / 2
    formula = 1 / (2 * (2 * tau - 1 - 1 / (2 * n_pairs))) * theta**2
    assert worst_unimodal(n_pairs, count, theta**2) > formula + 1e-6
    assert unimodal_bound(theta * 1000, 1000, tau, n_pairs) is None
    assert unimodal_bound(600, 1000, 0.9, n_pairs) is None  # theta above 1 / sqrt(3)


@settings(max_examples=100)
@given(st.integers(2, 200), st.integers(1, 500), st.integers(1, 2000), st.floats(0.500001, 1.0))
def test_thresholds_round_up_to_shares_and_bounds_fall(n_pairs, q, p, threshold):
    q = min(q, p)
    tau = threshold_on_grid(threshold, n_pairs)
    shares = np.arange(2 * n_pairs + 1) / (2 * n_pairs)
    assert ((shares >= tau) == (shares >= threshold - 1e-6 / n_pairs)).all()
    bound = unimodal_bound(q, p, tau, n_pairs)
    if bound is not None:
        assert bound <= simple_bound(q, p, tau) * (1 + 1e-9)
        higher = min(1.0, tau + 1 / (2 * n_pairs))
        assert unimodal_bound(q, p, threshold_on_grid(higher, n_pairs), n_pairs) <= bound * (1 + 1e-9)


def test_the_default_threshold_is_the_first_within_one():
    for q, p, n_pairs in ((5, 100, 50), (16, 64, 50), (16, 64, 10), (40, 64, 50), (3, 5000, 25)):
        chosen = smallest_threshold(q, p, n_pairs)
        within = [
            t / (2 * n_pairs)
            for t in range(n_pairs + 1, 2 * n_pairs + 1)
            if (unimodal_bound(q, p, t / (2 * n_pairs), n_pairs) or simple_bound(q, p, t / (2 * n_pairs))) <= 1
        ]
        assert chosen == (within[0] if within else 1.0)


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.01, float("nan")])
def test_there_is_no_bound_for_other_thresholds(threshold):
    with pytest.raises(ConfigError, match=r"above 0.5 and at most 1"):
        threshold_on_grid(threshold, 50)
