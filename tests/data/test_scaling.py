"""Scalers of modalities, of tasks and of one unit, fitted on the training set only."""

from __future__ import annotations

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.base.models import load_model, save_model
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Modalities, Tasks
from raysel.data.loading import load_dataset
from raysel.data.scaling import (
    ModalityScaler,
    TaskScaler,
    UnitScaler,
    make_scaler,
    scale_in_place,
    scale_training,
)
from raysel.data.task_blocks import TaskBlocks
from raysel.solvers.mtda.aligned_mtda import AlignedMTDA
from raysel.solvers.mtda.mtda import MTDA

METHODS = ["zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"]
WIDTHS = {"hog": 3, "one": 1, "lbp": 4}


@pytest.fixture(name="X")
def features():
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 8)) * np.logspace(-3, 3, 8) + 5.0


def blocks_of_modalities(X):
    return X[:, :3], X[:, 3:4], X[:, 4:]


def test_each_method_makes_of_a_modality_what_it_says(X):
    for block in blocks_of_modalities(ModalityScaler(WIDTHS).fit_transform(X)):
        assert block.var(axis=0).sum() == pytest.approx(1.0)
    for block in blocks_of_modalities(ModalityScaler(WIDTHS, "row_unit").fit_transform(X)):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0)
    for method, peer in [
        ("zscore", StandardScaler()),
        ("minmax", MinMaxScaler()),
        ("none", FunctionTransformer()),
    ]:
        scaler = ModalityScaler(WIDTHS, method).fit(X)
        np.testing.assert_allclose(
            scaler.transform(X[:5] * 1.5), peer.fit(X).transform(X[:5] * 1.5), rtol=1e-12
        )


@pytest.mark.parametrize("method", METHODS)
def test_constant_features_and_zero_rows_stay_finite(X, method):
    X[:, 2] = 4.0
    X[3] = 0.0
    assert np.isfinite(ModalityScaler(WIDTHS, method).fit_transform(X)).all()


def test_modalities_that_do_not_fit_are_named(X):
    with pytest.raises(ConfigError):
        ModalityScaler({"a": 3, "b": 4}).fit(X)
    with pytest.raises(ConfigError):
        ModalityScaler({"a": 8, "b": 0}).fit(X)


