"""What the pictures show is what the ranking says."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from no_warnings import no_warnings
from PIL import Image

from raysel.data.layouts import Matrix, Modalities, Tasks, Tensor
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.parts import shares
from raysel.results.displays.ranking_figure import ranking_figure


def make(layout, n_selected, n_folds=3, names=None, constant=None, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.random(layout.n_features) + 0.1
    base[constant if constant is not None else []] = 0.0
    folds = [base + 0.3 * rng.random(layout.n_features) * (base > 0) for _ in range(n_folds)]
    return FeatureRanking.from_folds(
        base,
        folds,
        feature_names=names or layout.default_names(),
        fold_names=[f"outer{i}" for i in range(n_folds)],
        n_selected=n_selected,
        coordinates=layout.coordinates(),
        constant=constant,
    )


def draw(ranking, layout, name="study", test_scores=(0.8, 0.9, 1.0), **settings):
    figure = ranking_figure(ranking, layout, name=name, test_scores=list(test_scores), **settings)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=50)
    return figure, np.asarray(Image.open(png).convert("RGB"))


def texts(figure):
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("shape", [(4, 6), (9, 3), (2, 40)])
def test_the_maps_show_scores_and_counts_cell_by_cell(shape):
    layout = Matrix(*shape)
    constant = np.arange(layout.n_features) == 5
    ranking = make(layout, 4, constant=constant)
    figure, _ = draw(ranking, layout)
    score_map, _, selection_map, _ = figure.axes
    shown = score_map.images[0].get_array()
    np.testing.assert_array_equal(shown.mask.ravel(), constant)
    np.testing.assert_array_equal(shown.data, ranking.scores.reshape(shape))
    count = selection_map.images[0].get_array()
    np.testing.assert_array_equal(count, (ranking.fold_ranks <= 4).sum(axis=0).reshape(shape))
    (hatched,) = (c for c in score_map.collections if isinstance(c, PolyCollection))
    (path,) = hatched.get_paths()
    np.testing.assert_allclose(path.vertices[:4].mean(axis=0), [5 % shape[1], 5 // shape[1]])


def test_the_outline_is_the_border_of_the_top_cells():
    """Each cell's four sides are drawn where the neighbour is not chosen, and nowhere else."""
    layout = Matrix(5, 4)
    ranking = make(layout, 8)
    figure, _ = draw(ranking, layout)
    (lines,) = (c for c in figure.axes[2].collections if isinstance(c, LineCollection))
    drawn = sorted(tuple(sorted(map(tuple, segment.tolist()))) for segment in lines.get_segments())
    chosen = {divmod(int(i), 4) for i in np.flatnonzero(ranking.ranks <= 8)}
    expected = []
    for row, column in chosen:
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            if (row + down, column + right) not in chosen:
                x, y = column + right / 2, row + down / 2
                half_x, half_y = abs(down) / 2, abs(right) / 2
                expected.append(((x - half_x, y - half_y), (x + half_x, y + half_y)))
    assert drawn == sorted(expected)


def test_the_pixels_tell_the_best_cell_from_the_worst_and_from_a_constant_one():
    layout = Matrix(2, 2)
    scores = np.array([1.0, 0.0, 0.2, 0.0])
    ranking = FeatureRanking.from_folds(
        scores,
        [scores, scores],
        feature_names="abcd",
        fold_names=["outer0", "outer1"],
        n_selected=1,
        constant=np.array([False, False, False, True]),
    )
    figure, pixels = draw(ranking, layout, test_scores=(0.5, 0.6))

    def colour(axes, row, column):
        x, y = axes.transData.transform((column + 0.2, row + 0.2)) * 50 / figure.dpi
        return pixels[len(pixels) - 1 - int(y), int(x)].astype(int)

    score_map, _, selection_map, _ = figure.axes
    best, zero, low = colour(score_map, 0, 0), colour(score_map, 0, 1), colour(score_map, 1, 0)
    assert best[0] > 2 * best[2]  # viridis ends in yellow
    assert low[2] > low[1]  # and begins in violet
    assert zero.min() == zero.max() == 230  # grey
    assert colour(selection_map, 0, 0)[0] < 50  # dark blue: both folds
    assert colour(selection_map, 0, 1).tolist() == [255, 255, 255]
    labels = figure.axes[1].get_ylabel()
    assert "grey: 0" in labels
    assert "hatched: constant" in labels


