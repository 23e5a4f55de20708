"""What all projections have in common: tasks, messages, and features of very different scales."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.neighbors import KNeighborsClassifier
from task_sets import concatenate, dense_scatters, make_task, small_but_telling

from raysel.baselines.aggregate import Aggregate
from raysel.baselines.linear_projections import LDA, PCA, TraceRatioLDA
from raysel.core.errors import ConfigError, DataError
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA


@pytest.mark.parametrize("method", [PCA, LDA, TraceRatioLDA])
def test_tasks_are_fitted_each_on_its_own(method):
    tasks = [make_task(8), make_task(9, n=30, D=40, c=3)]
    X, y, widths = concatenate(tasks)
    together = method(tasks=widths).fit(X, y)
    for i, (own, labels) in enumerate(tasks):
        alone = method().fit(own, labels)
        np.testing.assert_allclose(together.transform_task(i, own), alone.transform(own), atol=1e-6)
        np.testing.assert_array_equal(together.predict_task(i, own), alone.predict(own))


@pytest.mark.parametrize("method", [PCA, LDA, TraceRatioLDA, Aggregate])
def test_each_baseline_learns_and_names_wrong_input(method):
    tasks = [make_task(10), make_task(11, n=90, D=20, c=3)]
    X, y, widths = concatenate(tasks)
    rival = method(tasks=widths).fit(X, y)
    assert rival.score(X, y) == 1.0  # each sample is its own nearest neighbour
    assert rival.scores_.shape == rival.ranking_.shape == (30,)
    assert rival.scores_.min() >= 0
    with pytest.raises(ConfigError):
        method(n_components=30).fit_tasks(tasks)
    with pytest.raises(DataError, match="task 'task1': all features are constant"):
        method().fit_tasks([tasks[0], (np.ones((6, 3)), [0, 1, 0, 1, 0, 1])])


# --- features of very different scales -------------------------------------------------------

EVERY_DIRECTION = [
    MTDA(),
    LDA(shrinkage=0.0),
    TraceRatioLDA(),
    Aggregate(),
    SemiSupervisedMTDA(unlabelled=-1),
]


@pytest.mark.parametrize("model", EVERY_DIRECTION, ids=str)
@pytest.mark.parametrize("scale", [1e-3, 1e-5, 1e-7, 1e-10])
def test_a_telling_feature_of_small_scale_is_found(model, scale):
    (X, y), (X_test, y_test) = small_but_telling(0, scale), small_but_telling(1, scale)
    alone = KNeighborsClassifier(1).fit(X[:, 3:], y).score(X_test[:, 3:], y_test)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model.fit(X, y)
    assert alone > 0.94
    assert fitted.score(X_test, y_test) > alone - 0.03
    assert fitted.ranks_.tolist() == [4]


@given(
    st.integers(0, 10**6), st.integers(2, 4), st.lists(st.floats(-10, 0), min_size=2, max_size=7)
)
@settings(max_examples=40)
def test_the_scales_of_the_features_do_not_move_the_best_ratio(seed, c, powers):
    """One direction: the ratio is that of the generalised eigenproblem, which has no scale."""
    D = len(powers)
    X, y = make_task(seed, n=60, D=D, c=c)
    expected = scipy.linalg.eigh(*dense_scatters(X, y), eigvals_only=True)[-1]
    scaled = X * 10.0 ** np.array(powers)
    for model in (TraceRatioLDA(n_components=1), LDA(n_components=1, shrinkage=0.0)):
        fitted = model.fit(scaled, y)
        assert fitted.ranks_.tolist() == [D]
        assert fitted.objective_path_[-1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "model", [PCA(), LDA(), TraceRatioLDA(), MTDA(), SemiSupervisedMTDA(unlabelled=-1)], ids=str
)
def test_a_warning_names_the_rank_only_where_a_direction_that_varies_is_left_out(model):
    (X, y), other = make_task(12, D=5), make_task(13, n=20, D=30)
    dependent = np.concatenate(
        [X, X[:, :2], X[:, :1] - X[:, 1:2], np.full((60, 1), 1e8 / 3)], axis=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit_tasks([(dependent, y), other]).ranks_.tolist() == [5, 19]
    lost = np.concatenate(
        [dependent, 1e-16 * np.random.default_rng(0).standard_normal((60, 1))], axis=1
    )
    with pytest.warns(
        LinAlgWarning, match="task 'task0': rank 5 of 6 directions that vary: the others"
    ):
        assert model.fit_tasks([(lost, y), other]).ranks_.tolist() == [5, 19]
