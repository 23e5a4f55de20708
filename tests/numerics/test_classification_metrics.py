"""The metrics of a search against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, recall_score

from raysel.core.errors import ConfigError, DataError
from raysel.numerics.classification import classification_metric

pairs = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1, max_size=30)


@given(pairs)
def test_equal_scikit_learns(drawn):
    y_true, y_pred = map(np.array, zip(*drawn, strict=True))
    assert classification_metric("accuracy")(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))
    classes = np.unique(y_true)
    recall = recall_score(y_true, y_pred, labels=classes, average="macro", zero_division=np.nan)
    assert classification_metric("balanced_accuracy")(y_true, y_pred) == pytest.approx(recall)


def test_accuracy_of_several_labels_counts_samples_with_all_right():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 2, (50, 3)), rng.integers(0, 2, (50, 3))
    assert classification_metric("accuracy")(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))


def test_unknown_names_are_answered_with_the_nearest_or_with_all():
    expected = {
        "acuracy": "`accuracy`",
        "balanced-accuracy": "`balanced_accuracy`",
        "zzz": "known: accuracy, balanced_",
    }
    for name, hint in expected.items():
        with pytest.raises(ConfigError, match=hint):
            classification_metric(name)


def test_different_shapes_are_refused_and_not_broadcast():
    for name in ("accuracy", "balanced_accuracy", "subset_accuracy", "neg_hamming_loss"):
        for shape in [(6, 1), (1,), (5,), (6, 2)]:
            with pytest.raises(DataError, match=r"y_pred has the shape \(.*\) and y_true \(6,\)"):
                classification_metric(name)(np.array([0, 1, 2, 0, 1, 2]), np.zeros(shape))