@parametrize_with_checks([ModalityScaler(), TaskScaler(), UnitScaler()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


TASKS = {"a": 4, "b": (2, 3)}
METHODS_TASK_SCALER = ["unit", "zscore", "none"]


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    samples = (
        rng.standard_normal((30, 4)) * 3 + 5,
        rng.standard_normal((20, 6)) * [1, 2, 3, 4, 5, 0] - 1,
    )
    return TaskBlocks(samples, rng.permutation(np.repeat([0, 1], [30, 20])))


@pytest.mark.parametrize("method", METHODS_TASK_SCALER)
def test_blocks_and_padded_arrays_are_scaled_alike(method, blocks):
    train, test = blocks[:25], blocks[25:]
    by_blocks, by_array = (
        TaskScaler(TASKS, method).fit(train),
        TaskScaler(TASKS, method).fit(train.dense()),
    )
    assert by_blocks.scale_.tobytes() == by_array.scale_.tobytes()
    assert by_blocks.n_features_in_ == by_array.n_features_in_ == 10
    for scaler in (by_blocks, by_array):
        scaled = scaler.transform(test)
        assert isinstance(scaled, TaskBlocks)
        assert scaled.dense().tobytes() == scaler.transform(test.dense()).tobytes()
        np.testing.assert_array_equal(scaled.tasks, test.tasks)


@pytest.mark.parametrize("method", METHODS_TASK_SCALER)
def test_the_numbers_are_scikit_learns_of_the_padded_array(method, blocks):
    padded = blocks.dense()
    if method == "unit":
        expected = (padded - np.nanmin(padded)) / (np.nanmax(padded) - np.nanmin(padded))
    else:
        expected = {"zscore": StandardScaler(), "none": FunctionTransformer()}[
            method
        ].fit_transform(padded)
    found = TaskScaler(TASKS, method).fit_transform(blocks).dense()
    np.testing.assert_array_equal(
        found, expected
    )  # to the last bit: old studies go on with the same numbers


def test_a_pipeline_of_it_is_saved_and_read_back(blocks, tmp_path):
    y = np.arange(50) % 3
    for model in (MTDA(TASKS), AlignedMTDA(TASKS, [np.eye(4), np.eye(6, 4)])):
        fitted = make_pipeline(TaskScaler(TASKS, "zscore"), model).fit(blocks, y)
        read = load_model(save_model(fitted, tmp_path / "model.skops"))
        np.testing.assert_array_equal(read.predict(blocks), fitted.predict(blocks))


def test_what_is_not_of_these_tasks_is_refused(blocks):
    first = blocks[blocks.tasks == 0]
    for tasks, X, kind, message in (
        (None, blocks, ConfigError, "tasks=None is for one task"),
        ({"a": 4, "b": 1}, blocks, ConfigError, "have 5 columns in total, but X has 10"),
        ({"a": 6, "b": 4}, blocks, DataError, r"X has tasks of \[4, 6\]"),
        (TASKS, first, DataError, "task 'b' has no samples"),
        (None, blocks.dense(), ValueError, "NaN"),
    ):
        with pytest.raises(kind, match=message):
            TaskScaler(tasks).fit(X)
    assert TaskScaler(TASKS).fit(blocks).transform(first).shape == (30, 10)


@given(hnp.arrays(np.float64, (7, 3), elements=st.integers(-(10**6), 10**6).map(float)))
def test_unit_scaler_maps_the_whole_range_and_keeps_relative_variances(X):
    before = X.copy()
    scaled = UnitScaler().fit_transform(X)
    np.testing.assert_array_equal(X, before)
    if np.ptp(X) == 0:
        np.testing.assert_array_equal(scaled, 0)
        return
    assert scaled.min() == 0
    assert scaled.max() == 1
    np.testing.assert_allclose(
        scaled.std(axis=0) * np.ptp(X), X.std(axis=0), atol=1e-9 * np.abs(X).max()
    )


def test_unit_scaler_knows_the_training_set_only_as_do_task_scalers_of_one_task():
    for scaler in (UnitScaler(), TaskScaler()):
        scaler.fit([[1.0, 5.0], [11.0, 5.0]])
        np.testing.assert_allclose(scaler.transform([[-9.0, 21.0]]), [[-1.0, 2.0]])


def test_names_and_pandas_pass_through():
    scaler = UnitScaler().set_output(transform="pandas").fit(np.eye(2))
    assert scaler.transform(np.eye(2)).columns.tolist() == ["x0", "x1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unit", lambda X: X / 16),  # the digits run from 0 to 16
        ("zscore", lambda X: (X - X.mean(0)) / np.where(X.std(0) == 0, 1, X.std(0))),
        ("none", lambda X: X),
    ],
)
def test_make_scaler_in_a_pipeline_and_through_skops(name, expected):
    digits = load_dataset("digits")
    scaler = make_scaler(name)
    np.testing.assert_allclose(
        clone(scaler).fit_transform(digits.X), expected(digits.X), atol=1e-12
    )
    pipeline = make_pipeline(scaler, RidgeClassifier()).fit(digits.X, digits.y)
    assert pipeline[0].get_feature_names_out(digits.feature_names).tolist() == list(
        digits.feature_names
    )
    dumped = skops.io.dumps(pipeline)
    untrusted = skops.io.get_untrusted_types(data=dumped)
    assert untrusted == (["raysel.data.scaling.UnitScaler"] if name == "unit" else [])
    loaded = skops.io.loads(dumped, trusted=untrusted)
    np.testing.assert_array_equal(
        loaded.decision_function(digits.X), pipeline.decision_function(digits.X)
    )


@pytest.mark.parametrize("scaling", ["zscore_sqrt_width", "minmax", "row_unit"])
def test_scalings_that_are_unknown_or_of_modalities_are_refused(scaling):
    with pytest.raises(
        ConfigError, match="'robust' is unknown; give unit, zscore, none, zscore_sqrt_width"
    ):
        make_scaler("robust")
    with pytest.raises(ConfigError):
        make_scaler(scaling, Tasks({"a": 2, "b": 3}))


@pytest.mark.parametrize(
    "name", ["unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"]
)
def test_scaling_in_place_has_the_bits_of_fit_transform(name):
    rng = np.random.default_rng(0)
    X, new = rng.lognormal(0.0, 3.0, (23, 4099)), rng.lognormal(0.0, 3.0, (5, 4099))
    X[:, 7] = 0.1
    layout = Modalities({"a": 4000, "b": 99})
    expected, found = make_scaler(name, layout), make_scaler(name, layout)
    np.testing.assert_array_equal(scale_training(found, X.copy()), expected.fit_transform(X))
    np.testing.assert_array_equal(scale_in_place(found, new.copy()), expected.transform(new))
    assert vars(found).keys() == vars(expected).keys()
    for key, value in vars(expected).items():
        if key.endswith("_"):
            np.testing.assert_array_equal(getattr(found, key), value)
