"""What the figures of scores, stability, search, confusion and coefficients show is what they are given."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from no_warnings import no_warnings
from sklearn.metrics import confusion_matrix

from raysel.results.displays.confusion import confusion_figure, row_shares
from raysel.results.displays.data import TriedConfiguration, shown_parameters
from raysel.results.displays.profile import profile_figure
from raysel.results.displays.score_curve import score_curve_figure
from raysel.results.displays.stability import stability_figure
from raysel.results.displays.surface import surface_figure

HOSTILE = [
    "$x^2_$ $\\frac{1",
    "a_b_c" * 30,
    "\u6570\u5b57 特徴",
    "<script>&amp;\"'",
    "\x00\x07bell",
    "",
    "\u202egnp.txt",
]


def header(figure):
    return " ".join(text.get_text() for text in figure.texts).replace("\u00a0", " ")


def line(ax, label):
    (found,) = (one for one in ax.lines if str(one.get_label()).startswith(label))
    return found.get_xydata()


def on_page(figure):
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the writer looks for a font that has the letter
        canvas.draw()
    inked, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()
    return -0.01 <= inked.x0 < inked.x1 <= width + 0.01 and -0.01 <= inked.y0 < inked.y1 <= height + 0.01


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return rng.uniform(0.6, 0.9, (5, 4)), rng.uniform(0.6, 0.9, (5, 4))


def test_the_curve_shows_means_references_and_each_folds_choice(scores):
    test, inner = scores
    references = {"all features": np.full((5, 1), 0.95), "f_test": test - 0.02, "chance": np.full((5, 1), 0.1)}
    chosen = [8, 4, 8, 16, 8]
    figure = score_curve_figure(
        [4, 8, 16, 32], test, inner, name="study", references=references, chosen=chosen, metric="balanced_accuracy"
    )
    ax = figure.axes[0]
    np.testing.assert_array_equal(line(ax, "test"), np.column_stack([[4, 8, 16, 32], test.mean(axis=0)]))
    np.testing.assert_array_equal(line(ax, "inner")[:, 1], inner.mean(axis=0))
    own = [test[fold, [4, 8, 16, 32].index(n)] for fold, n in enumerate(chosen)]
    np.testing.assert_array_equal(line(ax, "a fold"), np.column_stack([chosen, own]))
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((test.mean(axis=0) + test.std(axis=0, ddof=1)).max())
    levels = [one.get_ydata() for one in ax.lines]
    assert any(np.array_equal(level, [0.95, 0.95]) for level in levels)
    assert any(np.array_equal(level, references["f_test"].mean(axis=0)) for level in levels)
    written = [text.get_text() for text in ax.texts]
    assert {"all features", "F-test"} < set(written)
    assert "below the axis: chance 0.100" in written  # it would flatten the curves
    assert f"{np.mean(own):.3f} ± {np.std(own, ddof=1):.3f} (SD)" in header(figure)
    assert "N = 4, 8 (3 folds), 16" in header(figure)
    assert "5 outer folds" in header(figure)
    assert ax.get_ylabel() == "balanced accuracy"


def test_without_a_chosen_number_the_figure_is_the_mean_over_all(scores):
    test, inner = scores
    figure = score_curve_figure([4, 8, 16, 32], test, inner, name="study")
    own = test.mean(axis=1)
    assert f"mean over all these N: test accuracy {own.mean():.3f} ± {own.std(ddof=1):.3f} (SD)" in header(figure)


@pytest.mark.parametrize("n_features", [[], [8]])
def test_one_number_of_features_or_none_gives_rows(n_features):
    test, inner = [[0.7], [0.9]], [[0.8], [0.8]]
    figure = score_curve_figure(n_features, test, inner, name="study", references={"chance": [[0.1], [0.3]]})
    bars = [float(bar.get_width()) for bar in figure.axes[0].patches]
    assert bars == pytest.approx([0.8, 0.8, 0.2])
    assert ("the 8 best features" if n_features else "the method's own prediction") in header(figure)


def test_tasks_have_a_row_each():
    test = np.array([[0.5, 0.9], [0.7, 0.8]])
    figure = score_curve_figure([], test, [[0.5], [0.6]], name="study", parts=["faces", "wine"])
    assert [float(bar.get_width()) for bar in figure.axes[0].patches] == pytest.approx([0.725, 0.55, 0.6, 0.85])
    assert "mean of the tasks" in header(figure)


def test_stability_shows_value_noise_and_the_models_number():
    values, noise = [0.3, np.nan, 0.8], np.array([[0.1, -0.1, 0.2], [0.2, 0.0, 0.3], [0.4, 0.3, 0.6]])
    figure = stability_figure([4, 8, 16], values, name="study", n_folds=3, noise=noise, chosen=8)
    ax = figure.axes[0]
    np.testing.assert_array_equal(line(ax, "stability"), np.column_stack([[4, 8, 16], values]))
    np.testing.assert_array_equal(line(ax, "permuted labels: mean, range"), np.column_stack([[4, 8, 16], noise[:, 0]]))
    (band,) = ax.collections
    assert (band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()) == (-0.1, 0.6)
    assert line(ax, "top 8 of the final model")[0, 0] == 8
    assert "3 overlapping outer folds" in header(figure)
    undefined = stability_figure([4], [np.nan], name="study", n_folds=1)
    assert "undefined at every N" in header(undefined)


def test_noise_that_was_not_recorded_is_not_drawn():
    figure = stability_figure([4, 8], [0.5, 0.7], name="old", n_folds=2, noise=np.full((2, 3), np.nan))
    assert figure.axes[0].get_legend_handles_labels()[1] == ["stability"]
    assert "the level of noise was not recorded" in header(figure)


def test_the_chosen_number_has_a_tick_where_others_are_near():
    figure = stability_figure([1, 8, 100, 290, 300, 307, 1024], np.linspace(0, 1, 7), name="s", n_folds=5, chosen=300)
    assert "300" in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def grid(**values):
    names, lists = list(values), list(values.values())
    return [dict(zip(names, cell, strict=True)) for cell in itertools.product(*lists)]


def test_a_grid_is_a_heat_map_of_the_best_over_the_others():
    params = grid(alpha=[0.1, 1.0], beta=[1, 2, 3], seed=[0, 1])
    rng = np.random.default_rng(0)
    scores = [p["alpha"] + p["beta"] + 0.01 * rng.random() for p in params]
    tried = [
        TriedConfiguration(p, s, is_model=i == 3, n_winners=2 * (i == 3))
        for i, (p, s) in enumerate(zip(params, scores, strict=True))
    ]
    assert shown_parameters(tried) == ["alpha", "beta"]
    figure = surface_figure(tried, name="study", over="3 inner folds")
    ax = figure.axes[0]
    expected = np.array(
        [
            [
                max(s for p, s in zip(params, scores, strict=True) if (p["alpha"], p["beta"]) == (a, b))
                for a in (0.1, 1.0)
            ]
            for b in (1, 2, 3)
        ]
    )
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    assert "best over seed" in header(figure)
    assert "12 of 12 configurations" in header(figure)
    (outline,) = ax.patches
    assert outline.get_xy() == (-0.5, 0.5)  # alpha 0.1, beta 2
    assert sum("2 won" in text.get_text() for text in ax.texts) == 1


def test_other_searches_are_points_and_failures_are_crosses():
    rng = np.random.default_rng(0)
    params = [{"C": float(10 ** rng.uniform(-3, 3)), "gamma": float(rng.random())} for _ in range(12)]
    tried = [TriedConfiguration(p, None if i < 2 else i / 12, stopped=i in (3, 4)) for i, p in enumerate(params)]
    ax = surface_figure(tried, name="study", over="3 inner folds").axes[0]
    clouds = [one for one in ax.collections if isinstance(one, PathCollection)]
    places = sorted(map(tuple, np.concatenate([np.asarray(one.get_offsets()) for one in clouds]).tolist()))
    assert places == sorted((p["C"], p["gamma"]) for p in params)
    assert [len(one.get_offsets()) for one in clouds] == [8, 2, 2]
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["stopped early", "failed"]


def test_one_parameter_is_a_line_and_categories_keep_their_names():
    tried = [TriedConfiguration({"alpha": a}, s) for a, s in ((0.2, 0.8), (0.1, 0.7), (0.3, None))]
    figure = surface_figure(tried, name="study", over="3 inner folds")
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[0.1, 0.7], [0.2, 0.8]]
    assert "2 of 3 configurations" in header(figure)
    tried = [TriedConfiguration({"kernel": k}, 0.5) for k in ("rbf", "linear", None)]
    ax = surface_figure(tried, name="study", over="3 inner folds").axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["rbf", "linear", "None"]


def test_configurations_of_different_folds_are_not_joined():
    points = {"outer0": [(0.1, 0.7), (0.3, 0.8)], "outer1": [(0.2, 0.4), (0.4, 0.5)]}
    tried = [TriedConfiguration({"alpha": a}, s, fold=fold) for fold, own in points.items() for a, s in own]
    figure = surface_figure(tried[::-1], name="study", over="3 inner folds")
    lines = [list(map(tuple, line.get_xydata().tolist())) for line in figure.axes[0].lines]
    assert sorted(lines) == sorted(points.values())
    assert "one line a fold" in header(figure)


def test_the_two_parameters_that_explain_the_score_are_shown():
    rng = np.random.default_rng(1)
    params = [{name: float(rng.random()) for name in "abcd"} for _ in range(200)]
    tried = [TriedConfiguration(p, np.sin(3 * p["b"]) + p["d"] + 0.05 * p["a"]) for p in params]
    assert shown_parameters(tried) == ["b", "d"]


def test_a_search_that_failed_or_searched_nothing_says_so():
    failed = surface_figure([TriedConfiguration({"a": i}, None) for i in (1, 2)], name="study", over="3 inner folds")
    assert failed.axes[0].texts[0].get_text() == "every configuration failed"
    fixed = surface_figure([TriedConfiguration({"a": 1}, 0.5)] * 2, name="study", over="3 inner folds")
    assert fixed.axes[0].texts[0].get_text() == "no parameter was searched over"


@pytest.mark.parametrize("n_classes", [2, 7, 40, 100])
def test_confusion_is_normalised_by_row_with_counts_as_text(n_classes):
    rng = np.random.default_rng(0)
    true = np.repeat(np.arange(n_classes), 5)
    predicted = np.where(rng.random(len(true)) < 0.7, true, rng.integers(0, n_classes, len(true)))
    counts = confusion_matrix(true, predicted)
    figure = confusion_figure(counts, [f"person {i}" for i in range(n_classes)], name="study", n_folds=3)
    ax = figure.axes[0]
    np.testing.assert_allclose(ax.images[0].get_array(), confusion_matrix(true, predicted, normalize="true"))
    assert f"{5 * n_classes} test samples of 3 outer folds" in header(figure)
    assert f"{(true == predicted).sum()} right" in header(figure)
    if n_classes <= 60:
        at = {tuple(map(round, text.get_position())): int(text.get_text()) for text in ax.texts}
        assert at == {(c, r): counts[r, c] for r, c in zip(*np.nonzero(counts), strict=True)}
    wrong = counts - np.diag(np.diag(counts))
    row, column = np.unravel_index(wrong.argmax(), wrong.shape)
    assert f"most often confused: person {row} as person {column} ({wrong.max()} of 5)" in header(figure)
    assert max(figure.get_size_inches()) < 13
    assert on_page(figure)


def test_a_class_without_samples_has_no_shares():
    assert row_shares([[0, 0], [1, 3]]).tolist() == [[0, 0], [0.25, 0.75]]


def test_labels_show_found_missed_and_false_alarms():
    counts = np.array([[50, 10, 15, 25], [100, 0, 0, 0], [70, 0, 30, 0]])  # tn, fp, fn, tp
    figure = confusion_figure(counts, ["sky", "horse", "car"], name="study", n_folds=2, multilabel=True)
    bars, rates = figure.axes
    widths = [float(bar.get_width()) for bar in bars.patches]
    assert widths == [25, 0, 0, 15, 0, 30, -10, 0, 0]
    np.testing.assert_allclose(line(rates, "precision"), [[25 / 35, 0]])
    np.testing.assert_allclose(line(rates, "recall"), [[25 / 40, 0], [0, 2]])
    assert [text.get_text() for text in rates.texts] == ["no precision", "no precision", "no recall"]
    assert "100 test samples of 2 outer folds" in header(figure)


def test_the_profile_is_centred_at_zero_with_signs():
    coefficients = np.array([[1.0, -2.0, 0.0], [0.5, 0.5, -4.0]])
    figure = profile_figure(coefficients, ["a", "b", "c"], ["no", "yes"], name="study", n_features=9)
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.images[0].get_array(), coefficients.T)
    assert ax.images[0].get_clim() == (-4.0, 4.0)
    signs = {tuple(map(int, text.get_position())): text.get_text() for text in ax.texts}
    assert signs == {(0, 0): "+", (0, 1): "\u2212", (1, 0): "+", (1, 1): "+", (1, 2): "\u2212"}
    assert "the best 3 of 9" in header(figure)


@no_warnings
def test_hostile_names_stay_on_the_page_without_a_warning():
    n = len(HOSTILE)
    counts = np.eye(n, dtype=int) + 1
    figures = [
        confusion_figure(counts, HOSTILE, name=HOSTILE[0] * 9, n_folds=1),
        confusion_figure(np.ones((n, 4), dtype=int), HOSTILE, name=HOSTILE[1], n_folds=1, multilabel=True),
        profile_figure(np.eye(n) - 0.5, HOSTILE, HOSTILE, name=HOSTILE[3], n_features=n),
        profile_figure(np.ones((1, n)), HOSTILE, HOSTILE[:2], name=HOSTILE[3], n_features=n),
        profile_figure(np.ones((3, 0)), [], [1, 2, 3], name="none", n_features=n),
        surface_figure(
            [TriedConfiguration({HOSTILE[0]: a, HOSTILE[1]: b}, 0.5) for a in HOSTILE for b in ([1], [2, 3])],
            name=HOSTILE[4],
            over="x",
        ),
        score_curve_figure([1, 2], [[0.5, 0.5]], [[0.5, 0.5]], name=HOSTILE[0], references={HOSTILE[1]: [[0.5]]}),
        score_curve_figure([], [[0.5, 0.4]], [], name=HOSTILE[0], parts=HOSTILE[:2]),
        stability_figure([1], [0.0], name=HOSTILE[1], n_folds=1, noise=[[0.0, -0.1, 0.1]], chosen=1),
    ]
    for figure in figures:
        assert on_page(figure)


def test_twenty_folds_and_fifty_numbers_fit():
    rng = np.random.default_rng(0)
    test = rng.random((20, 50))
    numbers = list(range(1, 51))
    figure = score_curve_figure(numbers, test, test, name="study", chosen=rng.choice(numbers, 20).tolist())
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels[0] == "1"
    assert labels[-1] == "50"
    assert len(labels) < 30
    assert on_page(figure)
