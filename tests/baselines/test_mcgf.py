"""MCGF: its graph against loops over the samples, its scores against a Sylvester solver, the
kept spectra.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
from graph_references import graph_by_loops
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from splits import trial_split

from raysel.base.registry import build_solver, solver_capabilities
from raysel.baselines import mcgf
from raysel.baselines.mcgf import MCGF, GraphSpectrum, correlated_scores, graph_spectrum, laplacian
from raysel.baselines.recent import RecentResults
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import save_dataset
from raysel.data.scaling import UnitScaler
from raysel.testing.checks import prepare_study


def draw(seed, n=40, d=5):
    return np.random.default_rng(seed).standard_normal((n, d))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 8), n=st.integers(2, 25))
def test_the_graph_is_that_of_the_loops(seed, k, n):
    X = draw(seed, n)
    np.testing.assert_allclose(laplacian(X, k), graph_by_loops(X, min(k, n - 1)), atol=1e-12)


def test_equal_samples_share_their_neighbours():
    X = draw(0, 15)
    twice = np.concatenate([X, X])
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_allclose(
        laplacian(twice[order], 3), laplacian(twice, 3)[np.ix_(order, order)], atol=1e-12
    )
    np.testing.assert_allclose(laplacian(np.ones((3, 2)), 1), 3 * np.eye(3) - 1)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 4), groups=st.integers(1, 4))
def test_the_spectrum_is_that_of_the_laplacian_and_counts_the_parts(seed, k, groups):
    X = draw(seed, 24) + 100.0 * (np.arange(24) % groups)[:, None]
    spectrum, L = graph_spectrum(X, k), laplacian(X, k)
    V, values = spectrum.vectors, spectrum.values
    np.testing.assert_allclose(V * values @ V.T, L, atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(24), atol=1e-10)
    assert (np.diff(values) >= 0).all()
    n_parts, _ = connected_components(L < 0)
    assert n_parts >= groups
    assert np.count_nonzero(values < 1e-9) == n_parts


def test_a_kept_spectrum_is_read_only_and_that_of_its_own_samples(monkeypatch):
    monkeypatch.setattr(mcgf, "_recent", RecentResults(10**6))
    X = draw(1)
    first = graph_spectrum(X, 3)
    assert graph_spectrum(X.copy(), 3) is first
    assert graph_spectrum(X, 4) is not first
    assert graph_spectrum(X.reshape(20, 10), 3).vectors.shape == (
        20,
        20,
    )  # the same bytes in another shape
    with pytest.raises(ValueError, match="read-only"):
        first.values[0] = 1.0


class SlowDict(OrderedDict):
    """A dictionary that lets other threads run after a look-up."""

    def __contains__(self, key):
        found = super().__contains__(key)
        time.sleep(1e-3)
        return found


def draw_mcgf(seed, n=40, d=5, c=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, c)) + rng.standard_normal((n, c)) > 0.3).astype(int)


def cosines(Y):
    norms = np.linalg.norm(Y, axis=0)
    return Y.T @ Y / np.where(norms * norms[:, None] > 0, norms * norms[:, None], 1)


def solved(L, Y, C, beta, alpha):
    """beta (F - Y) + L F - alpha F C = 0."""
    return scipy.linalg.solve_sylvester(beta * np.eye(len(L)) + L, -alpha * C, beta * Y)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**16),
    beta=st.sampled_from([0.1, 1.0, 10.0]),
    alpha=st.sampled_from([0.0, 0.25, 0.75]),
    empty=st.booleans(),
)
def test_scores_are_those_of_a_sylvester_solver_and_own_shares_those_of_refits(
    seed, beta, alpha, empty
):
    X, Y = draw_mcgf(seed, 30)
    n = 20
    Y[:, 0] *= not empty
    L, C, given_labels = laplacian(X, 10), cosines(Y[:n]), np.vstack([Y[:n], np.zeros((10, 4))])
    F, own = correlated_scores(graph_spectrum(X, 10), Y[:n].astype(float), beta, alpha)
    weight = beta * np.median(np.linalg.eigvalsh(L))
    strength = alpha * weight / np.linalg.eigvalsh(C)[-1]
    np.testing.assert_allclose(F, solved(L, given_labels, C, weight, strength), atol=1e-9)
    for i in (0, 7, n - 1):
        without = given_labels.copy()
        without[i] = 0
        np.testing.assert_allclose(
            F[i] - own[i], solved(L, without, C, weight, strength)[i], atol=1e-9
        )


def test_the_boundary_leaves_the_share_of_the_label_above_it():
    X, Y = draw_mcgf(1, 60)
    n = 40
    model = MCGF().fit(X[:n], Y[:n])
    F, own = correlated_scores(graph_spectrum(X, 10), Y[:n].astype(float), 1.0, 0.5)
    values = model.decision_function(X[n:])
    for label in range(4):
        left_out, boundary = F[:n, label] - own[:, label], F[n, label] - values[0, label]
        assert np.count_nonzero(left_out > boundary) == Y[:n, label].sum()
        np.testing.assert_allclose(values[:, label], F[n:, label] - boundary, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X[n:]), values > 0)


def test_labels_that_all_or_none_have_are_answered_by_their_sign():
    X, Y = draw_mcgf(2, 60)
    Y[:40, 1], Y[:40, 2] = 0, 1
    predicted = MCGF().fit(X[:40], Y[:40]).predict(X[40:])
    assert not predicted[:, 1].any()
    assert predicted[:, 2].all()
    assert not MCGF().fit(X[:40], np.zeros((40, 3), dtype=int)).predict(X[40:]).any()


def test_one_label_a_sample_is_the_largest_score():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    for classes in (2, 3):
        own, labels = X[y < classes], y[y < classes]
        train, test = np.arange(len(labels)) % 2 == 0, np.arange(len(labels)) % 2 == 1
        model = MCGF().fit(own[train], labels[train])
        one_hot = np.eye(classes)[labels[train]]
        F, _ = correlated_scores(
            graph_spectrum(np.vstack([own[train], own[test]]), 10), one_hot, 1.0, 0.5
        )
        values = F[train.sum() :]
        found = model.decision_function(own[test])
        np.testing.assert_allclose(
            found, values if classes > 2 else values[:, 1] - values[:, 0], atol=1e-12
        )
        np.testing.assert_array_equal(model.predict(own[test]), values.argmax(axis=1))
        assert model.score(own[test], labels[test]) > 0.9


def test_it_sees_the_features_of_the_samples_beside_but_no_labels():
    X, Y = draw_mcgf(3, 80)
    model = MCGF().fit(X[:40], Y[:40])
    together = model.decision_function(X[40:])
    # Fitted is what the training rows say; given rows come without labels, and change each other's
    # scores.
    assert {
        name: len(value) for name, value in vars(model).items() if name in {"samples_", "labelled_"}
    } == {
        "samples_": 40,
        "labelled_": 40,
    }
    assert not np.allclose(model.decision_function(X[40:60]), together[:20])
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(model.decision_function(X[40:][order]), together[order], atol=1e-9)
    assert solver_capabilities("mcgf").transductive
    assert solver_capabilities("mcgf").reconstructed


@pytest.mark.parametrize("name", ["mcgf", "ml_knn", "mlls", "nearest_neighbor"])
def test_labels_of_the_held_out_samples_and_other_samples_change_nothing(name):
    X, Y = draw_mcgf(8, 80)
    train, held_out, rng = np.arange(40), np.arange(40, 60), np.random.default_rng(0)
    scrambled_X, scrambled_Y = X.copy(), Y.copy()
    scrambled_Y[40:] = 1 - scrambled_Y[40:]
    scrambled_X[60:] = 100 * rng.standard_normal((20, 5))
    found = []
    for samples, labels in ((X, Y), (scrambled_X, scrambled_Y)):
        solver = build_solver(name, Tensor((5,)), {})
        fold = trial_split(samples, labels, train, held_out, UnitScaler(), solver)
        for _ in solver.iterate(fold.X_train, fold.y_train, fold.prepared):
            pass
        found.append(solver.decision_function(fold.X_test))
    np.testing.assert_array_equal(*found)


def test_a_graph_in_parts_has_a_solution():
    """Two groups far apart: the Laplacian has the eigenvalue 0 twice, and no label crosses."""
    X, _ = draw_mcgf(4, 24)
    X[12:] += 1e3
    y = np.repeat([0, 1], 12)
    model = MCGF(n_neighbors=3).fit(X[::2], y[::2])
    assert np.count_nonzero(graph_spectrum(np.vstack([X[::2], X[1::2]]), 3).values < 1e-9) >= 2
    np.testing.assert_array_equal(model.predict(X[1::2]), y[1::2])


def test_a_graph_of_pairs_has_a_solution():
    """The median eigenvalue is 0 where more than half of them are: the mean takes its place."""
    spectrum = GraphSpectrum(np.array([0.0, 0.0, 0.0, 2.0]), np.eye(4))
    F, _ = correlated_scores(spectrum, np.eye(4), 1.0, 0.0)
    np.testing.assert_allclose(F, np.diag([1, 1, 1, 0.5 / 2.5]), atol=1e-12)


def test_threads_share_the_decompositions_and_changed_samples_do_not(monkeypatch):
    """Many threads, more samples than are kept: every answer is that of a lone call."""
    sets = [draw_mcgf(seed, 30) for seed in range(6)]
    models = [MCGF(n_neighbors=5).fit(X[:20], Y[:20]) for X, Y in sets]
    alone = [model.decision_function(X[20:]) for model, (X, _) in zip(models, sets, strict=True)]
    recent = RecentResults(2 * 30 * 31)  # two spectra of 30 samples
    recent._latest = SlowDict()
    monkeypatch.setattr(mcgf, "_recent", recent)
    order = [i % 6 for i in range(120)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: models[i].decision_function(sets[i][0][20:]), order))
    for i, values in zip(order, found, strict=True):
        np.testing.assert_array_equal(values, alone[i])
    X = sets[0][0][20:].copy()
    X[3] += 1.0  # the same array, changed after a call
    before = models[0].decision_function(X)
    X[3] -= 1.0
    assert not np.allclose(models[0].decision_function(X), before)
    np.testing.assert_allclose(models[0].decision_function(X), alone[0], atol=1e-9)


def test_a_study_is_refused_if_training_and_test_samples_together_are_too_many(
    tmp_path, monkeypatch
):
    """Without a final fold no training set is too large, but the graph of an outer fold is."""
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
    save_dataset(Dataset(X, y, Tensor((4,)), "few"), tmp_path / "few.arrow")
    config = {
        "name": "few",
        "solver": {"name": "mcgf", "space": {"beta": [0.1, 1.0]}},
        "evaluation": {"classifier": "native"},
        "cv": {"outer": 3, "inner": 2, "final": False},
    }
    prepare_study(tmp_path / "few.arrow", config)
    monkeypatch.setattr("raysel.baselines.mcgf.MOST_SAMPLES", 50)
    with pytest.raises(
        ConfigError, match=r"60 samples are too many for MCGF: use at most 50 in total"
    ):
        prepare_study(tmp_path / "few.arrow", config)


def test_non_convex_objectives_and_too_many_samples_are_refused():
    X, Y = draw_mcgf(6)
    for alpha in (1.0, 2.5):
        with pytest.raises(
            ConfigError, match=rf"alpha={alpha:g} makes the objective of MCGF not convex"
        ):
            MCGF(alpha=alpha).fit(X, Y)
    with pytest.raises(ConfigError):
        MCGF().check_training(np.zeros(6001, dtype=int))
    large = np.zeros((5981, 5))
    with pytest.raises(
        ConfigError, match="40 training samples and 5981 samples to predict are too many"
    ):
        MCGF().fit(X, Y).predict(large)


@pytest.mark.slow
def test_msrcv2_has_the_figures_of_another_implementation(msrcv2, figures):
    np.testing.assert_allclose(figures(MCGF(), msrcv2), [0.690, 0.653, 0.726, 0.711], atol=0.02)