@pytest.mark.parametrize("layout", [Matrix(4, 4), Tensor((16, 1))])
def test_the_head_states_name_top_stability_and_honest_accuracy(layout):
    ranking = make(layout, 4)
    figure, _ = draw(ranking, layout, name="pixels", metric="balanced_accuracy")
    title, facts, scored = texts(figure)
    assert scored == "features with a score: 16 in the final model, 16 in the outer folds' winners"
    assert title == "pixels: top 4 of 16 features"
    assert str(ranking.stability) in facts
    assert "balanced accuracy on unseen samples 0.900 ± 0.100 (SD)" in facts


@pytest.mark.parametrize(
    "layout", [Matrix(4, 4), Tensor((16, 1)), Modalities({"a": 9, "b": 7}), Tasks({"a": 9, "b": 7})]
)
def test_the_head_states_what_limits_the_result(layout):
    remarks = ["2 of 5 winners did not reach tol.", "The final model selects no feature: " + "word " * 60]
    plain, _ = draw(make(layout, 4), layout)
    figure, _ = draw(make(layout, 4), layout, remarks=remarks)
    shown = texts(figure)[3:]
    assert " ".join(" ".join(shown).split()) == " ".join(" ".join(remarks).split())
    assert figure.get_figheight() == pytest.approx(plain.get_figheight() + 0.2 * len(shown))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in figure.texts]
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    top = max(axes.get_tightbbox().y1 for axes in figure.axes)
    assert min(box.y0 for box in boxes) > top - 1


def test_features_without_a_score_are_neither_drawn_nor_outlined():
    scores = np.zeros((4, 9))
    scores[:, 4] = [2.0, 1.0, 1.0, 0.0]
    for layout in (Matrix(3, 3), Tensor((9,)), Modalities({"a": 5, "b": 4})):
        ranking = FeatureRanking.from_folds(
            scores[0],
            scores[1:],
            feature_names=layout.default_names(),
            fold_names=["outer0", "outer1", "outer2"],
            n_selected=5,
            coordinates=layout.coordinates(),
        )
        figure, _ = draw(ranking, layout)
        assert texts(figure)[2] == "features with a score: 1 in the final model, 0 to 1 in the outer folds' winners"
        if isinstance(layout, Tensor) and len(layout.shape) == 2:
            count = figure.axes[2].images[0].get_array()
            assert count.ravel().tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0]
            (lines,) = (c for c in figure.axes[2].collections if isinstance(c, LineCollection))
            assert len(lines.get_segments()) == 4
        else:
            assert [bar.get_width() for bar in figure.axes[0].patches] == [2.0]


@pytest.mark.parametrize("layout", [Tensor((12, 1)), Tensor((1, 12)), Tensor((12,)), Tensor((2, 2, 1, 3))])
def test_other_layouts_get_bars_of_the_best_features_by_name(layout):
    names = [f"gene {i}" for i in range(12)]
    ranking = make(layout, 5, names=names)
    figure, _ = draw(ranking, layout)
    bars, folds = figure.axes[:2]
    best = np.argsort(-ranking.scores)[:5]
    assert [label.get_text() for label in bars.get_yticklabels()] == [names[i] for i in best]
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], ranking.scores[best])
    assert bars.get_ylim()[0] > bars.get_ylim()[1]  # the best on top
    darkness = [1 - np.mean(bar.get_facecolor()[:3]) for bar in bars.patches]
    counts = ranking.selection_count[best]
    for a in range(5):
        for b in range(5):
            assert (darkness[a] > darkness[b]) == (counts[a] > counts[b])
    points = {tuple(p) for c in folds.collections for p in np.asarray(c.get_offsets()).tolist()}
    assert {(float(row[i]), float(y)) for y, i in enumerate(best) for row in ranking.fold_ranks} <= points


