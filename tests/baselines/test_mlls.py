"""MLLS against alternating minimisation, ridge regression, random subspaces, and MSRC-v2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.linear_model import Ridge
from sklearn.preprocessing import scale

from raysel.baselines.mlls import MLLS
from raysel.core.errors import ConfigError


def draw(seed, n=40, d=8, c=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    values = X @ rng.standard_normal((d, 2)) @ rng.standard_normal((2, c)) + rng.standard_normal((n, c))
    return X + 3, (values > 0).astype(int)


def problem(X, Y):
    """Centred samples and signs, and s_max^2 / n."""
    S = 2.0 * Y - 1
    Xc, Sc = X - X.mean(axis=0), S - S.mean(axis=0)
    return Xc, Sc, np.linalg.norm(Xc, 2) ** 2 / len(X)


def objective(Xc, Sc, U, theta, a, b):
    outside = U - theta @ (theta.T @ U)
    return ((Xc @ U - Sc) ** 2).sum() / len(Xc) + a * (outside**2).sum() + b * (U**2).sum()


def alternating(Xc, Sc, a, b, rank, seed, rounds=3000):
    """Minimise over U for given Theta, and over Theta (left singular vectors of U) for given U."""
    d, n = Xc.shape[1], len(Xc)
    theta = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, rank)))[0]
    for _ in range(rounds):
        U = np.linalg.solve(Xc.T @ Xc / n + (a + b) * np.eye(d) - a * theta @ theta.T, Xc.T @ Sc / n)
        moved = np.linalg.svd(U, full_matrices=False)[0][:, :rank]
        if np.linalg.norm(moved @ moved.T - theta @ theta.T) < 1e-13:
            break
        theta = moved
    return U, theta


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**16),
    alpha=st.sampled_from([0.05, 0.5, 5.0]),
    beta=st.sampled_from([1e-3, 0.1]),
    rank=st.integers(1, 3),
    wide=st.booleans(),
)
def test_no_alternating_minimisation_does_better(seed, alpha, beta, rank, wide):
    X, Y = draw(seed, *((12, 25) if wide else (40, 8)))
    Xc, Sc, unit = problem(X, Y)
    a, b = alpha * unit, beta * unit
    model = MLLS(alpha, beta, rank).fit(X, Y)
    U, theta = model.coef_.T, model.shared_subspace_
    found = model.objective_path_[0]
    np.testing.assert_allclose(theta.T @ theta, np.eye(theta.shape[1]), atol=1e-8)
    assert found == pytest.approx(objective(Xc, Sc, U, theta, a, b), rel=1e-9)
    reached = [objective(Xc, Sc, *alternating(Xc, Sc, a, b, rank, start), a, b) for start in range(3)]
    assert found <= min(reached) * (1 + 1e-9)
    # A step from the solution stays there.
    again = np.linalg.solve(Xc.T @ Xc / len(Xc) + (a + b) * np.eye(len(U)) - a * theta @ theta.T, Xc.T @ Sc / len(Xc))
    np.testing.assert_allclose(again, U, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, (2.0 * Y - 1).mean(axis=0) - X.mean(axis=0) @ U, atol=1e-9)


def check_ridge(X, Y, beta):
    """Without alpha it is scikit-learn's ridge regression onto the signs."""
    _, _, unit = problem(X, Y)
    ridge = Ridge(alpha=beta * unit * len(X)).fit(X, 2.0 * Y - 1)
    model = MLLS(0.0, beta, 2).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, atol=1e-8)
    clear = np.abs(ridge.predict(X)) > 1e-6
    np.testing.assert_array_equal(model.predict(X)[clear], (ridge.predict(X) > 0)[clear])


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([(40, 8), (15, 30), (2, 3), (12, 12)]),
    beta=st.sampled_from([1e-4, 0.1, 10.0]),
)
def test_without_alpha_it_is_ridge(seed, size, beta):
    check_ridge(*draw(seed, *size), beta)


def test_a_rank_of_all_labels_is_refused_because_it_is_ridge():
    X, Y = draw(3)
    for rank in (5, 7):
        with pytest.raises(ConfigError, match=rf"rank={rank} makes MLLS plain ridge .* all 5 labels: give at most 4"):
            MLLS(rank=rank).fit(X, Y)
        with pytest.raises(ConfigError, match="plain ridge"):
            MLLS(rank=rank).check_training(Y)
    with pytest.raises(ConfigError, match="all 3 classes: give at most 2"):
        MLLS(rank=3).check_training(np.arange(9) % 3)
    MLLS(rank=4).check_training(Y)
    # It would be: the subspace that holds five columns costs nothing.
    Xc, Sc, unit = problem(X, Y)
    U, _ = alternating(Xc, Sc, 0.5 * unit, 0.1 * unit, 5, 0)
    np.testing.assert_allclose(U.T, Ridge(alpha=0.1 * unit * len(X)).fit(X, 2.0 * Y - 1).coef_, atol=1e-9)


def test_one_label_a_sample_is_the_largest_of_the_one_hot_problems():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    one_hot = np.eye(3, dtype=int)[y]
    together, single = MLLS(rank=1).fit(X, one_hot), MLLS(rank=1).fit(X, y)
    np.testing.assert_array_equal(single.coef_, together.coef_)
    np.testing.assert_array_equal(single.predict(X), together.decision_function(X).argmax(axis=1))
    binary, both = MLLS().fit(X[y < 2], y[y < 2]), MLLS().fit(X[y < 2], one_hot[y < 2, :2])
    np.testing.assert_array_equal(binary.coef_, both.coef_[1:])
    np.testing.assert_array_equal(binary.predict(X), both.decision_function(X).argmax(axis=1))


def test_labels_that_all_or_none_have_are_answered_by_their_sign():
    X, Y = draw(4)
    Y[:, 1], Y[:, 2] = 0, 1
    model = MLLS(rank=4).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X)[:, 1:3], Y[:, 1:3])
    assert not model.coef_[1:3].any()


def test_constant_features_have_no_coefficient():
    X, Y = draw(5)
    X[:, 3] = 1e6 / 3
    model = MLLS().fit(X, Y)
    assert not model.coef_[:, 3].any()
    assert model.scores_[3] == 0
    assert np.count_nonzero(model.scores_) == 7
    nothing = MLLS().fit(np.ones_like(X), Y)
    assert not nothing.scores_.any()
    np.testing.assert_array_equal(nothing.predict(X), np.tile(Y.mean(axis=0) > 0.5, (len(X), 1)))


def test_msrcv2_has_the_figures_of_another_implementation(msrcv2, figures):
    """Weights .0013 and .00013 as there, and half of the labels."""
    found = []
    for fold in msrcv2:
        _, _, unit = problem(fold[0], fold[1])
        found.append(figures(MLLS(0.0013 / unit, 0.00013 / unit), [fold]))
    np.testing.assert_allclose(np.mean(found, axis=0), [0.846, 0.690, 0.839, 0.758], atol=0.02)
