"""Pseudo-values of a score against scikit-learn's metrics, published variances and plain means."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from raysel.numerics.jackknife import MOST_UNITS, pseudo_values


@pytest.fixture
def losses():
    return np.random.default_rng(0).lognormal(size=60)


def test_of_a_mean_they_are_the_losses_of_the_samples(losses):
    found = pseudo_values(lambda rows: losses[rows].mean(), np.arange(60))
    assert found == pytest.approx(losses)


def test_of_a_mean_over_equal_groups_they_are_the_means_of_the_groups(losses):
    groups = np.random.default_rng(1).permutation(np.repeat(list("abcdefghijkl"), 5))
    found = pseudo_values(lambda rows: losses[rows].mean(), groups)
    assert found == pytest.approx([losses[groups == name].mean() for name in "abcdefghijkl"])


def delong(y, scores):
    """Variance of an AUC; E. DeLong et al., Biometrics 44, 1988."""
    right = (scores[y == 1][:, None] > scores[y == 0]).astype(float)
    positive, negative = right.mean(axis=1), right.mean(axis=0)
    return positive.var(ddof=1) / len(positive) + negative.var(ddof=1) / len(negative)


def test_their_variance_is_that_of_an_auc():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [40, 25])
    scores = rng.normal(size=65) + y
    found = pseudo_values(lambda rows: roc_auc_score(y[rows], scores[rows]), np.arange(65))
    assert found.var(ddof=1) / 65 == pytest.approx(delong(y, scores), rel=0.05)


@pytest.mark.slow
def test_their_variance_is_that_of_f1_over_new_samples():
    rng = np.random.default_rng(3)

    def draw():
        y = (rng.random(80) < 0.3).astype(int)
        return y, np.where(rng.random(80) < 0.75, y, 1 - y)

    samples = [draw() for _ in range(300)]
    estimates = [
        pseudo_values(lambda rows: f1_score(y[rows], p[rows]), np.arange(80)).var(ddof=1) / 80  # noqa: B023
        for y, p in samples[:20]
    ]
    assert np.mean(estimates) == pytest.approx(np.var([f1_score(*s) for s in samples]), rel=0.25)


def test_there_is_none_where_the_score_is_undefined_without_a_sample_and_one_of_one_unit():
    y, scores = np.array([0, 0, 0, 1]), np.array([0.1, 0.2, 0.6, 0.5])

    def auc(rows):
        if np.ptp(y[rows]) == 0:
            raise IndexError
        return roc_auc_score(y[rows], scores[rows])

    assert len(pseudo_values(auc, np.arange(4))) == 0
    assert pseudo_values(auc, np.zeros(4)) == pytest.approx([2 / 3])


def test_of_many_samples_parts_are_left_out_that_know_no_order():
    """Consecutive samples are alike, as in a file in the order of the label."""
    losses = np.sort(np.random.default_rng(4).lognormal(size=3050))
    found = pseudo_values(lambda rows: losses[rows].mean(), np.arange(3050))
    assert len(found) == MOST_UNITS
    assert found.mean() == pytest.approx(losses.mean(), rel=0.01)
    error = losses.var(ddof=1) / 3050
    assert found.var(ddof=1) / MOST_UNITS == pytest.approx(error, rel=0.5)


@pytest.mark.parametrize("n_columns", [10, 20, 1000])
def test_of_many_columns_fewer_parts_are_left_out(losses, n_columns):
    """The AUC of 20 classes takes 20 times as long as that of one."""
    many, calls = np.tile(losses, 7), []

    def mean_loss(rows):
        calls.append(rows)
        return many[rows].mean()

    found = pseudo_values(mean_loss, np.arange(420), n_columns)
    assert 20 <= len(found) == len(calls) - 1 <= max(20, 5 * MOST_UNITS // n_columns)
    assert found.var(ddof=1) / len(found) == pytest.approx(many.var() / 420, rel=0.7)
