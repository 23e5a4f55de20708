"""The figures of scores, stability and agreement show the numbers that they are given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from drawn import is_on_page, labels, line

from raysel.results.displays.agreement import RankTable, StabilityCurve
from raysel.results.displays.scores import ScoreCurve, ScoreRows
from raysel.results.scores import FoldValues


def curve(n_features=(4, 8, 16, 32), n_folds=5, chosen=()):
    """A curve of random scores, and its test and inner scores, each (n_folds, n_numbers)."""
    test, inner = np.random.default_rng(0).uniform(0.6, 0.9, (2, n_folds, len(n_features)))
    means = {"n_features": list(n_features)}
    for name, rows in (("inner", inner), ("test", test)):
        means |= {f"{name}_mean": rows.mean(axis=0), f"{name}_sd": rows.std(axis=0, ddof=1)}
    own = test.mean(axis=1)
    if len(chosen):
        own = [row[list(n_features).index(n)] for row, n in zip(test, chosen, strict=True)]
    scores = FoldValues.of(map(float, own))
    return ScoreCurve("study", "balanced accuracy", means, scores, {}, list(chosen)), test, inner


def test_the_curve_shows_means_references_and_each_folds_choice():
    shown, test, inner = curve(chosen=[8, 4, 8, 16, 8])
    means, own = test.mean(axis=0), shown.test.values
    references = {"all features": [0.95], "f_test": (means - 0.02).tolist(), "chance": [0.1]}
    table = shown.curve | {name: np.broadcast_to(row, 4) for name, row in references.items()}
    shown = dataclasses.replace(shown, references=references, curve=table)
    ax = shown.plot()
    np.testing.assert_array_equal(line(ax, "test"), np.column_stack([[4, 8, 16, 32], means]))
    np.testing.assert_array_equal(line(ax, "inner")[:, 1], inner.mean(axis=0))
    np.testing.assert_array_equal(line(ax, "a fold"), np.column_stack([shown.chosen, own]))
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((means + test.std(axis=0, ddof=1)).max())
    levels = [one.get_ydata().tolist() for one in ax.lines]
    assert [0.95, 0.95] in levels
    assert references["f_test"] in levels
    # Chance would flatten the curves.
    assert {"all features", "F-test", "below the axis: chance 0.100"} <= {
        text.get_text() for text in ax.texts
    }
    (named,) = [text for text in ax.texts if text.get_text() == "all features"]
    assert ax.transAxes.transform(named.xy)[1] == pytest.approx(
        ax.transData.transform([4, 0.95])[1]
    )
    assert f"{np.mean(own):.3f} ± {np.std(own, ddof=1):.3f}" in shown.caption
    assert "N = 4, 8 (3 folds), 16" in shown.caption
    table = shown.frame()
    assert table["test_mean"].tolist() == means.tolist()
    assert table["f_test"].tolist() == references["f_test"]


def test_without_a_chosen_number_the_score_is_the_mean_over_all():
    shown, test, _ = curve()
    own = test.mean(axis=1)
    assert (
        f"Mean over all these N: test balanced accuracy {own.mean():.3f} ± {own.std(ddof=1):.3f}"
        in shown.caption
    )


def test_rows_show_the_mean_and_each_fold():
    rows = {"test (unseen samples)": [0.7, 0.9], "chance": [0.1, 0.3]}
    folds = {name: FoldValues.of(values) for name, values in rows.items()}
    shown = ScoreRows("study", "accuracy", folds, ["outer0", "outer1"])
    ax = shown.plot()
    assert [float(bar.get_width()) for bar in ax.patches] == pytest.approx([0.8, 0.2])
    assert [
        one.get_offsets().data[:, 0].tolist()
        for one in ax.collections
        if len(one.get_offsets()) == 2
    ] == [*rows.values()]
    assert shown.frame().to_numpy().tolist() == [[name, *values] for name, values in rows.items()]


def stability(numbers, values, noise=np.nan, **settings):
    table = pd.DataFrame({"n_features": numbers, "stability": values})
    table[["noise", "noise_lowest", "noise_highest"]] = noise
    return StabilityCurve("study", table, 3, **settings)


def test_stability_shows_value_noise_and_the_models_number():
    noise = [[0.1, -0.1, 0.2], [0.2, 0.0, 0.3], [0.4, 0.3, 0.6]]
    shown = stability([4, 8, 16], [0.3, np.nan, 0.8], noise, chosen=8)
    ax = shown.plot()
    np.testing.assert_array_equal(line(ax, "stability"), [[4, 0.3], [8, np.nan], [16, 0.8]])
    np.testing.assert_array_equal(
        line(ax, "F-test of permuted labels: mean, range")[:, 1], [0.1, 0.2, 0.4]
    )
    (band,) = ax.collections
    assert (band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()) == (
        -0.1,
        0.6,
    )
    assert line(ax, "top 8 of the final model")[0, 0] == 8
    assert "3 overlapping outer folds" in shown.caption


def test_noise_that_was_not_recorded_is_not_drawn():
    shown = stability([4, 8], [0.5, 0.7])
    assert shown.plot().get_legend_handles_labels()[1] == ["stability"]
    assert "stability of noise was not recorded" in shown.caption


def test_ticks_do_not_overlap_and_the_chosen_number_has_one():
    ax = stability([1, 8, 100, 290, 300, 307, 1024], np.linspace(0, 1, 7), chosen=300).plot()
    assert "300" in labels(ax.xaxis)
    numbers = list(range(1, 51))
    shown, _, _ = curve(numbers, 20, np.random.default_rng(0).choice(numbers, 20).tolist())
    texts = labels(shown.plot().xaxis)
    assert (texts[0], texts[-1]) == ("1", "50")
    assert len(texts) < 30
    assert is_on_page(shown.headed_figure())


def test_fold_ranks_are_written_where_they_belong():
    ranks = np.array([[1.0, 2.0, np.nan], [3.0, 1.0, 2.0]])
    shown = RankTable("study", ["a", "b", "c"], ranks, ["outer0", "outer1"], 2, 3)
    ax = shown.plot()
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {
        (0, 0): "1",
        (1, 0): "3",
        (0, 1): "2",
        (1, 1): "1",
        (0, 2): "\u2013",
        (1, 2): "2",
    }
    np.testing.assert_array_equal(
        ax.collections[0].get_array().mask, [[False, True], [False, False], [True, False]]
    )
    assert labels(ax.yaxis) == ["a", "b", "c"]
    pd.testing.assert_frame_equal(
        shown.frame(),
        pd.DataFrame({"feature": ["a", "b", "c"], "outer0": ranks[0], "outer1": ranks[1]}),
    )
