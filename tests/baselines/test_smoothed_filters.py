"""Smoothed F-tests against SciPy's smoothing and scikit-learn's tests, and in a study."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from sklearn.feature_selection import f_classif, f_regression
from small_studies import raw_config

from raysel import MaskedVolume, NestedSearch
from raysel.base.registry import build_solver
from raysel.baselines import smoothed_filters
from raysel.baselines.quantity_filters import FTest
from raysel.baselines.smoothed_filters import SmoothedFTest, SmoothedFTestQuantities
from raysel.config import config_from_dict
from raysel.execution.serial import SerialExecutor
from raysel.run.in_memory import run_in_memory
from raysel.study.definition import Study

N = 40
CLASSES = np.arange(N) % 3
QUANTITIES = np.random.default_rng(1).lognormal(size=(N, 2))
SHAPES = [((7, 5), 1.3), ((7, 5), 0), ((4, 5, 3), 0.6), ((3, 9), (0, 2.0)), ((11,), [2])]


def drawn(shape):
    X = np.random.default_rng(0).normal(size=(N, *shape))
    X[CLASSES == 1, 1] += 1
    return X


@pytest.mark.parametrize(("shape", "width"), SHAPES)
def test_it_is_scipy_s_smoothing_and_scikit_learn_s_test(shape, width, monkeypatch):
    monkeypatch.setattr(smoothed_filters, "_CELLS", 100)  # a few samples at once
    X = drawn(shape)
    widths = np.broadcast_to(width, len(shape))
    S = np.stack([gaussian_filter(x, widths) for x in X]).reshape(N, -1)
    flat = X.reshape(N, -1)
    found = SmoothedFTest(shape, width).fit(flat, CLASSES).scores_
    np.testing.assert_allclose(found, f_classif(S, CLASSES)[0], rtol=1e-9)
    one, both = (
        SmoothedFTestQuantities(shape, width).fit(flat, y).scores_
        for y in (QUANTITIES[:, 0], QUANTITIES)
    )
    of_each = [f_regression(S, y)[0] for y in QUANTITIES.T]
    np.testing.assert_allclose(one, of_each[0], rtol=1e-9)
    np.testing.assert_allclose(both, np.mean(of_each, axis=0), rtol=1e-9)


@pytest.mark.parametrize("width", [1.0, (0.5, 0.0, 2.0)])
def test_a_mask_takes_the_weighted_mean_of_the_cells_inside(width):
    mask = np.random.default_rng(2).random((4, 5, 6)) < 0.6
    X = drawn(mask.shape)[:, mask]
    # What one cell gives to another, by an impulse in each of the volume.
    impulses = np.eye(mask.size).reshape(-1, *mask.shape)
    weights = np.stack([gaussian_filter(cell, width)[mask] for cell in impulses])[mask.ravel()]
    S = X @ (weights / weights.sum(axis=0))
    found = build_solver("smoothed_f_test", MaskedVolume(mask), {"width": width}).fit(X, CLASSES)
    np.testing.assert_allclose(found.scores_, f_classif(S, CLASSES)[0], rtol=1e-9)
    of_all = SmoothedFTest(mask=np.ones((4, 5, 6), dtype=bool), width=width)
    everywhere = drawn(mask.shape).reshape(N, -1)
    np.testing.assert_allclose(
        of_all.fit(everywhere, CLASSES).scores_,
        SmoothedFTest((4, 5, 6), width).fit(everywhere, CLASSES).scores_,
    )


def test_an_offset_a_unit_and_a_constant_cell_tell_nothing():
    X = drawn((6, 5)).reshape(N, -1)
    X[:, 7] = 3.0
    plain = SmoothedFTest((6, 5)).fit(X, CLASSES).scores_
    assert plain[7] == 0 < np.delete(plain, 7).min()
    for changed, exact in ((X + 1e8, 1e-6), (X * 1e-160, 1e-9), (X * 1e150, 1e-9)):
        found = SmoothedFTest((6, 5)).fit(changed, CLASSES).scores_
        np.testing.assert_allclose(found, plain, rtol=exact)
    y = QUANTITIES[:, 0]
    np.testing.assert_array_equal(
        SmoothedFTestQuantities((6, 5), 0).fit(X, y).ranking_, FTest().fit(X, y).ranking_
    )


@pytest.mark.parametrize(
    ("width", "message"),
    [
        (-1, "must be a float in the range"),
        (7, "width=7: give a number from 0 to 6, the longest side"),
        ((1,), "or one for each side of 6 x 5"),
        ([1, -1], "from 0 to 6"),
        ((1, "a"), "one for each side"),
    ],
)
def test_a_width_that_cannot_be(width, message):
    with pytest.raises(ValueError, match=message):
        SmoothedFTest((6, 5), width).fit(drawn((6, 5)).reshape(N, -1), CLASSES)


def search_of(X, y):
    estimator, space = SmoothedFTest(X.shape[1:]), {"width": [0, 1, 2]}
    search = NestedSearch(
        estimator, space, outer=2, inner=2, scoring_estimator="linear_svm", n_features=[30]
    )
    return search.fit(X.reshape(len(X), -1), y)


def widths_of(search):
    return [params["width"] for params in search.fold_results_["params"]]


@pytest.mark.slow
def test_a_search_smooths_where_neighbours_tell_the_same_and_not_where_they_differ():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 12, 12))
    together = np.zeros((12, 12), dtype=bool)
    together[4:9, 6:12] = True
    # As many cells whose signs alternate: the mean of neighbours tells nothing.
    signs = np.where(np.indices((12, 12)).sum(axis=0) % 2, 1.0, -1.0)
    smooth = search_of(X + 0.6 * together * y[:, None, None], y)
    rough = search_of(X + 1.5 * together * signs * y[:, None, None], y)
    assert min(widths_of(smooth)) > 0
    assert max(widths_of(rough)) == 0
    best = smooth.ranking_.reshape(12, 12) <= 30
    plain = SmoothedFTest((12, 12), 0).fit(
        (X + 0.6 * together * y[:, None, None]).reshape(80, -1), y
    )
    assert best[together].sum() > (plain.ranking_.reshape(12, 12) <= 30)[together].sum()


def test_a_width_of_0_in_most_folds_says_that_structure_does_not_pay(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 6, 6))
    X[:, 2, 3] += 3 * y
    np.savez(tmp_path / "data.npz", X=X, y=y)
    raw = raw_config(
        tmp_path / "data.npz",
        solver={"name": "smoothed_f_test", "space": {"width": [0, 1, 2]}},
        evaluation__n_features=[1],
    )
    study = Study.prepare(config_from_dict(raw))
    remarks = run_in_memory(study, SerialExecutor(study)).remarks()
    assert any("chose width = 0, which assumes no structure" in one for one in remarks)
