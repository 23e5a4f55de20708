"""Metrics of indicators against their definitions by counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from raysel.core.errors import ConfigError
from raysel.numerics.classification import METRICS, classification_metric

INDICATORS = st.integers(2, 4).flatmap(
    lambda labels: st.tuples(*[hnp.arrays(np.int64, (7, labels), elements=st.integers(0, 1))] * 2)
)


def ratio(above, below):
    """0 where nothing is counted."""
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=np.asarray(below) > 0)


@given(INDICATORS)
def test_they_are_what_the_counts_say(pair):
    y_true, y_pred = pair
    hits, said, there = ((y_true & y_pred).sum(axis=0), y_pred.sum(axis=0), y_true.sum(axis=0))
    expected = {
        "macro_precision": ratio(hits, said).mean(),
        "micro_precision": ratio(hits.sum(), said.sum()),
        "macro_f1": ratio(2 * hits, said + there).mean(),
        "micro_f1": ratio(2 * hits.sum(), (said + there).sum()),
        "subset_accuracy": (y_true == y_pred).all(axis=1).mean(),
        "accuracy": (y_true == y_pred).all(axis=1).mean(),
        "neg_hamming_loss": -(y_true != y_pred).sum() / y_true.size,
    }
    for name, value in expected.items():
        assert classification_metric(name, multilabel=True)(y_true, y_pred) == pytest.approx(float(value)), name
    assert set(expected) == set(METRICS) - {"balanced_accuracy", "mean_average_precision"}  # one label, of scores


def test_a_metric_of_one_label_is_refused_for_several():
    with pytest.raises(ConfigError, match=r"balanced_accuracy is for one label a sample.*macro_f1"):
        classification_metric("balanced_accuracy", multilabel=True)
    assert classification_metric("balanced_accuracy")(np.array([0, 1]), np.array([0, 1])) == 1.0
