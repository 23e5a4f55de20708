"""PCA, LDA by ratio trace and by trace ratio, and Aggregate, against scikit-learn and dense eigenproblems."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import sklearn.decomposition
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from task_sets import concatenate, small_but_telling

from raysel.baselines.projections.aggregate import Aggregate
from raysel.baselines.projections.lda import LDA
from raysel.baselines.projections.pca import PCA
from raysel.baselines.projections.trace_ratio_lda import TraceRatioLDA
from raysel.data.scaling import UnitScaler
from raysel.errors import ConfigError, DataError
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA


def make_task(seed, n=60, D=10, c=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    return rng.standard_normal((c, D))[y] + rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) / 2, y


def scatters(X, y):
    centred = X - X.mean(axis=0)
    B = sum((y == c).mean() * np.outer(m, m) for c, m in ((c, centred[y == c].mean(axis=0)) for c in set(y)))
    return B, centred.T @ centred / len(X)


@pytest.mark.parametrize("D", [10, 90])
def test_pca_is_scikit_learns(D):
    X, y = make_task(0, D=D)
    ours, theirs = PCA(n_components=3).fit(X, y), sklearn.decomposition.PCA(n_components=3).fit(X)
    np.testing.assert_allclose(np.abs(ours.projections_[0].T @ theirs.components_.T), np.eye(3), atol=1e-8)
    assert ours.objective_path_[0] == pytest.approx(theirs.explained_variance_ratio_.sum())
    expected = np.sqrt(((theirs.components_.T * theirs.explained_variance_ratio_) ** 2).sum(axis=1))
    np.testing.assert_allclose(ours.scores_, expected, atol=1e-8)


def test_lda_without_shrinkage_is_scikit_learns():
    X, y = make_task(1)
    ours = LDA(shrinkage=0.0).fit(X, y).transform(X)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    theirs = theirs - theirs.mean(axis=0)
    np.testing.assert_allclose(ours * np.sign((ours * theirs).sum(axis=0)), theirs, atol=1e-8)


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 1.0])
def test_lda_solves_the_generalised_eigenproblem(shrinkage):
    X, y = make_task(2)
    B, T = scatters(X, y)
    W = (1 - shrinkage) * (T - B) + shrinkage * np.trace(T - B) / len(B) * np.eye(len(B))
    values, vectors = scipy.linalg.eigh(B, W)
    lda = LDA(shrinkage=shrinkage).fit(X, y)
    U = lda.projections_[0]
    np.testing.assert_allclose(U.T @ W @ U, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(U @ U.T, vectors[:, -3:] @ vectors[:, -3:].T, atol=1e-8)
    assert lda.objective_path_[0] == pytest.approx((values[-3:] / (1 + values[-3:])).sum())


def test_lda_with_more_features_than_samples_separates_the_classes():
    X, y = make_task(3, n=20, D=50)
    Z = LDA(shrinkage=0.0).fit(X, y).transform(X)
    means = np.stack([Z[y == c].mean(axis=0) for c in range(4)])
    assert np.abs(Z - means[y]).max() < 1e-4 * np.abs(means).max()


def test_trace_ratio_lda_is_mtda_of_one_task():
    tasks = [make_task(4), make_task(5, n=40, D=7, c=3)]
    alone = TraceRatioLDA().fit_tasks(tasks)
    for task, ratio, U in zip(tasks, alone.ratios_, alone.projections_, strict=True):
        single = MTDA().fit(*task)
        assert ratio == pytest.approx(single.objective_path_[-1], abs=1e-12)
        np.testing.assert_allclose(U @ U.T, single.projections_[0] @ single.projections_[0].T, atol=1e-8)


def test_aggregate_is_one_trace_ratio_lda_of_the_padded_samples():
    tasks = [make_task(6), make_task(7, n=40, D=7, c=3)]
    padded = np.zeros((100, 10))
    for (X, _), rows in zip(tasks, (slice(0, 60), slice(60, 100)), strict=True):
        centred = X - X.mean(axis=0)
        padded[rows, : X.shape[1]] = centred / np.sqrt((centred**2).sum() / len(X))
    classes = np.concatenate([tasks[0][1], tasks[1][1] + 4])
    expected = TraceRatioLDA(n_components=5).fit(padded, classes)
    ours = Aggregate().fit_tasks(tasks)
    assert ours.objective_path_[-1] == pytest.approx(expected.objective_path_[-1], abs=1e-10)
    Z = expected.transform(padded)
    for i, rows in enumerate((slice(0, 60), slice(60, 100))):
        own = ours.transform_task(i, tasks[i][0])
        np.testing.assert_allclose(own @ own.T, Z[rows] @ Z[rows].T, atol=1e-8)
        np.testing.assert_allclose(own, ours.embeddings_[i], atol=1e-10)


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
def test_each_rival_learns_and_speaks_clearly(method):
    tasks = [make_task(10), make_task(11, n=90, D=20, c=3)]
    X, y, widths = concatenate(tasks)
    rival = method(tasks=widths).fit(X, y)
    assert rival.score(X, y) == 1.0  # each sample is its own nearest neighbour
    assert rival.scores_.shape == rival.ranking_.shape == (30,)
    assert rival.scores_.min() >= 0
    with pytest.raises(ConfigError, match="give at most"):
        method(n_components=30).fit_tasks(tasks)
    with pytest.raises(DataError, match="task 'task1': all features are constant"):
        method().fit_tasks([tasks[0], (np.ones((6, 3)), [0, 1, 0, 1, 0, 1])])


# --- features of very different scales -------------------------------------------------------

EVERY_DIRECTION = [MTDA(), LDA(shrinkage=0.0), TraceRatioLDA(), Aggregate(), SemiSupervisedMTDA(unlabelled=-1)]


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


@given(st.integers(0, 10**6), st.integers(2, 4), st.lists(st.floats(-10, 0), min_size=2, max_size=7))
@settings(max_examples=40, deadline=None)
def test_the_scales_of_the_features_do_not_move_the_best_ratio(seed, c, powers):
    """One direction: the ratio is that of the generalised eigenproblem, which has no scale."""
    D = len(powers)
    X, y = make_task(seed, n=60, D=D, c=c)
    expected = scipy.linalg.eigh(*scatters(X, y), eigvals_only=True)[-1]
    scaled = X * 10.0 ** np.array(powers)
    for model in (TraceRatioLDA(n_components=1), LDA(n_components=1, shrinkage=0.0)):
        fitted = model.fit(scaled, y)
        assert fitted.ranks_.tolist() == [D]
        assert fitted.objective_path_[-1] == pytest.approx(expected, abs=1e-6)


def test_every_direction_of_breast_cancer_is_used():
    X, y = load_breast_cancer(return_X_y=True)
    X = UnitScaler().fit_transform(X)
    for model in (PCA(), LDA(shrinkage=0.0), TraceRatioLDA(), Aggregate(), MTDA()):
        assert model.fit(X, y).ranks_.tolist() == [30]
    expected = scipy.linalg.eigh(*scatters(X / X.std(axis=0), y), eigvals_only=True)[-1]
    assert TraceRatioLDA().fit(X, y).ratios_[0] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("model", [PCA(), LDA(), TraceRatioLDA(), MTDA(), SemiSupervisedMTDA(unlabelled=-1)], ids=str)
def test_a_warning_names_the_rank_only_where_a_direction_that_varies_is_left_out(model):
    (X, y), other = make_task(12, D=5), make_task(13, n=20, D=30)
    dependent = np.concatenate([X, X[:, :2], X[:, :1] - X[:, 1:2], np.full((60, 1), 1e8 / 3)], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit_tasks([(dependent, y), other]).ranks_.tolist() == [5, 19]
    lost = np.concatenate([dependent, 1e-16 * np.random.default_rng(0).standard_normal((60, 1))], axis=1)
    with pytest.warns(LinAlgWarning, match="task 'task0': rank 5 of 6 directions that vary: the others"):
        assert model.fit_tasks([(lost, y), other]).ranks_.tolist() == [5, 19]


def test_aggregate_warns_of_directions_that_pooling_loses():
    tasks = [make_task(14, D=4), make_task(15, n=40, D=3, c=3)]
    lost = [(X * [1.0, 1.0, 1e-17, 1.0][: X.shape[1]], y) for X, y in tasks]
    with pytest.warns(LinAlgWarning, match="the pooled data: rank 3 of 4 directions that vary"):
        assert Aggregate().fit_tasks(lost).ranks_.tolist() == [3]
