"""Variance against NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from labelled_samples import labelled_samples

from raysel.baselines.variance import Variance


@settings(max_examples=10)
@given(labelled_samples())
def test_variance_is_numpys(samples):
    X, y = samples
    scores = Variance().fit(X, y).scores_
    np.testing.assert_array_equal(scores[:-1], X.var(axis=0)[:-1])
    assert scores[-1] == 0  # the constant, whose variance NumPy may round
