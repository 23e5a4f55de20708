"""What the figures of a ranking show is what the ranking says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drawn import draw, is_on_page, labels, line
from matplotlib.collections import LineCollection, PolyCollection
from no_warnings import no_warnings

from raysel.data.layouts import Matrix, Modalities, Tasks, Tensor
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.bars import FoldRankBars, PartCounts, PartScores, ScoreBars
from raysel.results.displays.maps import ScoreMap, SelectionMap
from raysel.results.displays.ranking import RankingFigure, divide


def make(layout, n_selected, n_folds=3, scores=None, **settings):
    rng = np.random.default_rng(0)
    base = rng.random(layout.n_features) + 0.1
    rows = (
        [base, *(base + 0.3 * rng.random(layout.n_features) for _ in range(n_folds))]
        if scores is None
        else scores
    )
    rows = np.where(settings.get("constant", False), 0.0, rows)  # as a study records them
    return FeatureRanking.from_folds(
        rows[0],
        rows[1:],
        feature_names=settings.pop("names", layout.default_names()),
        fold_names=[f"outer{i}" for i in range(len(rows) - 1)],
        n_selected=n_selected,
        coordinates=layout.coordinates(),
        **settings,
    )


def figure_of(layout, n_selected, background=None, **settings):
    return RankingFigure(
        "study", make(layout, n_selected, **settings), layout, background=background, image="a mean"
    )


def points_of(ax):
    """Places of all points of scatter plots, as a set."""
    return {tuple(p) for c in ax.collections for p in np.asarray(c.get_offsets()).tolist()}


def assert_ranks_are_drawn(panel, ranking, best):
    """Check the rank in each fold, the median and the range."""
    ax, folds = panel.plot(), ranking.fold_ranks[:, best]
    assert {(float(row[y]), float(y)) for y in range(len(best)) for row in folds} <= points_of(ax)
    middle = np.median(folds, axis=0)
    places = np.column_stack([middle, np.arange(len(best))])
    np.testing.assert_allclose(line(ax, "median and range"), places)
    (spread,) = (c for c in ax.collections if isinstance(c, LineCollection))
    ends = np.array([segment[:, 0] for segment in spread.get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([folds.min(axis=0), folds.max(axis=0)]))
    assert line(ax, "top")[:, 0].tolist() == [ranking.n_selected + 0.5] * 2
    assert labels(ax.yaxis) == list(panel.frame()["feature"])
    np.testing.assert_allclose(panel.frame()["median_rank"], middle)


def only(kind, artists):
    (artist,) = (one for one in artists if isinstance(one, kind))
    return artist


@pytest.mark.parametrize("shape", [(4, 6), (9, 3), (2, 40)])
def test_the_maps_show_scores_and_counts_cell_by_cell(shape):
    layout = Matrix(*shape)
    constant = np.arange(layout.n_features) == 5
    shown = figure_of(layout, 4, constant=constant)
    ranking, (scores, counts) = shown.ranking, shown.panels
    ax = scores.plot()
    drawn = ax.images[0].get_array()
    np.testing.assert_array_equal(drawn.mask.ravel(), constant)
    np.testing.assert_array_equal(drawn.data[~drawn.mask], ranking.scores[~constant])
    (path,) = only(PolyCollection, ax.collections).get_paths()  # hatched
    np.testing.assert_allclose(path.vertices[:4].mean(axis=0), [5 % shape[1], 5 // shape[1]])
    drawn = counts.plot().images[0].get_array()
    np.testing.assert_array_equal(
        drawn.filled(0), (ranking.fold_ranks <= 4).sum(axis=0).reshape(shape)
    )
    table = scores.frame()
    assert table["score"].tolist() == ranking.usable_scores.tolist()
    assert (table["row"] * shape[1] + table["column"]).tolist() == list(range(layout.n_features))


def test_the_outline_is_the_border_of_the_top_cells():
    """Each cell's four sides are drawn where the neighbour is not chosen, and nowhere else."""
    shown = figure_of(Matrix(5, 4), 8)
    chosen = {divmod(int(i), 4) for i in np.flatnonzero(shown.ranking.ranks <= 8)}
    expected = []
    for row, column in chosen:
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if (row + down, column + right) not in chosen:
                x, y = column + right / 2, row + down / 2
                half_x, half_y = abs(down) / 2, abs(right) / 2
                expected.append(((x - half_x, y - half_y), (x + half_x, y + half_y)))
    for panel in shown.panels:
        segments = only(LineCollection, panel.plot().collections).get_segments()
        assert sorted(
            tuple(sorted(map(tuple, segment.tolist()))) for segment in segments
        ) == sorted(expected)


