"""Redundancy against NumPy's correlation matrix, pair by pair, and on real faces."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import ConfigError
from raysel.data.loading import load_dataset
from raysel.numerics import rankings as module
from raysel.numerics.rankings import redundancy


def expected(X, order, n):
    chosen = order[:n]
    pairs = [
        0.0 if np.ptp(X[:, i]) == 0 or np.ptp(X[:, j]) == 0 else abs(np.corrcoef(X[:, i], X[:, j])[0, 1])
        for i, j in combinations(chosen, 2)
    ]
    return np.mean(pairs) if pairs else np.nan


@given(st.integers(2, 12), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_it_is_the_mean_over_pairs_at_every_number_of_features(n, d, block, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.standard_normal(d)
    X[:, rng.random(d) < 0.2] = 0.1  # constant, not exactly representable
    order = rng.permutation(d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found = redundancy(X, order, range(1, d + 1))
    np.testing.assert_allclose(found, [expected(X, order, k) for k in range(1, d + 1)], atol=1e-8)


def test_scaling_shifting_and_the_order_of_the_chosen_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    order = np.array([4, 1, 5, 0])
    here = redundancy(X, order, [4])
    assert redundancy(-3 * X + 7, order[::-1], [4]) == pytest.approx(here, rel=1e-12)
    assert redundancy(np.repeat(X[:, :1], 3, axis=1), np.arange(3), [2, 3]) == pytest.approx([1, 1])


@pytest.mark.filterwarnings("error")
def test_large_offsets_and_small_or_large_units_cost_no_digits():
    X = np.random.default_rng(2).integers(0, 9, (20, 5)).astype(float)
    here = redundancy(X, np.arange(5), [3, 5])
    for other in (1e8 + 2.0**-26 * X, X * [1e-300, 1e-170, 1.0, 1e170, 1e300], X.astype(np.uint8)):
        np.testing.assert_allclose(redundancy(other, np.arange(5), [3, 5]), here, rtol=1e-12)


def test_fewer_features_than_asked_for_are_all_used_and_less_than_two_form_no_pair():
    X = np.random.default_rng(1).standard_normal((9, 5))
    found = redundancy(X, np.array([3, 0, 2]), [2, 3, 50])
    assert found[1] == found[2]
    assert np.isnan(redundancy(X, np.array([3]), [1, 4])).all()
    assert np.isnan(redundancy(X, np.array([], dtype=np.int64), [4])).all()
    with pytest.raises(ConfigError, match="1 or more"):
        redundancy(X, np.arange(5), [0])


def test_on_faces_it_is_numpys(real_data):
    X = load_dataset(real_data("ORL.npz")).X
    order = np.random.default_rng(0).permutation(X.shape[1])
    r = np.abs(np.corrcoef(X[:, order[:300]].T))
    want = [r[:n, :n][np.triu_indices(n, 1)].mean() for n in (50, 300)]
    np.testing.assert_allclose(redundancy(X, order, [50, 300]), want, rtol=1e-10)
    assert 0.2 < want[0] < 0.35  # notes A12: .26 for random pixels
