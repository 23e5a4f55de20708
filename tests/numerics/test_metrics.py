"""Metrics against scikit-learn's and against their definitions by counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from raysel.core.errors import ConfigError, DataError
from raysel.data.targets import find_target
from raysel.numerics.metrics import (
    METRICS,
    Metric,
    average_precision,
    mean_average_precision,
    metric,
    metric_range,
)


@given(
    st.integers(1, 30),
    st.integers(1, 5),
    st.sampled_from([1, 2, 5, 1000]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_it_is_scikit_learns_with_ties(n, n_classes, n_levels, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random((n, n_classes)) < rng.random(n_classes)).astype(int)
    scores = rng.integers(0, n_levels, (n, n_classes)) / 7 - 0.3
    found = average_precision(y, scores)
    present = y.any(axis=0)
    assert np.array_equal(np.isnan(found), ~present)
    expected = [average_precision_score(y[:, r], scores[:, r]) for r in np.flatnonzero(present)]
    np.testing.assert_allclose(found[present], expected, rtol=1e-12)
    if present.any():
        assert mean_average_precision(y, scores) == pytest.approx(np.mean(expected), rel=1e-12)


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_of_hard_labels_it_is_precision_times_recall_and_the_rest_at_chance(n, seed):
    rng = np.random.default_rng(seed)
    y, predicted = rng.integers(0, 2, n), rng.integers(0, 2, n)
    y[0] = 1
    P, R = precision_score(y, predicted, zero_division=0), recall_score(y, predicted)
    found = mean_average_precision(y, predicted.astype(float))
    assert found == pytest.approx(R * P + (1 - R) * y.mean(), abs=1e-12)


def test_the_order_of_samples_and_a_rising_function_change_nothing():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, (40, 3)), rng.integers(0, 9, (40, 3)).astype(float)
    rows = rng.permutation(40)
    here = average_precision(y, scores)
    np.testing.assert_allclose(average_precision(y[rows], scores[rows]), here, rtol=1e-12)
    np.testing.assert_array_equal(average_precision(y, np.exp(scores)), here)


def test_infinite_scores_are_first_and_last_and_equal_ones_are_chance():
    y = np.array([1, 0, 0, 1])
    assert mean_average_precision(y, np.array([np.inf, -np.inf, -np.inf, 0.0])) == 1.0
    assert mean_average_precision(y, np.full(4, -np.inf)) == 0.5


def test_no_class_at_all_is_undefined():
    assert np.isnan(mean_average_precision(np.zeros((3, 2), dtype=int), np.ones((3, 2))))


@pytest.mark.parametrize("scores", [np.zeros((3, 1)), np.zeros(3), np.full((3, 2), np.nan)])
def test_other_shapes_and_nan_are_refused(scores):
    with pytest.raises(DataError, match="y_score"):
        mean_average_precision(np.eye(3, 2), scores)


def test_a_metric_whose_range_is_not_listed_may_have_any_value(monkeypatch):
    monkeypatch.setitem(METRICS, "new", Metric("new", lambda *_: 7.0))
    assert metric_range("new") == metric_range("of another package") == (-np.inf, np.inf)
    unbounded = {"new", "out_of_sample_r2", "neg_rmse", "neg_mae"}
    assert {name for name in METRICS if np.isfinite(metric_range(name)).all()} == set(
        METRICS
    ) - unbounded
    assert metric_range("neg_hamming_loss") == (-1.0, 0.0)


pairs = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1, max_size=30
)


@given(pairs)
def test_equal_scikit_learns(drawn):
    y_true, y_pred = map(np.array, zip(*drawn, strict=True))
    assert metric("accuracy")(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))
    classes = np.unique(y_true)
    recall = recall_score(y_true, y_pred, labels=classes, average="macro", zero_division=np.nan)
    assert metric("balanced_accuracy")(y_true, y_pred) == pytest.approx(recall)


def test_accuracy_of_several_labels_counts_samples_with_all_right():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 2, (50, 3)), rng.integers(0, 2, (50, 3))
    assert metric("accuracy")(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))


@given(n=st.integers(2, 40), n_levels=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_the_area_under_the_curve_is_scikit_learns(n, n_levels, seed):
    drawn = np.random.default_rng(seed)
    y = np.where(drawn.permutation(n) < drawn.integers(1, n), "b", "a")
    scores = drawn.integers(0, n_levels, n) / 7  # tied where there are fewer levels
    found = metric("roc_auc")(y, scores, np.array(["a", "b"]))
    assert found == pytest.approx(roc_auc_score(y, scores), abs=1e-14)


def test_unknown_names_are_answered_with_the_nearest_or_with_all():
    expected = {
        "acuracy": "`accuracy`",
        "balanced-accuracy": "`balanced_accuracy`",
        "zzz": "known: accuracy, balanced_",
    }
    for name, hint in expected.items():
        with pytest.raises(ConfigError, match=hint):
            metric(name)


def test_different_shapes_are_refused_and_not_broadcast():
    for name in ("accuracy", "balanced_accuracy", "subset_accuracy", "neg_hamming_loss"):
        for shape in [(6, 1), (1,), (5,), (6, 2)]:
            with pytest.raises(DataError, match=r"y_pred has the shape \(.*\) and y_true \(6,\)"):
                metric(name)(np.array([0, 1, 2, 0, 1, 2]), np.zeros(shape))


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
        assert metric(name)(y_true, y_pred) == pytest.approx(float(value)), name
    of_labels = {name for name, measure in METRICS.items() if "multilabel" in measure.targets}
    assert set(expected) == of_labels - {"mean_average_precision"}  # of scores


def test_a_metric_of_one_label_is_refused_for_several():
    with pytest.raises(
        ConfigError, match=r"is for one label a sample, and y .* 3 labels; take .*f1"
    ):
        find_target(np.eye(3, dtype=int)).check_metric("balanced_accuracy", np.eye(3, dtype=int))
    assert metric("balanced_accuracy")(np.array([0, 1]), np.array([0, 1])) == 1.0
