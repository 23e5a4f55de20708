"""Metrics of quantities against scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from raysel.core.errors import ConfigError, DataError
from raysel.data.targets import find_target
from raysel.numerics.metrics import metric
from raysel.numerics.regression import correlation, out_of_sample_r2

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(5, 2, size=(40, 2)) * [1, 100]
PREDICTED = TRUTH + RNG.normal(size=(40, 2)) * [1, 90]
EXPECTED = {
    "neg_rmse": lambda y, p: -root_mean_squared_error(y, p),
    "neg_mae": lambda y, p: -mean_absolute_error(y, p),
    "pearson": lambda y, p: np.mean([pearsonr(a, b).statistic for a, b in _pairs(y, p)]),
    "spearman": lambda y, p: np.mean([spearmanr(a, b).statistic for a, b in _pairs(y, p)]),
    "explained_variance": lambda y, p: np.mean(
        [1 - (a - b).var() / a.var() for a, b in _pairs(y, p)]
    ),
}


def _pairs(y, p):
    return zip(y.reshape(40, -1).T, p.reshape(40, -1).T, strict=True)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("columns", [0, slice(None)], ids=["one", "two"])
def test_they_are_those_of_scikit_learn_and_scipy(name, columns):
    y, p = TRUTH[:, columns], PREDICTED[:, columns]
    known = find_target(y).known(y)
    assert metric(name)(y, p, known) == pytest.approx(EXPECTED[name](y, p), rel=1e-12)


@pytest.mark.parametrize("columns", [0, slice(None)], ids=["one", "two"])
def test_r2_is_against_the_mean_of_the_training_samples(columns):
    y, p = TRUTH[:, columns], PREDICTED[:, columns]
    measure = metric("out_of_sample_r2")
    assert measure(y, p, y.mean(axis=0)) == pytest.approx(r2_score(y, p), rel=1e-12)
    training = y + 3.0
    known = find_target(training).known(training)
    assert measure(y, np.zeros_like(y) + training.mean(axis=0), known) == 0.0
    assert measure(y, p, known) > r2_score(y, p)
    assert measure(y, -p, known) < 0.0


def test_where_nothing_varies_there_is_still_a_number():
    ones = np.ones(4)
    assert out_of_sample_r2(ones, ones, np.array(1.0)) == 1.0
    assert out_of_sample_r2(ones, 2 * ones, np.array(1.0)) == 0.0
    assert correlation(ones, np.arange(4.0)) == 0.0
    assert correlation(1e200 * np.arange(4.0), -np.arange(4.0)) == -1.0


def test_metrics_and_labels_must_fit():
    for name in EXPECTED:
        find_target(TRUTH).check_metric(name, TRUTH)
        with pytest.raises(ConfigError, match="is for quantities, and y has 2 classes"):
            find_target(np.array([0, 1, 0, 1])).check_metric(name, np.array([0, 1, 0, 1]))
    with pytest.raises(
        ConfigError, match=r"accuracy is for .*, and y is a quantity; take .*out_of_sample_r2"
    ):
        find_target(TRUTH[:, 0]).check_metric("accuracy", TRUTH[:, 0])
    with pytest.raises(DataError, match="numbers in the shape of y"):
        out_of_sample_r2(TRUTH, PREDICTED[:, 0])
