"""Scalers: what they compute, scikit-learn's contract, and export without trust."""

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
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.core.errors import ConfigError
from raysel.data.layouts import Modalities, Tasks
from raysel.data.loading import load_dataset
from raysel.data.scaling import UnitScaler, make_scaler, scale_in_place, scale_training


@parametrize_with_checks([UnitScaler()])
def test_sklearn_contract(estimator, check):
    check(estimator)


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
    np.testing.assert_allclose(scaled.std(axis=0) * np.ptp(X), X.std(axis=0), atol=1e-9 * np.abs(X).max())


def test_unit_scaler_knows_the_training_set_only():
    scaler = UnitScaler().fit([[0.0, 5.0], [10.0, 5.0]])
    np.testing.assert_allclose(scaler.transform([[-10.0, 20.0]]), [[-1.0, 2.0]])


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
    np.testing.assert_allclose(clone(scaler).fit_transform(digits.X), expected(digits.X), atol=1e-12)
    pipeline = make_pipeline(scaler, RidgeClassifier()).fit(digits.X, digits.y)
    assert pipeline[0].get_feature_names_out(digits.feature_names).tolist() == list(digits.feature_names)
    dumped = skops.io.dumps(pipeline)
    untrusted = skops.io.get_untrusted_types(data=dumped)
    assert untrusted == (["raysel.data.scaling.UnitScaler"] if name == "unit" else [])
    loaded = skops.io.loads(dumped, trusted=untrusted)
    np.testing.assert_array_equal(loaded.decision_function(digits.X), pipeline.decision_function(digits.X))


def test_unknown_scaling():
    with pytest.raises(ConfigError, match="'robust' is unknown; give unit, zscore, none, zscore_sqrt_width"):
        make_scaler("robust")


@pytest.mark.parametrize("scaling", ["zscore_sqrt_width", "minmax", "row_unit"])
def test_scalings_of_modalities_are_refused_for_tasks(scaling):
    with pytest.raises(ConfigError, match=f"'{scaling}' does not support several tasks; give unit, zscore or none"):
        make_scaler(scaling, Tasks({"a": 2, "b": 3}))


@pytest.mark.parametrize("name", ["unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"])
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
