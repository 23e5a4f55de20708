"""The figures of the data show means and quantiles that NumPy computes, upright, and survive
their file.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from drawn import draw, is_on_page, labels
from sklearn.datasets import load_digits, load_wine

from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import MaskedVolume, Matrix, Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.results.description import Preview
from raysel.results.displays.data import Images, Ranges
from raysel.results.displays.maps import make_plane
from raysel.results.displays.preview_data import (
    DataPreview,
    preview_orders,
    preview_parts,
    read_preview_parts,
    write_preview_parts,
)


def test_the_images_are_drawn_as_they_are_in_the_same_greys():
    images = np.random.default_rng(0).uniform(5, 9, (11, 6, 4))
    part = Images(
        "6 x 4 (rows x columns)", [f"class {i}" for i in range(11)], images, ("axis0", "axis2")
    )
    ax = part.plot()
    for drawn, image in zip(ax.images, images, strict=True):
        np.testing.assert_array_equal(drawn.get_array(), image)
        assert drawn.get_clim() == (images.min(), images.max())
        assert drawn.origin == "upper"  # the first row is above
    left, right, bottom, top = ax.images[0].get_extent()
    assert (top - bottom) / (right - left) == pytest.approx(6 / 4)
    texts = [text.get_text() for text in ax.texts]
    assert texts == [*part.captions, "5", "0", "0", "3", "axis0", "axis2"]
    np.testing.assert_array_equal(part.frame()["value"], images.ravel())


def test_a_caption_wider_than_its_image_stands_in_two_lines():
    part = Images(
        "2 x 2",
        ["mean of patient", "no. 3 (grey)", "mean of a_name_of_forty_letters"],
        np.ones((3, 2, 2)),
    )
    captions = [text.get_text() for text in part.plot().texts][:3]
    assert captions == ["mean of\npatient", "no. 3 (grey)", "mean of\na_name_of_f…"]


def test_a_range_is_drawn_from_its_smallest_to_its_largest_value():
    quantiles = np.array([[-2.0, 0.0, 1.0, 4.0, 6.0], [3.0] * 5, [0.0, 10.0, 20.0, 30.0, 40.0]])
    means = np.array([[0.0, 2.0], [3.0, 3.0], [10.0, 40.0]])
    ax = Ranges("3 columns", ["a", "b", "c"], quantiles, means, ["no", "yes"]).plot()
    boxes = {(bar.get_y() + 0.31, bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches}
    assert {tuple(np.round(box, 9)) for box in boxes} == {(0, 0.25, 0.75), (2, 0.25, 0.75)}
    medians = next(one for one in ax.collections if one.get_label() == "median")
    assert [segment[0, 0] for segment in medians.get_segments()] == pytest.approx([3 / 8, 0.5])
    marks = {str(line.get_label()): line.get_xydata().tolist() for line in ax.lines}
    assert marks == {"mean of no": [[0.25, 0], [0.25, 2]], "mean of yes": [[0.5, 0], [1.0, 2]]}
    assert [text.get_text() for text in ax.texts] == ["-2", "6", "constant: 3", "0", "40"]
    assert labels(ax.yaxis) == ["a", "b", "c"]


def test_the_ends_of_ranges_touch_no_name():
    quantiles = np.array([[-1.234e-05, 0.1, 0.2, 0.3, 1.234e-05], [-2.711, 0.0, 0.1, 0.2, 1828.0]])
    part = Ranges(
        "2 columns", ["a name of a column, long", "b"], np.sort(quantiles, axis=1), np.empty((2, 0))
    )
    for figure in (part.figure(), DataPreview("demo", [part]).headed_figure()):
        renderer = draw(figure)
        (ax,) = figure.axes
        names = [label.get_window_extent(renderer) for label in ax.get_yticklabels()]
        for text in ax.texts:
            assert not any(text.get_window_extent(renderer).overlaps(name) for name in names)


def test_the_means_of_the_classes_and_single_samples_are_those_of_the_images():
    X, y = load_digits(return_X_y=True)
    means, singles = preview_parts(Dataset(X, y, Matrix(8, 8)), {"": "F"})
    images = X.reshape(-1, 8, 8)
    assert list(means.captions) == [str(c) for c in range(10)]
    np.testing.assert_allclose(means.images, [images[y == c].mean(axis=0) for c in range(10)])
    assert "8 x 8 (rows x columns), read in F order" in means.about
    for caption, image in zip(singles.captions, singles.images, strict=True):
        number, _, label = caption.removeprefix("no. ").rstrip(")").partition(" (")
        np.testing.assert_array_equal(image, images[int(number)])
        assert y[int(number)] == int(label)


def test_many_classes_are_cut_and_labels_have_their_means():
    X, y = load_digits(return_X_y=True)
    means = preview_parts(Dataset(X, np.arange(len(X)) % 60, Matrix(8, 8)))[0]
    assert len(means.captions) == 24
    assert "24 of 60 shown" in means.about
    indicator = np.stack([y < 5, y % 2 == 0], axis=1).astype(int)
    both = preview_parts(Dataset(X, indicator, Matrix(8, 8), label_names=("low", "even")))[0]
    np.testing.assert_allclose(both.images[1], X[y % 2 == 0].mean(axis=0).reshape(8, 8))


def test_slices_go_through_the_middle_and_channels_are_shown_one_by_one():
    X = np.random.default_rng(0).normal(size=(12, 5, 6, 7))
    y = np.arange(12) % 2
    parts = preview_parts(Dataset(X.reshape(12, -1), y, Tensor((5, 6, 7))))
    mean = X[y == 0].mean(axis=0)
    expected = {"axis0 = 2": mean[2], "axis1 = 3": mean[:, 3], "axis2 = 3": mean[:, :, 3]}
    assert [part.about.rpartition("slice ")[2] for part in parts] == list(expected)
    for part, image in zip(parts, expected.values(), strict=True):
        np.testing.assert_allclose(part.images[0], image)
    assert [part.axes for part in parts] == [
        ("axis1", "axis2"),
        ("axis0", "axis2"),
        ("axis0", "axis1"),
    ]
    named = preview_parts(
        Dataset(X.reshape(len(X), -1), y, Tensor(X.shape[1:], ("band", "hour", "place")))
    )
    assert [part.axes for part in named] == [("hour", "place"), ("band", "place"), ("band", "hour")]
    assert named[0].about.endswith("; slice band = 2")
    channels = preview_parts(Dataset(X[..., :3].reshape(12, -1), y, Tensor((5, 6, 3))))
    assert len(channels) == 3
    np.testing.assert_allclose(channels[2].images[0], mean[..., 2])


def test_a_volume_lies_as_in_the_maps_of_its_ranking():
    """The first other axis runs to the right, the second upwards; cells outside the mask are as
    dark as the darkest.
    """
    mask = np.zeros((5, 6, 7), dtype=bool)
    mask[1:4, 1:5, 2:6] = True
    X = np.random.default_rng(0).uniform(3, 4, (8, int(mask.sum())))
    layout = MaskedVolume(mask)
    parts = preview_parts(Dataset(X, np.arange(8) % 2, layout), {"": "C"})
    assert [part.axes for part in parts] == [("k", "j"), ("k", "i"), ("j", "i")]
    assert not any("order" in part.about for part in parts)
    last = parts[2]
    assert (make_plane(layout).axes, last.upwards) == (last.axes, True)
    volume = np.full(mask.shape, X.min())
    volume[mask] = X[::2].mean(axis=0)
    np.testing.assert_allclose(last.images[0], volume[:, :, 4].T)
    assert last.plot().images[0].origin == "lower"
    thin = preview_parts(
        Dataset(X[:, :6], np.arange(8) % 2, MaskedVolume(np.ones((2, 3, 1), dtype=bool)))
    )
    assert [part.about.rpartition("; ")[2] for part in thin] == ["slice k = 0"]  # and no channel


def test_ticks_of_a_thinned_image_count_the_cells_of_the_sample():
    X = np.random.default_rng(0).uniform(size=(4, 300 * 180))
    part = preview_parts(Dataset(X, np.arange(4) % 2, Matrix(300, 180)))[0]
    np.testing.assert_allclose(part.images[0], X[::2].mean(axis=0).reshape(300, 180)[::2, ::2])
    assert "1 of 2 rows and columns" in part.about
    assert f"black = {part.images.min():.4g}, white = {part.images.max():.4g}" in part.about
    assert [text.get_text() for text in part.plot().texts][-6:-2] == ["298", "0", "0", "178"]


def test_columns_and_modalities_have_their_quantiles():
    X, y = load_wine(return_X_y=True)
    (part,) = preview_parts(load_dataset("wine"))
    np.testing.assert_allclose(part.quantiles, np.percentile(X, [0, 25, 50, 75, 100], axis=0).T)
    np.testing.assert_allclose(part.means, np.array([X[y == c].mean(axis=0) for c in range(3)]).T)
    (part,) = preview_parts(Dataset(X, y, Modalities({"a": 5, "b": 8})))
    assert list(part.names) == ["a (5)", "b (8)"]
    np.testing.assert_allclose(part.quantiles[1], np.percentile(X[:, 5:], [0, 25, 50, 75, 100]))
    wide = np.random.default_rng(0).normal(size=(20, 90))
    (part,) = preview_parts(Dataset(wide, np.arange(20) % 10, Tensor((90,))))
    assert len(part.names) == 40
    assert "the first 40 of 90 columns" in part.about
    assert not part.classes  # too many to tell apart


def test_text_is_not_drawn_as_a_quantity():
    frame = pd.DataFrame(
        {"ward": ["a", None, "b", "a", "b"], "age": [1.0, 2, 3, 4, 5], "y": [0, 1, 0, 1, 0]}
    )
    data = Dataset.from_frame(frame, "y", unprepared=True)
    (part,) = preview_parts(data)
    assert list(part.names) == ["age"]
    assert "of numbers" in part.title
    assert part.caption.endswith("columns of text are not drawn.")
    assert Preview.of(data).values == (1.0, 3.0, 5.0)
    texts = Dataset.from_frame(frame.drop(columns="age"), "y", unprepared=True)
    assert Preview.of(texts).values is None
    shown = DataPreview.from_data(texts, {})
    assert "There is no column of numbers to draw." in shown.caption
    assert is_on_page(shown.headed_figure())


def test_each_task_is_shown_in_its_kind_and_order_and_read_again_from_its_file(tmp_path):
    joined = join_tasks({"iris": load_dataset("iris"), "digits": load_dataset("digits")})
    parts = preview_parts(joined, {"iris": "C", "digits": "F"})
    iris, means, singles = parts
    assert iris.about.startswith("iris: all 4 columns")
    X, y = load_digits(return_X_y=True)
    np.testing.assert_allclose(means.images[3], X[y == 3].mean(axis=0).reshape(8, 8))
    assert means.captions[3] == "3"
    assert "F order" in singles.about
    assert preview_orders({"tasks": [{"name": "a", "order": "F"}, {"name": "b"}]}) == {
        "a": "F",
        "b": "C",
    }
    assert preview_orders({"path": "a.npz"}) == {"": "C"}
    path = tmp_path / "preview.npz"
    write_preview_parts(parts, path)
    for read, part in zip(read_preview_parts(path), parts, strict=True):
        assert (type(read), read.about) == (type(part), part.about)
        if isinstance(part, Images):
            assert (list(read.captions), read.axes) == (list(part.captions), part.axes)
            np.testing.assert_allclose(read.images, part.images, atol=np.ptp(part.images) / 500)
        else:
            np.testing.assert_array_equal(
                np.hstack([read.quantiles, read.means]), np.hstack([part.quantiles, part.means])
            )
    content = path.read_bytes()
    write_preview_parts(parts, path)
    assert path.read_bytes() == content
    for damaged in (b"", content[:100], content[:-30], content[: len(content) // 2] + b"\0" * 200):
        path.write_bytes(damaged)
        assert read_preview_parts(path) == []
    assert read_preview_parts(tmp_path / "none.npz") == []


@pytest.mark.slow
def test_the_report_shows_them_and_older_studies_do_without(tmp_path, monkeypatch):
    from report_pages import KINDS, Page, run_kind  # noqa: PLC0415

    from raysel.results.page.report import write_report  # noqa: PLC0415

    data, changes = KINDS["table"]
    monkeypatch.setitem(KINDS, "table", (data, {**changes, "pictures": ["png"]}))
    result = run_kind("table", tmp_path)
    page = Page(result.directory.report.read_text())
    assert "A closer look at the data" in page.text
    X = load_dataset(tmp_path / "data.parquet").X
    rows = [line.split(",") for line in page.downloads["columns-0.csv"].decode().splitlines()]
    assert [float(row[3]) for row in rows[1:]] == np.median(X, axis=0)[:40].tolist()
    result.directory.preview_parts.unlink()
    assert "A closer look" not in Page(write_report(result).read_text()).text
