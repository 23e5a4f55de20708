"""Exact zeros of products are told from rounding, by themselves and in every method that asks
for them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.baselines.glspfs import GLSPFS
from raysel.baselines.rfs import RFS
from raysel.baselines.two_dimensional_lda import discriminant_directions
from raysel.core.errors import DataError
from raysel.numerics.discriminants import fisher_directions, scatter_range, shrunken
from raysel.numerics.linear_algebra import EPS, product
from raysel.solvers.mtda.aligned_mtda import AlignedMTDA
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([1e-150, 1.0, 1e150]))
def test_a_product_is_zero_where_it_may_be(seed, n, unit):
    rng = np.random.default_rng(seed)
    A, B = unit * rng.standard_normal((3, n)), rng.standard_normal((n, 4))
    A = np.hstack([A, 3 * A])
    B[:, 0] = rng.permutation(B[:, 0])
    B = np.vstack([B, -B / 3])  # all sums are zero but for the rounding of these thirds
    assert not product(A, B).any()
    B[-1, 1:] += 1e-9
    found = product(A, B)
    for (i, j), value in np.ndenumerate(found[:, 1:]):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(A[i], B[:, j + 1], strict=True)]
        assert abs(value - float(sum(terms))) <= 2 * n * EPS * float(sum(map(abs, terms)))
    assert found[:, 1:].all()


def independent_samples(n, d):
    """The same samples in each of three classes, in an order of its own: sums over classes round
    differently.
    """
    rng = np.random.default_rng(0)
    one = rng.standard_normal((n, d)) + 10 * rng.standard_normal(d)
    return np.vstack([one, rng.permutation(one), rng.permutation(one)]), np.repeat([0, 1, 2], n)


@pytest.mark.parametrize("method", [SMR(), SMR(p=0.5), RFS(), GLSPFS(), SMML(None)], ids=repr)
def test_features_that_no_class_depends_on_are_not_selected(method):
    for n, d in ((7, 4), (7, 40), (50, 30)):
        X, y = independent_samples(n, d)
        assert method.is_zero_solution(method.prepare(X, y))
        assert not method.fit(X, y).scores_.any()


def test_a_map_to_one_point_but_for_rounding_is_refused():
    rng = np.random.default_rng(0)
    first = rng.standard_normal((20, 1))
    X, y = np.hstack([first, first / 3]), np.arange(20) % 2
    with pytest.raises(DataError):
        AlignedMTDA(aligned=[np.eye(2), np.array([[1.0, 0.0], [-3.0, 0.0]])]).fit_tasks(
            [(X, y), (X, y)]
        )


def test_without_scatter_within_classes_the_directions_are_those_between_them():
    means = np.random.default_rng(0).standard_normal((3, 4, 3))
    y = np.repeat(np.arange(3), 7)
    counts, between = np.full(3, 7), np.sqrt(7) * (means - means.mean(axis=0))
    scatter = sum(E @ E.T for E in between)
    vectors = np.linalg.eigh(scatter)[1][:, ::-1]
    # Rounding of the class means is no scatter.
    rounding = 1e-16 * np.random.default_rng(1).standard_normal((21, 4, 3))
    found = discriminant_directions(rounding, between, 2, 0.5)
    np.testing.assert_allclose(np.abs((found * vectors[:, :2]).sum(axis=0)), 1, atol=1e-12)
    # A trace of zero, all of which takes the place of the scatter within classes.
    reduced = scatter_range(means.reshape(3, -1)[y], y, 3)
    V, ratios = fisher_directions(reduced, 2, 1.0)
    np.testing.assert_allclose(ratios, 1, atol=1e-12)
    assert np.isfinite(V).all()
    assert (counts == reduced.class_counts).all()
    problem = shrunken(reduced.between, reduced.total, 1.0)
    np.testing.assert_allclose(problem.column_ratios(np.eye(reduced.rank)), 1, atol=1e-12)
