"""Transformers of the steps of a preparation: scikit-learn's contract, their columns, and what
they cannot take.
"""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.config.preparation import step_from_yaml
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tensor
from raysel.data.preparation.combat import SiteHarmoniser
from raysel.data.preparation.making import make_preparation
from raysel.data.preparation.outputs import Outputs, sources
from raysel.data.preparation.steps import (
    JointScaler,
    Log1p,
    NearConstantFilter,
    QuantileClipper,
    Residualiser,
)


@parametrize_with_checks(
    [JointScaler(), Log1p(), QuantileClipper(), NearConstantFilter(), Residualiser()]
)
def test_they_follow_scikit_learn(estimator, check):
    check(estimator)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))


@pytest.mark.parametrize(
    ("transformer", "values", "expected"),
    [
        (StandardScaler(), X, [0, 1, 2]),
        (OneHotEncoder(sparse_output=False), X.round(), None),
        (NearConstantFilter(0.5), np.column_stack([X[:, 0], np.zeros(40), X[:, 1]]), [0, 2]),
        (KBinsDiscretizer(2, quantile_method="averaged_inverted_cdf"), X, [0, 0, 1, 1, 2, 2]),
    ],
)
def test_the_column_of_each_output_is_read_from_its_name(transformer, values, expected):
    made = transformer.fit_transform(values)
    found = sources(transformer, values.shape[1], made.shape[1])
    if expected is None:
        expected = np.repeat(range(3), [len(np.unique(column)) for column in values.T]).tolist()
    assert found.tolist() == expected


@pytest.mark.parametrize(
    "transformer", [PCA(2), PolynomialFeatures(2), PolynomialFeatures(2, include_bias=False)]
)
def test_a_transformer_that_mixes_columns_is_refused(transformer):
    made = transformer.fit_transform(X)
    with pytest.raises(ConfigError, match="mixes columns"):
        sources(transformer, 3, made.shape[1])


def test_columns_and_sizes_are_those_of_the_features_in_their_order():
    outputs = Outputs(np.array([0, 2, 2, 3]), 5)
    assert outputs.columns(np.array([3, 2, 1])).tolist() == [3, 1, 2]
    assert outputs.sizes(np.array([3, 2, 1]), [1, 2, 3]) == [1, 3, 3]


def test_harmonised_sites_have_nearly_one_mean_and_variance_and_a_constant_column_stays():
    site = np.repeat([0.0, 1.0, 2.0], 200)
    truth = RNG.normal(size=(600, 30))
    moved = truth * (1 + site[:, None]) + 3 * site[:, None] * RNG.normal(size=30)
    moved[:, 0] = 7.0
    made = SiteHarmoniser().fit_transform(np.column_stack([moved, site]))
    assert (made[:, 0] == 7).all()
    means = np.array([made[site == s].mean(axis=0) for s in range(3)])
    stds = np.array([made[site == s].std(axis=0) for s in range(3)])[:, 1:]
    assert np.ptp(means, axis=0).max() < 0.1 * np.abs(moved.std(axis=0)).max()
    assert (stds.max(axis=0) / stds.min(axis=0)).max() < 1.15
    with pytest.raises(ValueError, match="site 2 has one training sample"):
        SiteHarmoniser().fit(np.column_stack([moved, site])[:401])


def test_what_a_step_cannot_take_is_said_with_its_number_and_the_mend():
    names = ["a", "b", "c"]

    def prepared(*steps, confounds=()):
        made = make_preparation(
            [step_from_yaml(step) for step in steps], names, Tensor((3,)), {}, confounds
        )
        return made.fit(np.where(np.arange(120).reshape(40, 3) == 4, np.nan, X - 3))

    with pytest.raises(
        DataError, match=r"step 1, residualise: .*NaN.* Put \{impute: median\} before it"
    ):
        prepared("residualise", confounds=["c"])
    with pytest.raises(
        DataError,
        match="step 2, log1p: Negative values in data: log1p takes values above -1, and one is",
    ):
        prepared("impute", "log1p")
    with pytest.raises(ConfigError, match="c is both a confound and the site of harmonise"):
        prepared("impute", "residualise", {"harmonise": "c"}, confounds=["c"])


def test_the_global_output_of_scikit_learn_changes_nothing():
    steps = [
        step_from_yaml(step)
        for step in ("impute", "clip", {"sklearn.preprocessing.StandardScaler": {}})
    ]
    plain = make_preparation(steps, ["a", "b", "c"], Tensor((3,)), {}).fit_transform(X)
    with sklearn.config_context(transform_output="pandas"):
        made = make_preparation(steps, ["a", "b", "c"], Tensor((3,)), {}).fit_transform(X)
    assert isinstance(made, np.ndarray)
    np.testing.assert_array_equal(made, plain)


@pytest.mark.parametrize(
    "step",
    [
        {"sklearn.pipeline.Pipeline": {"steps": []}},
        {"sklearn.pipeline.Pipeline": {"steps": [["a", "b"]]}},
        {"sklearn.pipeline.Pipeline": {"steps": "abc"}},
        {"sklearn.pipeline.FeatureUnion": {"transformer_list": ["ab"]}},
        {"sklearn.compose.ColumnTransformer": {"transformers": [["a", "drop", ["b"]], 3]}},
        {"sklearn.feature_selection.SelectFromModel": {"estimator": "x"}},
        {"sklearn.feature_selection.SelectKBest": {"score_func": "f_classif"}},
        {"sklearn.preprocessing.FunctionTransformer": {"func": "log"}},
    ],
)
def test_a_step_whose_parameters_fail_when_it_is_fitted_is_named(step):
    made = make_preparation([step_from_yaml(step)], ["a", "b", "c"], Tensor((3,)), {})
    (name,) = step
    with pytest.raises((ConfigError, DataError), match=rf"^dataset.prepare: step 1, {name}: \w+"):
        made.fit(X, np.arange(40) % 2)
