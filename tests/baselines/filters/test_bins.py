"""Bins against exact fractions, and the information of binned features against scikit-learn's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from raysel.baselines import filter as module
from raysel.baselines.filter import MOST_BINS, bin_range, count_terms, information


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), bins=st.integers(1, MOST_BINS))
def test_bins_have_equal_widths_and_the_last_one_holds_the_maximum(seed, bins):
    """Of whole numbers, whose bins can be computed without rounding."""
    X = np.random.default_rng(seed).integers(-40, 40, (9, 4)).astype(float)
    X[:, 3] = 7.0
    found = bin_range(X).bins_of(X, bins)
    for column, own in zip(X.T, found.T, strict=True):
        low, width = Fraction(column.min()), Fraction(np.ptp(column))
        exact = [min(int(bins * (Fraction(x) - low) / width), bins - 1) if width else 0 for x in column]
        near = [width and (bins * (Fraction(x) - low) / width).denominator == 1 for x in column]
        # Where a value is the edge of two bins, the quotient may round to either side.
        assert all(b == e or (edge and b == e - 1) for b, e, edge in zip(own, exact, near, strict=True))
        assert own[column.argmax()] == (bins - 1 if width else 0)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), bins=st.integers(1, 9), cached=st.sampled_from([1, 40, 2**16]))
def test_information_is_scikit_learns_whatever_the_block_size(seed, bins, cached):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(20) % 3)
    binned = rng.integers(0, bins, (20, 5)).astype(np.uint8)
    binned[:, 0] = codes % bins
    before, module._CACHED = module._CACHED, cached
    try:
        found = information(binned, bins, codes, np.bincount(codes))
    finally:
        module._CACHED = before
    expected = [mutual_info_score(codes, column) / np.log(2) for column in binned.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_terms_of_counts():
    np.testing.assert_allclose(count_terms(4), [0, 0, 2, 3 * np.log2(3), 8])
