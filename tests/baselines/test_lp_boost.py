"""LPBoost: cutting planes against the whole program and a conic solver, out-of-fold scores against scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from kernel_references import draw, kernels_of, signs_of, soft_margin
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from raysel.baselines import lp_boost
from raysel.baselines.kernel_classifier import fit_machine
from raysel.baselines.lp_boost import C_GRID, LPBoost
from raysel.baselines.margin_programs import solve_program
from raysel.baselines.recent import RecentResults
from raysel.core.errors import DataError


def test_one_kernel_has_weight_one():
    X, y, _ = draw()
    for weights in ("shared", "per_class"):
        model = LPBoost(weights=weights, C=1.0, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.modality_scores_, 1.0)


def check_written_out(X, y, modalities):
    """The weights are those of the whole program of out-of-fold scores by scikit-learn."""
    n_classes = y.max() + 1
    kernels, signs = kernels_of(X, list(modalities.values()), 0.7), signs_of(y)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(3)).split(X, y))
    machine = SVC(C=2.0, kernel="precomputed")
    scores = np.array(
        [[cross_val_predict(machine, K, s, cv=folds, method="decision_function") for s in signs] for K in kernels]
    )
    values = np.array([[machine.fit(K, s).decision_function(K) for s in signs] for K in kernels])
    both = np.concatenate([-scores, scores], axis=1) if n_classes == 2 else scores
    expected, value = solve_program(both, y, 0.4, shared=True)
    np.testing.assert_allclose(soft_margin(both, y, 0.4, expected), -value, atol=1e-6)
    model = LPBoost(modalities, nu=0.4, C=2.0, gamma=0.7, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.objective_path_, [value], atol=1e-6)
    np.testing.assert_allclose(model.modality_scores_, expected[:, 0], atol=1e-5)
    found = model.decision_function(X)
    np.testing.assert_allclose(found.T.reshape(len(signs), -1), np.tensordot(expected[:, 0], values, 1), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_written_out_with_scikit_learn(n_classes):
    check_written_out(*draw(n=45, n_classes=n_classes))


def test_c_is_the_best_of_the_grid_for_each_modality():
    X, y, modalities = draw(n=45, spread=0.7)
    chosen = LPBoost(modalities, random_state=1).fit(X, y).loss_weights_
    kernels, signs = kernels_of(X, list(modalities.values())), signs_of(y)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(1)).split(X, y))
    for kernel, C in zip(kernels, chosen, strict=True):
        accuracy = []
        for candidate in C_GRID:
            machine = SVC(C=candidate, kernel="precomputed")
            scores = [cross_val_predict(machine, kernel, s, cv=folds, method="decision_function") for s in signs]
            accuracy.append((np.argmax(scores, axis=0) == y).mean())
        assert C_GRID[int(np.argmax(accuracy))] == C


def test_weights_of_each_class_have_no_smaller_margin():
    X, y, modalities = draw(n=60, spread=0.8)
    shared = LPBoost(modalities, "shared", C=1.0, random_state=0).fit(X, y)
    by_class = LPBoost(modalities, "per_class", C=1.0, random_state=0).fit(X, y)
    assert by_class.objective_path_[0] <= shared.objective_path_[0] + 1e-9
    assert (shared.modality_scores_.shape, by_class.modality_scores_.shape) == ((3,), (3, 3))
    two, same = (LPBoost(modalities, w, C=1.0, random_state=0).fit(X, y > 0) for w in ("shared", "per_class"))
    np.testing.assert_array_equal(two.modality_scores_, same.modality_scores_)


def test_each_label_is_a_problem_of_two_classes():
    X, y, modalities = draw(n=40)
    label = (y == 0).astype(int)
    Y = np.column_stack([label, np.zeros_like(y), np.ones_like(y)])
    several, alone = (LPBoost(modalities, C=1.0, random_state=5).fit(X, target) for target in (Y, label))
    np.testing.assert_array_equal(several.modality_scores_[:, 0], alone.modality_scores_)
    np.testing.assert_allclose(several.decision_function(X)[:, 0], alone.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(several.decision_function(X)[:, 1:], np.tile([-1.0, 1.0], (40, 1)))
    assert not several.modality_scores_[:, 1:].any()


@pytest.mark.parametrize("size", [1, 2, 3])
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
    monkeypatch.setattr(lp_boost, "fit_machine", lambda *args: fits.append(args) or fit_machine(*args))
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
