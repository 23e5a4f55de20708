"""Guesses that read no feature, against brute force and formulas."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, make_scorer, mean_pinball_loss, roc_auc_score

from raysel.data.targets import find_target
from raysel.data.targets.guesses import (
    BEST_CONSTANT,
    GUESSES,
    MEAN,
    MOST_FREQUENT,
    RANDOM_ORDER,
    SHARES,
    STRATIFIED,
    best_constant_value,
)
from raysel.evaluation.guesses import guess_score
from raysel.numerics.metrics import metric

SKEWED = np.random.default_rng(0).lognormal(sigma=1.5, size=61)


def pairs_in_order(y_true, y_pred):
    """Share of the pairs in the right order, pairs with equal predictions counted as wrong."""
    signs = np.sign(np.subtract.outer(y_true, y_true)) * np.sign(np.subtract.outer(y_pred, y_pred))
    return float(np.mean(signs[np.triu_indices(len(y_true), 1)] > 0))


high_quantile = make_scorer(mean_pinball_loss, alpha=0.9, greater_is_better=False)


def scored(name, y_train, y_test, of, seed=0):
    return guess_score(name, y_train, y_test, measure=metric(of), random_state=seed)


def expected_average_precision(n, n_positive):
    """Mean over all orders of n samples (Bestgen 2015)."""
    harmonic = (1 / np.arange(1, n + 1)).sum()
    return harmonic / n + (n_positive - 1) / (n - 1) * (n - harmonic) / n


def test_average_precision_of_a_random_order_is_the_mean_over_all_orders():
    y = np.array([0, 0, 1, 0, 1])
    orders = itertools.permutations(range(5))
    every = np.mean([average_precision_score(y, order) for order in orders])
    assert expected_average_precision(5, 2) == pytest.approx(every)
    actual = np.mean([scored(RANDOM_ORDER, y, y, "average_precision", s) for s in range(3)])
    assert actual == pytest.approx(every, abs=0.04)
    assert y.mean() < every - 0.1


def test_the_expectation_is_that_of_the_size_and_share_of_the_test_samples():
    y = np.arange(400) % 10 == 0
    for n, n_positive in ((10, 1), (40, 4)):
        actual = [scored(RANDOM_ORDER, y, y[:n], "average_precision", s) for s in range(3)]
        error = {10: 0.05, 40: 0.02}[n]
        assert np.mean(actual) == pytest.approx(
            expected_average_precision(n, n_positive), abs=error
        )


def test_mean_average_precision_has_the_mean_of_its_labels():
    y = np.random.default_rng(1).permutation(np.repeat([0, 1, 2], [4, 10, 16]))
    wanted = np.mean([expected_average_precision(30, n) for n in (4, 10, 16)])
    actual = np.mean([scored(RANDOM_ORDER, y, y, "mean_average_precision", s) for s in range(5)])
    assert actual == pytest.approx(wanted, abs=0.02)
    indicator = np.eye(3, dtype=int)[y]
    of_labels = [
        scored(RANDOM_ORDER, indicator, indicator, "average_precision", s) for s in range(2)
    ]
    assert np.mean(of_labels) == pytest.approx(wanted, abs=0.03)


def test_an_area_under_the_curve_is_a_half():
    y = np.arange(12) % 3 == 0
    assert find_target(y).guesses(metric("roc_auc")) == [SHARES]
    assert scored(SHARES, y, y, "roc_auc") == roc_auc_score(y, np.zeros(12)) == 0.5


@pytest.mark.parametrize(
    ("of", "constant"),
    [
        ("neg_mean_absolute_error", np.median),
        ("neg_mae", np.median),
        ("neg_max_error", lambda y: (y.min() + y.max()) / 2),
        ("neg_mean_squared_log_error", lambda y: np.expm1(np.log1p(y).mean())),
        ("neg_rmse", np.mean),
        ("own_metrics.high_quantile", lambda y: np.quantile(y, 0.9, method="inverted_cdf")),
    ],
)
def test_the_constant_is_the_known_optimum(of, constant, monkeypatch):
    monkeypatch.setitem(sys.modules, "own_metrics", sys.modules[__name__])
    measure = metric(of)
    found = best_constant_value(measure, SKEWED)
    wanted = constant(SKEWED)
    assert measure(SKEWED, np.full(61, found), SKEWED.mean()) == pytest.approx(
        measure(SKEWED, np.full(61, wanted), SKEWED.mean()), rel=1e-3
    )
    several = np.column_stack([SKEWED, 100 * SKEWED[::-1] + 5])
    if of == "neg_mae":
        np.testing.assert_allclose(best_constant_value(measure, several), np.median(several, 0))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_constant_has_the_unit_of_the_quantity(unit):
    measure = metric("neg_max_error")
    found = best_constant_value(measure, unit * SKEWED)
    assert found == pytest.approx(unit * best_constant_value(measure, SKEWED), rel=1e-4)
    assert found == pytest.approx(unit * (SKEWED.min() + SKEWED.max()) / 2, rel=1e-4)


@pytest.mark.parametrize(
    "of",
    ["neg_mean_absolute_percentage_error", "neg_median_absolute_error", "d2_absolute_error_score"],
)
def test_no_training_value_and_no_mean_is_a_better_constant(of):
    measure = metric(of)
    rivals = [*SKEWED, SKEWED.mean(), *np.linspace(0, SKEWED.max(), 50)]
    best = max(measure(SKEWED, np.full(61, value)) for value in rivals)
    found = measure(SKEWED, np.full(61, best_constant_value(measure, SKEWED)))
    mean = measure(SKEWED, np.full(61, SKEWED.mean()))
    assert mean < found
    assert best - found < 0.1 * (best - mean)


def test_a_metric_of_pairs_in_order_has_a_chance_of_a_half(monkeypatch):
    monkeypatch.setitem(sys.modules, "own_metrics", sys.modules[__name__])
    measure = metric("own_metrics.pairs_in_order")
    assert find_target(SKEWED).guesses(measure) == [BEST_CONSTANT, RANDOM_ORDER]
    assert scored(BEST_CONSTANT, SKEWED, SKEWED, measure.name) == 0.0
    assert scored(RANDOM_ORDER, SKEWED, SKEWED, measure.name) == pytest.approx(0.5)


def test_metrics_have_the_guesses_of_their_kind():
    of_classes, of_labels = np.arange(9) % 3, np.eye(3, dtype=int)
    assert find_target(of_classes).guesses(metric("accuracy")) == [MOST_FREQUENT, STRATIFIED]
    assert find_target(of_classes).guesses(metric("neg_log_loss")) == [SHARES]
    assert find_target(of_labels).guesses(metric("mean_average_precision")) == [
        SHARES,
        RANDOM_ORDER,
    ]
    assert find_target(SKEWED).guesses(metric("out_of_sample_r2")) == [MEAN]
    assert find_target(SKEWED).guesses(metric("neg_mae")) == [BEST_CONSTANT]
    assert len(set(GUESSES)) == len(GUESSES)
