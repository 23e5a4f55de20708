"""The picture of the data shows each image upright where it belongs, and quantiles where they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from raysel.results.displays.preview import part_figure, preview_figure
from raysel.results.displays.preview_data import Images, Ranges

HOSTILE = ["$x^2_$ $\\frac{1", "a_b_c" * 30, "<script>&amp;\"'", "\x00\x07bell", "", "\u202egnp.txt", "line\nbreak"]


def on_page(figure):
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        canvas.draw()
    inked, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()
    return -0.01 <= inked.x0 < inked.x1 <= width + 0.01 and -0.01 <= inked.y0 < inked.y1 <= height + 0.01


@pytest.fixture
def images():
    return np.random.default_rng(0).uniform(5, 9, (11, 6, 4))


def test_the_images_are_drawn_as_they_are_in_the_same_greys(images):
    part = Images("6 x 4 (rows x columns)", [f"class {i}" for i in range(11)], images, ("axis0", "axis2"))
    figure = preview_figure([part], name="demo", facts=["11 samples"])
    (area,) = figure.subfigs
    drawn = [axes for axes in area.axes if axes.images]
    assert [axes.get_title() for axes in drawn] == list(part.captions)
    for axes, image in zip(drawn, images, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), image)
        assert axes.images[0].get_clim() == (images.min(), images.max())
        assert axes.images[0].origin == "upper"  # the first row is above
    labelled = [(axes.get_ylabel(), axes.get_xlabel()) for axes in drawn if axes.get_xlabel()]
    assert labelled == [("axis0", "axis2")]
    assert "6 x 4" in area.get_suptitle()


def test_a_caption_wider_than_its_image_stands_in_two_lines():
    part = Images("2 x 2", ["mean of patient", "no. 3 (grey)", "mean of a_name_of_forty_letters"], np.ones((3, 2, 2)))
    captions = [axes.get_title() for axes in part_figure(part).axes if axes.images]
    assert captions == ["mean of\npatient", "no. 3 (grey)", "mean of\na_name_of_fo…"]


def test_a_range_is_drawn_from_its_smallest_to_its_largest_value():
    quantiles = np.array([[-2.0, 0.0, 1.0, 4.0, 6.0], [3.0] * 5, [0.0, 10.0, 20.0, 30.0, 40.0]])
    means = np.array([[0.0, 2.0], [3.0, 3.0], [10.0, 40.0]])
    part = Ranges("3 columns", ["a", "b", "c"], quantiles, means, ["no", "yes"])
    ax = part_figure(part).axes[0]
    boxes = {(bar.get_y() + 0.31, bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches}
    assert {tuple(np.round(box, 9)) for box in boxes} == {(0, 0.25, 0.75), (2, 0.25, 0.75)}
    medians = next(one for one in ax.collections if one.get_label() == "median")
    assert [segment[0, 0] for segment in medians.get_segments()] == pytest.approx([3 / 8, 0.5])
    marks = {str(line.get_label()): line.get_xydata().tolist() for line in ax.lines}
    assert marks == {"mean of no": [[0.25, 0], [0.25, 2]], "mean of yes": [[0.5, 0], [1.0, 2]]}
    assert [text.get_text() for text in ax.texts] == ["-2", "6", "constant: 3", "0", "40"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]


def test_names_that_are_no_names_and_equal_values_are_drawn():
    n = len(HOSTILE)
    parts = [
        Images(HOSTILE[0] * 20, HOSTILE, np.zeros((n, 2, 40))),
        Ranges(HOSTILE[1], HOSTILE, np.tile([0.0, 1e-9, 1.0, 1e9, 1e12], (n, 1)), np.zeros((n, 6)), HOSTILE[:6]),
    ]
    assert on_page(preview_figure(parts, name=HOSTILE[0] * 9, facts=HOSTILE))


@pytest.mark.parametrize("draw", [lambda part: preview_figure([part], name="demo"), part_figure])
def test_the_ends_of_ranges_touch_no_name(draw):
    quantiles = np.array([[-1.234e-05, 0.1, 0.2, 0.3, 1.234e-05], [-2.711, 0.0, 0.1, 0.2, 1828.0]])
    part = Ranges("2 columns", ["a name of a column, long", "b"], np.sort(quantiles, axis=1), np.empty((2, 0)))
    figure = draw(part)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    axes = figure.axes[0] if figure.axes else figure.subfigs[0].axes[0]
    names = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
    for text in axes.texts:
        assert not any(text.get_window_extent(renderer).overlaps(name) for name in names)
    assert on_page(figure)
