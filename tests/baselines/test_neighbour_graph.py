"""The Laplacian against loops over the samples, its spectrum against the parts of the graph, and the kept spectra."""

from __future__ import annotations

import numpy as np
import pytest
from graph_references import graph_by_loops
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from raysel.baselines import neighbour_graph
from raysel.baselines.neighbour_graph import graph_spectrum, laplacian
from raysel.baselines.recent import RecentResults


def draw(seed, n=40, d=5):
    return np.random.default_rng(seed).standard_normal((n, d))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 8), n=st.integers(2, 25))
def test_the_graph_is_that_of_the_loops(seed, k, n):
    X = draw(seed, n)
    np.testing.assert_allclose(laplacian(X, k), graph_by_loops(X, min(k, n - 1)), atol=1e-12)


def test_equal_samples_share_their_neighbours():
    X = draw(0, 15)
    twice = np.concatenate([X, X])
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_allclose(laplacian(twice[order], 3), laplacian(twice, 3)[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(laplacian(np.ones((3, 2)), 1), 3 * np.eye(3) - 1)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 4), groups=st.integers(1, 4))
def test_the_spectrum_is_that_of_the_laplacian_and_counts_the_parts(seed, k, groups):
    X = draw(seed, 24) + 100.0 * (np.arange(24) % groups)[:, None]
    spectrum, L = graph_spectrum(X, k), laplacian(X, k)
    V, values = spectrum.vectors, spectrum.values
    np.testing.assert_allclose(V * values @ V.T, L, atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(24), atol=1e-10)
    assert (np.diff(values) >= 0).all()
    n_parts, _ = connected_components(L < 0)
    assert n_parts >= groups
    assert np.count_nonzero(values < 1e-9) == n_parts


def test_a_kept_spectrum_is_read_only_and_that_of_its_own_samples(monkeypatch):
    monkeypatch.setattr(neighbour_graph, "_recent", RecentResults(10**6))
    X = draw(1)
    first = graph_spectrum(X, 3)
    assert graph_spectrum(X.copy(), 3) is first
    assert graph_spectrum(X, 4) is not first
    assert graph_spectrum(X.reshape(20, 10), 3).vectors.shape == (20, 20)  # the same bytes in another shape
    with pytest.raises(ValueError, match="read-only"):
        first.values[0] = 1.0