def test_colours_tell_the_best_cell_from_the_worst_and_from_a_constant_one():
    shown = figure_of(
        Matrix(2, 2),
        1,
        scores=[[1.0, 0.0, 0.2, 0.5]] * 3,
        constant=np.array([False, False, False, True]),
    )
    scores, counts = (panel.plot() for panel in shown.panels)
    best, zero, low, constant = scores.images[0].to_rgba(scores.images[0].get_array()).reshape(4, 4)
    assert best[0] > 2 * best[2]  # viridis ends in yellow
    assert low[2] > low[1]  # and begins in violet
    assert zero[3] == constant[3] == 0
    assert scores.get_facecolor()[:3] == (0.9, 0.9, 0.9)
    assert (
        counts.images[0].to_rgba(counts.images[0].get_array())[0, 0, 0] < 0.2
    )  # dark blue: both folds
    assert counts.images[0].get_array().mask.ravel().tolist() == [False, True, True, True]


def test_the_maps_lie_over_the_mean_image():
    background = np.arange(24.0) ** 2
    shown = figure_of(Matrix(4, 6), 4, background, constant=np.arange(24) == 5)
    scores, counts = (panel.plot() for panel in shown.panels)
    for ax in (scores, counts):
        below, above = ax.images
        np.testing.assert_array_equal(below.get_array(), background.reshape(4, 6))
        shades = below.cmap(np.linspace(0, 1, 5))[:, :3]
        assert np.ptp(shades, axis=1).max() == 0  # grey
        assert shades.min() > 0.3
        assert above.cmap(np.ma.masked)[3] == 0  # where there is no score the image alone is seen
    assert (np.diff(scores.images[1].cmap(np.linspace(0, 1, 9))[:, 3]) > 0).all()
    assert "over the a mean" in shown.panels[0].caption
    assert "in grey: a mean; hatched: constant" in shown.caption


def test_the_head_states_name_top_stability_and_what_limits_the_result():
    layout = Matrix(4, 4)
    remarks = [
        "2 of 5 winners did not reach tol.",
        "The final model selects no feature: " + "word " * 60,
    ]
    shown = RankingFigure("pixels", make(layout, 4), layout, ["Test accuracy 0.9."], remarks)
    assert shown.title == "pixels: top 4 of 16 features"
    assert str(shown.ranking.stability) in shown.caption
    assert "Features with a score: 16 in the final model, 16 in the outer folds." in shown.caption
    figure = shown.headed_figure()
    texts = " ".join(" ".join(text.get_text() for text in figure.subfigs[0].texts).split())
    assert texts == " ".join(f"{shown.title} {shown.caption} {' '.join(remarks)}".split())
    renderer = draw(figure)
    bottom = min(text.get_window_extent(renderer).y0 for text in figure.subfigs[0].texts)
    assert bottom > max(ax.get_tightbbox(renderer).y1 for ax in figure.axes) - 1


@pytest.mark.parametrize("layout", [Matrix(3, 3), Tensor((9,)), Modalities({"a": 5, "b": 4})])
def test_features_without_a_score_are_neither_drawn_nor_outlined(layout):
    scores = np.zeros((4, 9))
    scores[:, 4] = [2.0, 1.0, 1.0, 0.0]
    shown = figure_of(layout, 5, scores=scores)
    assert (
        "Features with a score: 1 in the final model, 0 to 1 in the outer folds." in shown.caption
    )
    first, second = shown.panels[:2]
    if isinstance(first, ScoreMap):
        ax = second.plot()
        assert ax.images[0].get_array().filled(0).ravel().tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0]
        assert len(only(LineCollection, ax.collections).get_segments()) == 4
        assert (
            "outlined: its 1 best features, of the 5 that count as selected at most"
            in first.caption
        )
    else:
        assert [bar.get_width() for bar in first.plot().patches] == [2.0]


@pytest.mark.parametrize(
    "layout", [Tensor((12, 1)), Tensor((1, 12)), Tensor((12,)), Tensor((2, 2, 1, 3))]
)
def test_other_layouts_get_bars_of_the_best_features_by_name(layout):
    names = [f"gene {i}" for i in range(12)]
    shown = figure_of(layout, 9, names=names)
    bars, ranks, *_ = shown.panels  # of arrays of higher order also their maxima
    ax, best = bars.plot(), np.argsort(-shown.ranking.scores)[:9]
    assert labels(ax.yaxis) == [names[i] for i in best]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], shown.ranking.scores[best])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the best on top
    darkness = [1 - np.mean(bar.get_facecolor()[:3]) for bar in ax.patches]
    counts = shown.ranking.selection_count[best]
    np.testing.assert_array_equal(
        np.greater.outer(darkness, darkness), np.greater.outer(counts, counts)
    )
    expected = pd.DataFrame(
        {"feature": [names[i] for i in best], "score": shown.ranking.scores[best]}
    )
    pd.testing.assert_frame_equal(bars.frame()[["feature", "score"]], expected)
    assert_ranks_are_drawn(ranks, shown.ranking, best)


