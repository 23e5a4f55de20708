"""Information gain against scikit-learn's mutual information of each binned column."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_samples import labelled_samples
from sklearn.metrics import mutual_info_score

from raysel.baselines.filter import bin_range
from raysel.baselines.information_gain import InformationGain


def literal_bins(column, bins):
    low, high = min(column), max(column)
    return [0 if high == low else min(math.floor(bins * (x - low) / (high - low)), bins - 1) for x in column]


def literal_gain(X, y, bins):
    return np.array([mutual_info_score(y, literal_bins(column, bins)) for column in X.T.tolist()]) / np.log(2)


@settings(max_examples=25)
@given(labelled_samples(), st.integers(2, 12))
def test_it_is_the_mutual_information_of_each_column(samples, bins):
    X, y = samples
    gain = InformationGain(bins).fit(X, y)
    np.testing.assert_allclose(gain.scores_, literal_gain(X, y, bins), atol=1e-12)
    assert gain.scores_[-2] == gain.scores_[0]  # the copy
    assert gain.scores_[-1] == 0  # the constant


def test_values_on_the_edges_of_bins_and_the_maximum():
    X = np.arange(11.0)[:, None]
    assert bin_range(X).bins_of(X, 5).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert bin_range(X).bins_of(X, 256).max() == 255


def test_a_feature_that_is_the_class_gains_all_of_its_entropy():
    y = np.repeat([0, 1, 2], [2, 4, 6])
    entropy = -sum(p * math.log2(p) for p in (1 / 6, 1 / 3, 1 / 2))
    assert InformationGain(3).fit(y[:, None].astype(float), y).scores_[0] == pytest.approx(entropy, abs=1e-12)