def test_each_task_has_a_row_that_ranks_its_own_features():
    layout = Tasks({"faces": (4, 3), "wine": 9})
    # As join_tasks names them; each row leaves its own task's name out.
    names = [f"{task}/x{i}" for task, width in layout.widths().items() for i in range(width)]
    ranking = make(layout, 7, names=names)
    scores = {"faces": [0.5, 0.6, 0.7], "wine": [0.9, 0.9, 0.9]}
    figure, _ = draw(ranking, layout, metric="balanced_accuracy", task_scores=scores)
    score_map, _, selection_map, _, bars, ranks_axes = figure.axes[:6]
    np.testing.assert_array_equal(score_map.images[0].get_array().data, ranking.scores[:12].reshape(4, 3))
    # 7 of 21 are selected, so 4 of the faces' 12 and 3 of the wine's 9: whichever those are within the task.
    best = [np.argsort(np.argsort(row[:12])) < 4 for row in ranking.fold_ranks]
    np.testing.assert_array_equal(selection_map.images[0].get_array(), np.sum(best, axis=0).reshape(4, 3))
    order = 12 + np.argsort(-ranking.scores[12:])
    labels = [label.get_text() for label in bars.get_yticklabels()]
    assert labels == [f"x{i - 12}" for i in order][: len(labels)]
    assert len(labels) >= 3
    points = np.concatenate([np.asarray(c.get_offsets()) for c in ranks_axes.collections if len(c.get_offsets())])
    assert points[:, 0].max() <= 9
    headings = [row.subfigs[0] for row in figure.subfigs if len(row.subfigs)]
    lines = [text.get_text() for heading in headings for text in heading.texts]
    assert lines[0] == "faces: top 4 of its 12 features"
    assert lines[1] == "balanced accuracy 0.600 ± 0.100 (SD)"
    assert lines[2] == "wine: top 3 of its 9 features"
    assert lines[3] == "balanced accuracy 0.900 ± 0.000 (SD)"


def test_modalities_show_what_each_has_of_the_whole():
    layout = Modalities({"hog": 10, "lbp": 30})
    ranking = make(layout, 8)
    figure, _ = draw(ranking, layout)
    sums, counts = figure.axes[-2:]
    np.testing.assert_allclose(
        [bar.get_width() for bar in sums.patches], [ranking.scores[:10].sum(), ranking.scores[10:].sum()]
    )
    assert [label.get_text() for label in sums.get_yticklabels()] == ["hog (10)", "lbp (30)"]
    chosen = np.argsort(-ranking.scores)[:8]
    assert [bar.get_width() for bar in counts.patches] == [(chosen < 10).sum(), (chosen >= 10).sum()]
    points = {tuple(p) for c in counts.collections for p in np.asarray(c.get_offsets()).tolist()}
    assert {(float((np.argsort(row)[:8] < 10).sum()), 0.0) for row in ranking.fold_ranks} <= points


@pytest.mark.parametrize("constant", [False, True])
def test_the_maps_lie_over_the_mean_image(constant):
    layout = Matrix(4, 6)
    mask = np.arange(24) == 5
    ranking = make(layout, 4, constant=mask if constant else None)
    background = np.arange(24.0) ** 2
    figure, _ = draw(ranking, layout, background=background, meaning="norm of $w_j$")
    score_map, bar, selection_map, _ = figure.axes
    for axes in (score_map, selection_map):
        below, above = axes.images
        np.testing.assert_array_equal(below.get_array(), background.reshape(4, 6))
        shades = below.cmap(np.linspace(0, 1, 5))[:, :3]
        assert np.ptp(shades, axis=1).max() == 0  # grey
        assert shades.min() > 0.3
        assert above.cmap(np.ma.masked)[3] == 0  # where there is no score the image alone is seen
    np.testing.assert_array_equal(score_map.images[1].get_array().compressed(), ranking.scores[~ranking.constant])
    opacity = score_map.images[1].cmap(np.linspace(0, 1, 9))[:, 3]
    assert (np.diff(opacity) > 0).all()
    count = selection_map.images[1].get_array()
    np.testing.assert_array_equal(count.filled(0), ranking.selection_count.reshape(4, 6))
    assert count.mask.sum() == (ranking.selection_count == 0).sum()
    assert [text.get_text() for text in score_map.texts] == ["norm of $w_j$"]
    assert "in grey: mean of all samples" in selection_map.texts[0].get_text()
    assert bar.get_ylabel() == ("score (hatched: constant)" if constant else "score")


def test_the_shares_of_the_tasks_add_up():
    for n in range(3, 300):
        found = shares(n, {"a": 1024, "b": 644, "c": 700})
        assert sum(found.values()) == n
        assert all(abs(found[name] - n * width / 2368) <= 1 for name, width in (("a", 1024), ("b", 644), ("c", 700)))