def test_each_task_ranks_its_own_features():
    layout = Tasks({"faces": (4, 3), "wine": 9})
    # As join_tasks names them; each panel leaves its own task's name out.
    names = [f"{task}/x{i}" for task, width in layout.widths().items() for i in range(width)]
    shown = figure_of(layout, 7, names=names)
    ranking, (scores, counts, bars, ranks) = shown.ranking, shown.panels
    np.testing.assert_array_equal(
        scores.plot().images[0].get_array().data, ranking.scores[:12].reshape(4, 3)
    )
    # 7 of 21 are selected, so 4 of the faces' 12 and 3 of the wine's 9: whichever those are within
    # the task.
    best = [np.argsort(np.argsort(row[:12])) < 4 for row in ranking.fold_ranks]
    np.testing.assert_array_equal(
        counts.plot().images[0].get_array().filled(0), np.sum(best, axis=0).reshape(4, 3)
    )
    order = np.argsort(-ranking.scores[12:])
    assert labels(bars.plot().yaxis) == [f"x{i}" for i in order][:8]
    assert max(x for x, _ in points_of(ranks.plot())) <= 9
    assert [panel.title.partition(":")[0] for panel in shown.panels[:3]] == [
        "faces",
        "faces",
        "wine",
    ]
    assert "among their best 4" in counts.caption


def test_modalities_show_what_each_has_of_the_whole():
    shown = figure_of(Modalities({"hog": 10, "lbp": 30}), 8)
    assert [type(panel) for panel in shown.panels] == [
        ScoreBars,
        FoldRankBars,
        PartScores,
        PartCounts,
    ]
    scores, counts = shown.panels[2:]
    ax, ranking = counts.plot(), shown.ranking
    assert labels(ax.yaxis) == ["hog (10)", "lbp (30)"]
    chosen = np.argsort(-ranking.scores)[:8]
    assert [bar.get_width() for bar in ax.patches] == [(chosen < 10).sum(), (chosen >= 10).sum()]
    assert {
        (float((np.argsort(row)[:8] < 10).sum()), 0.0) for row in ranking.fold_ranks
    } <= points_of(ax)
    means = [ranking.scores[:10].mean(), ranking.scores[10:].mean()]
    np.testing.assert_allclose(counts.frame()["mean_score"], means)
    ax = scores.plot()
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], means)
    assert labels(ax.yaxis) == ["hog (10)", "lbp (30)"]


def test_many_bars_are_cut_which_the_title_says_and_the_report_shows_fewer():
    bars, ranks = figure_of(Tensor((500,)), 300).panels
    assert len(bars.plot().patches) == len(ranks.frame()) == 40
    assert bars.title == "score of the final model; the best 40 are shown"
    assert ranks.plot().get_xscale() == "log"
    assert len(bars.for_report().plot().patches) == 24
    assert "24 best features" in bars.for_report().caption


def test_the_shares_of_the_tasks_add_up():
    for n in range(3, 300):
        divided = divide(n, {"a": 1024, "b": 644, "c": 700})
        assert sum(divided.values()) == n
        assert all(
            abs(divided[name] - n * width / 2368) <= 1
            for name, width in (("a", 1024), ("b", 644), ("c", 700))
        )


def test_the_tasks_that_are_not_shown_are_named():
    shown = figure_of(Tasks({f"task {i}": (4, 4) for i in range(8)}), 21)
    assert sum(isinstance(panel, SelectionMap) for panel in shown.panels) == 6
    assert shown.remarks == [
        "6 of 8 tasks are shown; ranking.csv has all. Left out: task 6, task 7."
    ]


@no_warnings
@pytest.mark.parametrize("layout", [Matrix(3, 3), Tensor((9,))])
@pytest.mark.parametrize("n_folds", [pytest.param(1, marks=pytest.mark.slow), 30])
def test_extremes_are_drawn_without_a_warning(layout, n_folds):
    draw(figure_of(layout, 9, n_folds=n_folds).headed_figure())
    names = [f"${i}_$ {'long ' * 30}" for i in range(9)]
    nothing = figure_of(
        layout, 1, scores=np.zeros((n_folds + 1, 9)), names=names, constant=np.ones(9, dtype=bool)
    )
    draw(nothing.headed_figure())


@pytest.mark.parametrize(
    ("layout", "n_selected"),
    [
        *(
            pytest.param(Matrix(*shape), n, marks=pytest.mark.slow)
            for shape, n in (((8, 8), 64), ((90, 3), 20))
        ),
        pytest.param(Matrix(128, 85), 20, marks=pytest.mark.slow),
        pytest.param(Matrix(3, 90), 270, marks=pytest.mark.slow),
        pytest.param(Tensor((30, 1)), 20, marks=pytest.mark.slow),
        pytest.param(Tensor((30, 1)), 30, marks=pytest.mark.slow),
        pytest.param(Tasks({"a" * 50: (20, 9), "b": 3, "c": (2, 30)}), 20, marks=pytest.mark.slow),
        (Tasks({"a" * 50: (20, 9), "b": 3, "c": (2, 30)}), 243),
        pytest.param(Modalities({"a" * 50: 20, "b": 3}), 20, marks=pytest.mark.slow),
        pytest.param(Modalities({"a" * 50: 20, "b": 3}), 23, marks=pytest.mark.slow),
    ],
)
def test_no_words_leave_the_page(layout, n_selected):
    names = [f"a rather long name of feature {i}" for i in range(layout.n_features)]
    shown = figure_of(layout, n_selected, n_folds=5, names=names)
    assert is_on_page(shown.headed_figure())
    for panel in shown.panels:
        assert is_on_page(panel.figure())
