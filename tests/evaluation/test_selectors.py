"""Selection by a method's scores: the best N with a score, by position or by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectKBest
from sklearn.utils.estimator_checks import parametrize_with_checks

from raysel.base.adapter import ScikitLearnMethod
from raysel.baselines.univariate_filters import Variance
from raysel.core.errors import ConfigError, DataError
from raysel.data.task_blocks import TaskBlocks, constant_features
from raysel.evaluation.selectors import RankedClassifier, RankedSelector, usable_scores
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.smml.smml import SMML


@parametrize_with_checks([RankedClassifier(SMML(tol=1e-3), 1)])
def test_a_classifier_follows_scikit_learn(estimator, check):
    check(estimator)


def test_it_selects_as_scikit_learn_does_by_the_same_scores():
    X, y = load_iris(return_X_y=True)
    method = ScikitLearnMethod(SelectKBest(k=4))
    for n in (1, 2, 3, 4):
        ours = RankedSelector(method, n).fit(X, y)
        theirs = SelectKBest(k=n).fit(X, y)
        np.testing.assert_array_equal(ours.get_support(), theirs.get_support())
        np.testing.assert_array_equal(ours.transform(X), theirs.transform(X))
        np.testing.assert_array_equal(
            ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X))
        )


def test_constant_features_and_those_without_a_score_are_never_selected():
    X, y = load_iris(return_X_y=True)
    method = Variance().fit(X, y)
    scores = usable_scores(
        np.array([1.0, 3.0, 0.0, 2.0]), np.array([False, True, False, False]), scale="effect"
    )
    for n, expected in ((1, [3]), (2, [0, 3]), (4, [0, 3]), (None, [0, 3])):
        selector = RankedSelector.of(method, scores, n)
        assert selector.estimator_ is method
        assert selector.get_support(indices=True).tolist() == expected
    nothing = RankedSelector.of(method, np.zeros(4), 2)
    assert nothing.transform(X).shape == (150, 0)


def test_a_table_must_have_the_columns_in_their_order():
    frame, y = load_iris(return_X_y=True, as_frame=True)
    selector = RankedSelector(Variance(), 2).fit(frame, y)
    expected = frame[["sepal length (cm)", "petal length (cm)"]]
    assert selector.get_feature_names_out().tolist() == list(expected)
    np.testing.assert_array_equal(
        selector.transform(frame.to_numpy()), expected
    )  # a warning would be an error
    with pytest.raises(ValueError, match="must be in the same order"):
        selector.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="has 3 features"):
        selector.transform(frame.to_numpy()[:, :3])
    pd.testing.assert_frame_equal(
        selector.set_output(transform="pandas").transform(frame), expected
    )


def test_samples_of_several_tasks_keep_their_own_columns():
    rng = np.random.default_rng(0)
    tasks, y = np.array([0, 1] * 10), np.array([f"t{i % 2}/{i // 2 % 2}" for i in range(20)])
    X = TaskBlocks((rng.random((10, 3)), rng.random((10, 4))), tasks)
    model = RankedClassifier(MTDA(tasks={"t0": 3, "t1": 4}), 4).fit(X, y)
    dense = X.dense()
    selected = model.transform(X)
    np.testing.assert_array_equal(selected, dense[:, model.get_support()])
    np.testing.assert_array_equal(model.transform(dense), selected)
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    with pytest.raises(ValueError, match="has 3 features"):
        model.transform(TaskBlocks((X.blocks[0],), np.zeros(10, dtype=int)))


def test_constant_features_are_those_of_one_value_within_their_task():
    X = TaskBlocks((np.array([[1.0, 2.0], [1.0, 3.0]]), np.array([[5.0]])), np.array([0, 1, 0]))
    assert constant_features(X).tolist() == [True, False, True]
    padded = np.array([[1.0, np.nan], [1.0, np.nan], [np.nan, 2.0], [np.nan, 3.0]])
    assert constant_features(padded).tolist() == [True, False]


def test_what_cannot_be_fitted_is_said():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ConfigError, match="the model file was written without it"):
        RankedSelector(None).fit(X, y)
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415

    with pytest.raises(DataError):
        RankedSelector(ScikitLearnMethod(KNeighborsClassifier())).fit(X, y)
