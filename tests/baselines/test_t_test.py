"""The t-test filter against SciPy, a column and a class at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from labelled_samples import labelled_samples
from scipy.stats import ttest_ind
from sklearn.feature_selection import f_classif

from raysel.baselines.t_test import TTest
from raysel.core.errors import DataError


def literal_t(column, y):
    """|t| of each class that has a variance."""
    classes = [r for r in np.unique(y) if 1 < (y == r).sum() < len(y) - 1]
    return [abs(ttest_ind(column[y == r], column[y != r], equal_var=False).statistic) for r in classes]


@settings(max_examples=20)
@given(labelled_samples(least_per_class=2))
def test_it_is_scipys_t_of_each_column(samples):
    X, y = samples
    literal = [literal_t(column, y) for column in X.T[:-1]]
    for aggregate, over in (("max", max), ("mean", np.mean)):
        found = TTest(aggregate).fit(X, y).scores_
        np.testing.assert_allclose(found[:-1], [over(t) for t in literal], rtol=1e-9)
        assert found[-1] == 0  # the constant


def test_of_two_classes_of_equal_size_the_square_is_anovas_f():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 5)), np.arange(20) % 2
    np.testing.assert_allclose(TTest().fit(X, y).scores_ ** 2, f_classif(X, y)[0], rtol=1e-9)


def test_a_class_of_one_is_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 4)), np.array([0, 1, 1, 1, 2, 2, 2, 2, 2])
    np.testing.assert_allclose(TTest().fit(X, y).scores_, [max(literal_t(column, y)) for column in X.T], rtol=1e-9)
    with pytest.raises(DataError, match=r"classes of \[1, 3\] samples"):
        TTest().fit(X[:4], y[:4])


def test_an_infinite_t_is_the_largest_and_finite():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 7)
    X = np.column_stack([rng.standard_normal(14), np.where(y == 0, 0.1, 0.3), np.full(14, 0.1), 9 * y + rng.random(14)])
    scores = TTest().fit(X, y).scores_
    assert np.isfinite(scores).all()
    assert scores[1] == 2 * scores[3] > scores[3] > scores[0] > scores[2] == 0
