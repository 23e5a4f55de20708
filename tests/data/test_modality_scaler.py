"""ModalityScaler: what each method makes of a modality, fitted on the training set only."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.core.errors import ConfigError
from raysel.data.scaling import ModalityScaler

METHODS = ["zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"]
WIDTHS = {"hog": 3, "one": 1, "lbp": 4}


@pytest.fixture(name="X")
def features():
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 8)) * np.logspace(-3, 3, 8) + 5.0


def test_every_modality_gets_the_same_total_variance(X):
    scaled = ModalityScaler(WIDTHS).fit_transform(X)
    for block in (scaled[:, :3], scaled[:, 3:4], scaled[:, 4:]):
        assert block.var(axis=0).sum() == pytest.approx(1.0)


def test_the_plain_methods_are_those_of_scikit_learn(X):
    new = X[:5] * 1.5
    for method, peer in [("zscore", StandardScaler()), ("minmax", MinMaxScaler())]:
        scaler = ModalityScaler(WIDTHS, method).fit(X)
        np.testing.assert_allclose(scaler.transform(new), peer.fit(X).transform(new), rtol=1e-12)
    np.testing.assert_array_equal(ModalityScaler(WIDTHS, "none").fit_transform(X), X)


def test_each_row_of_a_modality_has_unit_length(X):
    scaled = ModalityScaler(WIDTHS, "row_unit").fit_transform(X)
    for block in (scaled[:, :3], scaled[:, 3:4], scaled[:, 4:]):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_constant_features_and_zero_rows_stay_finite(X, method):
    X[:, 2] = 4.0
    X[3] = 0.0
    assert np.isfinite(ModalityScaler(WIDTHS, method).fit_transform(X)).all()


def test_modalities_that_do_not_fit_are_named(X):
    with pytest.raises(ConfigError, match="7 columns in total, but X has 8"):
        ModalityScaler({"a": 3, "b": 4}).fit(X)
    with pytest.raises(ConfigError, match="'b' has 0 columns"):
        ModalityScaler({"a": 8, "b": 0}).fit(X)


@parametrize_with_checks([ModalityScaler(method=method) for method in METHODS])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)
