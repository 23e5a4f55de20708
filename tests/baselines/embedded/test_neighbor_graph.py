"""The Laplacian of the nearest-neighbour graph against a loop over pairs, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from raysel.baselines.glspfs import heat_kernel_laplacian


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), n=st.integers(2, 15), d=st.integers(1, 30), k=st.integers(1, 20))
def test_it_is_the_loop_over_pairs(seed, n, d, k):
    X = np.random.default_rng(seed).standard_normal((n, d))
    squared = cdist(X, X, "sqeuclidean")
    A = np.zeros((n, n))
    for a in range(n):
        near = sorted((squared[a, b], b) for b in range(n) if b != a)[:k]
        for distance, b in near:
            A[a, b] = A[b, a] = np.exp(-distance / squared.mean())
    np.testing.assert_allclose(
        heat_kernel_laplacian(X, k).toarray(), np.diag(A.sum(axis=1)) - A, atol=1e-8 if d > 1 else 1e-6
    )


def test_an_isolated_sample_has_a_row_of_zeros():
    X = np.concatenate([np.linspace(0.0, 1.0, 1999), [1e6]])[:, None]
    L = heat_kernel_laplacian(X, 3).toarray()
    assert not L[-1].any()
    assert not L[:, -1].any()
    assert (np.diag(L)[:-1] > 0).all()


def test_equal_samples_and_no_features():
    np.testing.assert_array_equal(heat_kernel_laplacian(np.ones((3, 2)), 7).toarray(), 3 * np.eye(3) - 1)
    assert heat_kernel_laplacian(np.ones((3, 0)), 7).nnz == 0
    assert heat_kernel_laplacian(np.ones((1, 4)), 7).shape == (1, 1)


def test_rows_sum_to_zero_on_real_images(real_data):
    with np.load(real_data("ORL.npz")) as file:
        X = file["X"].reshape(400, -1) / 255.0
    L = heat_kernel_laplacian(X, 7)
    np.testing.assert_allclose(L.sum(axis=1), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(L.toarray()).min() == pytest.approx(0.0, abs=1e-12)
