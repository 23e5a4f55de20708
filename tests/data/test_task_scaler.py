"""The scaling of several tasks against scikit-learn's of the padded array and of each task alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.base.models import load_model, save_model
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tasks
from raysel.data.scaling import TaskScaler, UnitScaler
from raysel.data.task_blocks import TaskBlocks
from raysel.solvers.mtda.aligned_mtda import AlignedMTDA
from raysel.solvers.mtda.mtda import MTDA

TASKS = {"a": 4, "b": (2, 3)}
METHODS = ["unit", "zscore", "none"]


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((30, 4)) * 3 + 5, rng.standard_normal((20, 6)) * [1, 2, 3, 4, 5, 0] - 1
    return TaskBlocks(samples, rng.permutation(np.repeat([0, 1], [30, 20])))


@parametrize_with_checks([TaskScaler(method=method) for method in METHODS])
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_and_padded_arrays_are_scaled_alike(method, blocks):
    train, test = blocks[:25], blocks[25:]
    by_blocks, by_array = TaskScaler(TASKS, method).fit(train), TaskScaler(TASKS, method).fit(train.dense())
    assert by_blocks.scale_.tobytes() == by_array.scale_.tobytes()
    assert by_blocks.n_features_in_ == by_array.n_features_in_ == 10
    for scaler in (by_blocks, by_array):
        scaled = scaler.transform(test)
        assert isinstance(scaled, TaskBlocks)
        assert scaled.dense().tobytes() == scaler.transform(test.dense()).tobytes()
        np.testing.assert_array_equal(scaled.tasks, test.tasks)


@pytest.mark.parametrize("method", METHODS)
def test_the_numbers_are_scikit_learns_of_the_padded_array(method, blocks):
    padded = blocks.dense()
    if method == "unit":
        expected = (padded - np.nanmin(padded)) / (np.nanmax(padded) - np.nanmin(padded))
    else:
        expected = {"zscore": StandardScaler(), "none": FunctionTransformer()}[method].fit_transform(padded)
    found = TaskScaler(TASKS, method).fit_transform(blocks).dense()
    np.testing.assert_array_equal(found, expected)  # to the last bit: old studies go on with the same numbers


def test_one_task_is_scaled_as_by_the_unit_scaler():
    X = np.random.default_rng(1).standard_normal((9, 3))
    np.testing.assert_array_equal(TaskScaler().fit_transform(X), UnitScaler().fit_transform(X))


def test_a_pipeline_of_it_is_saved_and_read_back(blocks, tmp_path):
    y = np.arange(50) % 3
    for model in (MTDA(TASKS), AlignedMTDA(TASKS, [np.eye(4), np.eye(6, 4)])):
        fitted = make_pipeline(TaskScaler(TASKS, "zscore"), model).fit(blocks, y)
        read = load_model(save_model(fitted, tmp_path / "model.skops"))
        np.testing.assert_array_equal(read.predict(blocks), fitted.predict(blocks))


def test_what_is_not_of_these_tasks_is_refused(blocks):
    with pytest.raises(ConfigError, match="tasks=None is for one task"):
        TaskScaler().fit(blocks)
    with pytest.raises(ConfigError, match="have 5 columns in total, but X has 10"):
        TaskScaler({"a": 4, "b": 1}).fit(blocks)
    with pytest.raises(DataError, match=r"X has tasks of \[4, 6\]"):
        TaskScaler({"a": 6, "b": 4}).fit(blocks)
    with pytest.raises(DataError, match="task 'b' has no samples"):
        TaskScaler(TASKS).fit(blocks[blocks.tasks == 0])
    with pytest.raises(ValueError, match="NaN"):
        TaskScaler().fit(blocks.dense())
    alone = TaskScaler(TASKS).fit(blocks).transform(blocks[blocks.tasks == 0])
    assert alone.shape == (30, 10)
    assert Tasks(TASKS).widths() == {"a": 4, "b": 6}
