"""LPBoost against the whole program, a conic solver and duality; its machines against
scikit-learn's.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import draw, kernels_of, signs_of, soft_margin
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from raysel.baselines import lp_boost
from raysel.baselines.kernel_classifiers import fit_machine
from raysel.baselines.lp_boost import C_GRID, LPBoost, highest_point, shared_weights, solve_program
from raysel.baselines.recent import RecentResults
from raysel.core.errors import DataError


def random_scores(seed, n_classifiers=4, n_classes=3, n=30):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    signs = np.where(codes == np.arange(n_classes)[:, None], 1.0, -1.0)
    return signs + rng.standard_normal((n_classifiers, n_classes, n)), codes


def conic(scores, codes, nu, shared):
    K, c, n = scores.shape
    B = cp.Variable((K, 1 if shared else c), nonneg=True)
    total = [
        [cp.sum(cp.multiply(B[:, 0 if shared else j], scores[:, j, i])) for j in range(c)]
        for i in range(n)
    ]
    rho, xi = cp.Variable(), cp.Variable(n, nonneg=True)
    constraints = [
        total[i][codes[i]] - total[i][j] + xi[i] >= rho
        for i in range(n)
        for j in range(c)
        if j != codes[i]
    ]
    problem = cp.Problem(
        cp.Minimize(-rho + cp.sum(xi) / (nu * n)), [*constraints, cp.sum(B, axis=0) == 1]
    )
    return problem.solve("CLARABEL")


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 0.33, 0.5, 0.95, 1.0]), st.integers(2, 4))
def test_cutting_planes_find_the_optimum_of_the_whole_program(seed, nu, n_classes):
    scores, codes = random_scores(seed, n_classes=n_classes)
    weights, margin = shared_weights(scores, codes, nu)
    whole, value = solve_program(scores, codes, nu, shared=True)
    np.testing.assert_allclose(margin, -value, atol=1e-6)
    np.testing.assert_allclose(soft_margin(scores, codes, nu, weights[:, None]), margin, atol=1e-9)
    np.testing.assert_allclose(soft_margin(scores, codes, nu, whole), -value, atol=1e-6)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(), 1)


@pytest.mark.parametrize("shared", [True, False])
def test_the_whole_program_has_the_optimum_of_a_conic_solver(shared):
    scores, codes = random_scores(1, n=15)
    weights, value = solve_program(scores, codes, 0.3, shared=shared)
    np.testing.assert_allclose(value, conic(scores, codes, 0.3, shared), atol=1e-6)
    np.testing.assert_allclose(soft_margin(scores, codes, 0.3, weights), -value, atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=0), 1)


def test_the_weights_are_those_of_the_whole_program_where_they_are_unique():
    scores, codes = random_scores(2, n=300)
    for nu in (0.1, 0.5, 0.95):
        whole, _ = solve_program(scores, codes, nu, shared=True)
        np.testing.assert_allclose(shared_weights(scores, codes, nu)[0], whole[:, 0], atol=1e-5)


def test_too_many_cutting_planes_give_way_to_the_whole_program(monkeypatch):
    scores, codes = random_scores(3)
    expected, margin = shared_weights(scores, codes, 0.3)
    monkeypatch.setattr(lp_boost, "_MOST_CUTS", 1)
    found, whole = shared_weights(scores, codes, 0.3)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(whole, margin, atol=1e-6)


def test_below_one_sample_the_smallest_margin_is_maximised():
    scores, codes = random_scores(4, n_classifiers=2)
    _, margin = shared_weights(scores, codes, 0.001)
    grid = [
        soft_margin(scores, codes, 1 / 30, np.array([[t], [1 - t]]))
        for t in np.linspace(0, 1, 2001)
    ]
    np.testing.assert_allclose(margin, max(grid), atol=2e-3)
    np.testing.assert_allclose(margin, shared_weights(scores, codes, 1 / 30)[1], atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))
def test_the_highest_point_is_proved_by_its_shares(seed, n_cuts, n_weights):
    """No weights exceed the largest coefficient of any mean of the functions, and this one is
    attained.
    """
    cuts = np.random.default_rng(seed).uniform(-1, 1, (n_cuts, n_weights))
    weights, maximum, shares = highest_point(cuts)
    for found in (weights, shares):
        assert found.min() >= 0
        np.testing.assert_allclose(found.sum(), 1)
    np.testing.assert_allclose((cuts @ weights).min(), maximum, atol=1e-8)
    np.testing.assert_allclose((shares @ cuts).max(), maximum, atol=1e-8)


def test_the_highest_point_of_two_lines_is_their_crossing():
    weights, maximum, _ = highest_point(np.array([[1.0, 0.0], [0.0, 3.0]]))
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-9)
    assert maximum == pytest.approx(0.75)


def test_one_kernel_has_weight_one():
    X, y, _ = draw()
    for weights in ("shared", "per_class"):
        model = LPBoost(weights=weights, C=1.0, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.modality_scores_, 1.0)


def check_written_out(X, y, modalities):
    """The weights are those of the whole program of out-of-fold scores by scikit-learn."""
    n_classes = y.max() + 1
    kernels, signs = kernels_of(X, list(modalities.values()), 0.7), signs_of(y)
    folds = list(
        StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(3)).split(X, y)
    )
    machine = SVC(C=2.0, kernel="precomputed")
    scores = np.array(
        [
            [cross_val_predict(machine, K, s, cv=folds, method="decision_function") for s in signs]
            for K in kernels
        ]
    )
    values = np.array([[machine.fit(K, s).decision_function(K) for s in signs] for K in kernels])
    both = np.concatenate([-scores, scores], axis=1) if n_classes == 2 else scores
    expected, value = solve_program(both, y, 0.4, shared=True)
    np.testing.assert_allclose(soft_margin(both, y, 0.4, expected), -value, atol=1e-6)
    model = LPBoost(modalities, nu=0.4, C=2.0, gamma=0.7, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.objective_path_, [value], atol=1e-6)
    np.testing.assert_allclose(model.modality_scores_, expected[:, 0], atol=1e-5)
    found = model.decision_function(X)
    np.testing.assert_allclose(
        found.T.reshape(len(signs), -1), np.tensordot(expected[:, 0], values, 1), atol=1e-4
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_written_out_with_scikit_learn(n_classes):
    check_written_out(*draw(n=45, n_classes=n_classes))


def test_c_is_the_best_of_the_grid_for_each_modality():
    X, y, modalities = draw(n=45, spread=0.7)
    chosen = LPBoost(modalities, random_state=1).fit(X, y).loss_weights_
    kernels, signs = kernels_of(X, list(modalities.values())), signs_of(y)
    folds = list(
        StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(1)).split(X, y)
    )
    for kernel, C in zip(kernels, chosen, strict=True):
        accuracy = []
        for candidate in C_GRID:
            machine = SVC(C=candidate, kernel="precomputed")
            scores = [
                cross_val_predict(machine, kernel, s, cv=folds, method="decision_function")
                for s in signs
            ]
            accuracy.append((np.argmax(scores, axis=0) == y).mean())
        assert C_GRID[int(np.argmax(accuracy))] == C


def test_weights_of_each_class_have_no_smaller_margin():
    X, y, modalities = draw(n=60, spread=0.8)
    shared = LPBoost(modalities, "shared", C=1.0, random_state=0).fit(X, y)
    by_class = LPBoost(modalities, "per_class", C=1.0, random_state=0).fit(X, y)
    assert by_class.objective_path_[0] <= shared.objective_path_[0] + 1e-9
    assert (shared.modality_scores_.shape, by_class.modality_scores_.shape) == ((3,), (3, 3))
    two, same = (
        LPBoost(modalities, w, C=1.0, random_state=0).fit(X, y > 0) for w in ("shared", "per_class")
    )
    np.testing.assert_array_equal(two.modality_scores_, same.modality_scores_)


def test_each_label_is_a_problem_of_two_classes():
    X, y, modalities = draw(n=40)
    label = (y == 0).astype(int)
    Y = np.column_stack([label, np.zeros_like(y), np.ones_like(y)])
    several, alone = (
        LPBoost(modalities, C=1.0, random_state=5).fit(X, target) for target in (Y, label)
    )
    np.testing.assert_array_equal(several.modality_scores_[:, 0], alone.modality_scores_)
    np.testing.assert_allclose(
        several.decision_function(X)[:, 0], alone.decision_function(X), atol=1e-12
    )
    np.testing.assert_array_equal(
        several.decision_function(X)[:, 1:], np.tile([-1.0, 1.0], (40, 1))
    )
    assert not several.modality_scores_[:, 1:].any()


@pytest.mark.parametrize("size", [1, 3])
def test_classes_of_few_samples_have_fewer_folds(size):
    X, y, modalities = draw(n=40, n_classes=2)
    y[:size] = 2
    Y = (y[:, None] == np.arange(3)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in (y, Y):
            model = LPBoost(modalities, C=1.0, random_state=0).fit(X, target)
            assert np.isfinite(model.decision_function(X)).all()


def test_classes_of_one_sample_only_are_refused():
    X, _, modalities = draw(n=12)
    with pytest.raises(DataError, match="each of the 12 classes has one training sample only"):
        LPBoost(modalities, C=1.0).fit(X, np.arange(12))
    LPBoost(modalities, C=1.0, random_state=0).fit(X, np.minimum(np.arange(12), 10))


def test_configurations_share_the_machines(monkeypatch):
    X, y, modalities = draw()
    fits = []
    monkeypatch.setattr(
        lp_boost, "fit_machine", lambda *args: fits.append(args) or fit_machine(*args)
    )
    settings = [{"nu": 0.3}, {"nu": 0.6}, {"nu": 0.3, "weights": "per_class"}]
    monkeypatch.setattr(lp_boost, "_recent", RecentResults(0))  # keeps nothing
    alone = [LPBoost(modalities, C=2.0, random_state=3, **own).fit(X, y) for own in settings]
    n_alone = len(fits)
    monkeypatch.setattr(lp_boost, "_recent", RecentResults(10**6))
    shared = [LPBoost(modalities, C=2.0, random_state=3, **own).fit(X, y) for own in settings]
    assert len(fits) - n_alone == n_alone / 3
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    for changed in ({"C": 3.0}, {"gamma": 0.5}, {"random_state": 4}, {"tol": 1e-2}):
        before = len(fits)
        LPBoost(modalities, **{"C": 2.0, "random_state": 3, **changed}).fit(X, y)
        assert len(fits) > before, changed
    before = len(fits)
    LPBoost(modalities, C=2.0, random_state=3).fit(X, np.roll(y, 1))
    LPBoost(modalities, C=2.0, random_state=3).fit(X + 1e-3 * np.arange(len(X))[:, None], y)
    assert len(fits) - before == 2 * n_alone / 3