def test_the_tasks_that_a_page_does_not_hold_are_named():
    layout = Tasks({f"task {i}": (4, 4) for i in range(7)})
    figure, _ = draw(make(layout, 21), layout)
    width, height = figure.get_size_inches()
    assert height / width < 1.5  # A4 has 1.41
    n_shown = sum(len(row.subfigs) > 0 for row in figure.subfigs)
    said = " ".join(texts(figure))
    assert f"{n_shown} of 7 tasks are shown" in said
    assert f"Left out: {', '.join(f'task {i}' for i in range(n_shown, 7))}." in said


def test_fewer_scores_than_the_top_are_said_where_the_outline_stands():
    scores = np.zeros(9)
    scores[:2] = 1.0
    ranking = FeatureRanking.from_folds(
        scores, [scores], feature_names="abcdefghi", fold_names=["outer0"], n_selected=5
    )
    figure, _ = draw(ranking, Matrix(3, 3))
    assert figure.axes[2].texts[0].get_text() == "outlined: 2 with a score"


def test_bars_say_what_the_score_is_and_short_colour_bars_break_their_label():
    layout = Tensor((3,))
    figure, _ = draw(make(layout, 3), layout, meaning="variance of the feature")
    assert figure.axes[0].get_xlabel() == "score of the final model\nvariance of the feature"
    assert figure.axes[2].get_ylabel() == "outer folds that\nselect it, of 3"


def test_long_names_are_cut_not_lost():
    layout = Tensor((3,))
    figure, _ = draw(make(layout, 3, names=[f"{i}{'x' * 60}" for i in range(3)]), layout, name="study" * 20)
    assert texts(figure)[0].startswith("studystudy")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(label[:4] for label in labels) == ["0xxx", "1xxx", "2xxx"]
    assert all(label.endswith("…") and len(label) == 32 for label in labels)


def test_many_bars_are_cut_and_it_says_so():
    layout = Tensor((500,))
    figure, _ = draw(make(layout, 300), layout)
    assert len(figure.axes[0].patches) == 40
    assert "best 40" in figure.axes[0].get_title()
    assert figure.axes[1].get_xscale() == "log"


@pytest.mark.parametrize("layout", [Matrix(3, 3), Tensor((9,))])
@pytest.mark.parametrize("n_folds", [1, 2, 30])
@no_warnings
def test_extremes_are_drawn_without_a_warning(layout, n_folds):
    everything = make(layout, 9, n_folds)
    draw(everything, layout, test_scores=[0.5] * n_folds)
    nothing = FeatureRanking.from_folds(
        np.zeros(9),
        np.zeros((n_folds, 9)),
        feature_names=[f"${i}_$ {'long ' * 30}" for i in range(9)],
        fold_names=[f"outer{i}" for i in range(n_folds)],
        n_selected=1,
        constant=np.ones(9, dtype=bool),
    )
    figure, _ = draw(nothing, layout, name="$a_study$ " * 10, test_scores=[0.5] * n_folds)
    assert texts(figure)[0].startswith("$a_study$ $a_study$")


@pytest.mark.parametrize(
    "layout",
    [
        Matrix(8, 8),
        Matrix(90, 3),
        Matrix(128, 85),
        Matrix(3, 90),
        Tensor((30, 1)),
        Tasks({"a" * 50: (20, 9), "b": 3, "c": (2, 30)}),
        Modalities({"a" * 50: 20, "b": 3}),
    ],
)
@pytest.mark.parametrize("everything", [False, True])
def test_no_words_leave_the_page(layout, everything):
    names = [f"a rather long name of feature {i}" for i in range(layout.n_features)]
    ranking = make(layout, layout.n_features if everything else 20, 5, names=names)
    told = {"task_scores": {name: [0.1, 0.9] for name in layout.tasks}} if isinstance(layout, Tasks) else {}
    figure = ranking_figure(ranking, layout, name="n" * 50, test_scores=[0.5] * 5, metric="balanced_accuracy", **told)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    inked = figure.get_tightbbox(canvas.get_renderer())  # in inches
    width, height = figure.get_size_inches()
    assert -1e-6 <= inked.x0 < inked.x1 <= width + 1e-6
    assert -1e-6 <= inked.y0 < inked.y1 <= height + 1e-6


def test_pyplot_is_never_imported():
    code = "import sys, raysel.evaluation.feature_ranking; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
