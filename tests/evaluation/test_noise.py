"""F values of many labellings at once, against scikit-learn's, for every kind of labels and samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation import noise
from raysel.evaluation.noise import f_values, noise_stability


@pytest.fixture
def samples():
    X = np.random.default_rng(0).normal(size=(40, 11)) * np.logspace(-1, 1, 11) + 10
    X[:, 4] = 7
    return X


def plain(X, y):
    with np.errstate(all="ignore"), pytest.warns():
        return np.nan_to_num(f_classif(X, y)[0])


def test_they_are_scikit_learns_of_classes_and_of_labels(samples, monkeypatch):
    X = samples
    monkeypatch.setattr(noise, "_CELLS", 3 * len(X))  # three features at once
    rng = np.random.default_rng(1)
    labels = [rng.choice(list("abc"), 40) for _ in range(3)]
    np.testing.assert_allclose(f_values(X, labels), [plain(X, y) for y in labels], rtol=1e-6, atol=1e-9)
    indicator = rng.random((40, 3)) < 0.4
    indicator[:, 1] = False  # a label that no sample has tells nothing
    wanted = (plain(X, indicator[:, 0]) + plain(X, indicator[:, 2])) / 2
    np.testing.assert_allclose(f_values(X, [indicator])[0], wanted, rtol=1e-6, atol=1e-9)


def test_those_of_a_task_are_of_its_samples(samples):
    X = samples
    rng = np.random.default_rng(2)
    y, tasks = rng.integers(0, 2, 40), np.repeat([0, 1], 20)
    blocks = TaskBlocks((X[:20, :5], X[20:, 5:]), tasks)
    wanted = [*plain(X[:20, :5], y[:20]), *f_classif(X[20:, 5:], y[20:])[0]]
    np.testing.assert_allclose(f_values(blocks, [y])[0], wanted, rtol=1e-6, atol=1e-9)


def test_labels_that_tell_the_features_apart_are_stable_and_constant_features_are_never_selected(samples):
    y = np.arange(40) % 2
    X = samples
    X[:, :2] += 1e4 * y[:, None] * X[:, :2].std(axis=0)
    sets = [np.arange(0, 30), np.arange(10, 40), np.arange(5, 35)]
    found = noise_stability(X, [y], sets)[0]
    assert found[1] == pytest.approx(1)  # the two that the labels move
    assert found[9] == pytest.approx(1)  # all but the constant one
    assert found[10] == pytest.approx(1)  # no more are ever selected
