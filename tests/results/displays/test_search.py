"""The figure of the search shows the best score of each place, winners, and what failed."""

from __future__ import annotations

import itertools

import numpy as np
from drawn import draw, labels
from matplotlib.collections import PathCollection
from no_warnings import no_warnings

from raysel.results.displays.search import SearchSurface, TriedConfiguration, shown_parameters


def surface(tried):
    return SearchSurface("study", "accuracy", tried)


def test_a_grid_is_a_heat_map_of_the_best_over_the_others():
    lists = {"alpha": [0.1, 1.0], "beta": [1, 2, 3], "seed": [0, 1]}
    params = [dict(zip(lists, cell, strict=True)) for cell in itertools.product(*lists.values())]
    rng = np.random.default_rng(0)
    scores = [p["alpha"] + p["beta"] + 0.01 * rng.random() for p in params]
    tried = [
        TriedConfiguration(p, s, is_model=i == 3, n_winners=2 * (i == 3))
        for i, (p, s) in enumerate(zip(params, scores, strict=True))
    ]
    shown = surface(tried)
    assert shown.shown == ["alpha", "beta"]
    ax = shown.plot()
    best = {
        place: max(
            s for p, s in zip(params, scores, strict=True) if (p["alpha"], p["beta"]) == place
        )
        for place in itertools.product(lists["alpha"], lists["beta"])
    }  # fmt: skip
    expected = [[best[a, b] for a in lists["alpha"]] for b in lists["beta"]]
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    assert "best over seed" in shown.caption
    assert "12 of 12 configurations" in shown.caption
    (outline,) = ax.patches
    assert outline.get_xy() == (-0.5, 0.5)  # alpha 0.1, beta 2
    assert sum("2 won" in text.get_text() for text in ax.texts) == 1
    assert shown.frame()["val_accuracy"].tolist() == scores


def test_other_searches_are_points_and_failures_are_crosses():
    rng = np.random.default_rng(0)
    params = [
        {"C": float(10 ** rng.uniform(-3, 3)), "gamma": float(rng.random())} for _ in range(12)
    ]
    tried = [
        TriedConfiguration(p, None if i < 2 else i / 12, stopped=i in (3, 4))
        for i, p in enumerate(params)
    ]
    ax = surface(tried).plot()
    clouds = [one for one in ax.collections if isinstance(one, PathCollection)]
    places = sorted(
        map(tuple, np.concatenate([np.asarray(one.get_offsets()) for one in clouds]).tolist())
    )
    assert places == sorted((p["C"], p["gamma"]) for p in params)
    assert [len(one.get_offsets()) for one in clouds] == [8, 2, 2]
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stopped early", "failed"]


def test_one_parameter_is_a_line_and_categories_keep_their_names():
    shown = surface(
        [TriedConfiguration({"alpha": a}, s) for a, s in ((0.2, 0.8), (0.1, 0.7), (0.3, None))]
    )
    assert shown.plot().lines[0].get_xydata().tolist() == [[0.1, 0.7], [0.2, 0.8]]
    assert "2 of 3 configurations" in shown.caption
    ax = surface([TriedConfiguration({"kernel": k}, 0.5) for k in ("rbf", "linear", None)]).plot()
    assert labels(ax.xaxis) == ["rbf", "linear", "None"]


def test_configurations_of_different_folds_are_not_joined():
    points = {"outer0": [(0.1, 0.7), (0.3, 0.8)], "outer1": [(0.2, 0.4), (0.4, 0.5)]}
    tried = [
        TriedConfiguration({"alpha": a}, s, fold=fold)
        for fold, own in points.items()
        for a, s in own
    ]
    shown = surface(tried[::-1])
    assert sorted(
        list(map(tuple, one.get_xydata().tolist())) for one in shown.plot().lines
    ) == sorted(points.values())
    assert "one line a fold" in shown.caption


def test_the_two_parameters_that_explain_the_score_are_shown():
    rng = np.random.default_rng(1)
    params = [{name: float(rng.random()) for name in "abcd"} for _ in range(200)]
    tried = [TriedConfiguration(p, np.sin(3 * p["b"]) + p["d"] + 0.05 * p["a"]) for p in params]
    assert shown_parameters(tried) == ["b", "d"]


@no_warnings
def test_an_axis_over_all_magnitudes_shows_every_value():
    ax = surface(
        [TriedConfiguration({"zeta": zeta}, score) for zeta, score in ((1e-10, 0.5), (1e300, None))]
    ).plot()
    draw(ax.figure)
    low, high = ax.get_xlim()
    assert 0 < low < 1e-10
    assert 1e300 < high < np.inf
