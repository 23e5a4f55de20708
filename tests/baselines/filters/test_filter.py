"""What filters share: constant features never score, classes are numbered by their labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import LabelEncoder

from raysel.baselines.filter import Filter, class_codes, constant_columns
from raysel.core.errors import DataError


class Largest(Filter):
    """Scores every feature by its maximum."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def prepare(self, X, y):
        return X.max(axis=0)

    def _rate(self, X, prepared):
        return prepared, 2


def test_the_largest_score_of_a_constant_feature_is_not_used():
    X = np.array([[1.0, 9.0, 4.0, 0.0], [3.0, 9.0, 5.0, 0.0]])
    found = Largest().fit(X, [0, 1])
    assert found.scores_.tolist() == [3, 0, 5, 0]
    assert found.ranking_.tolist() == [2, 3, 1, 4]
    assert found.get_support().tolist() == [True, False, True, False]
    assert (found.objective_path_.tolist(), found.n_iter_, found.converged_) == ([2.0], 1, True)
    assert not hasattr(found, "predict")


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), n=st.integers(1, 6), kind=st.sampled_from([np.uint8, np.float64, bool]))
def test_constant_columns_have_one_value(seed, n, kind):
    X = np.random.default_rng(seed).integers(0, 2, (n, 8)).astype(kind)
    assert constant_columns(X).tolist() == [len(set(column.tolist())) == 1 for column in X.T]


def test_classes_are_numbered_as_by_scikit_learn():
    y = np.array(["c", "a", "c", "b", "c", "a"])
    codes, counts = class_codes(y)
    np.testing.assert_array_equal(codes, LabelEncoder().fit_transform(y))
    assert counts.tolist() == [2, 1, 3]
    with pytest.raises(DataError, match=r"y holds one class only \(a\); at least two are needed"):
        class_codes(np.array(["a", "a"]))
