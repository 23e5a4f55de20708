"""The data of the preview are means and quantiles that NumPy computes, and survive their file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from raysel.data.dataset import Dataset
from raysel.data.layouts import MaskedVolume, Matrix, Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.data.tasks import join_tasks
from raysel.results.displays.planes import make_plane
from raysel.results.displays.preview import part_figure
from raysel.results.displays.preview_data import (
    Images,
    Ranges,
    preview_orders,
    preview_parts,
    read_preview_parts,
    write_preview_parts,
)

ORDERED = {"": "F"}


def test_the_means_of_the_classes_and_single_samples_are_those_of_the_images():
    X, y = load_digits(return_X_y=True)
    means, singles = preview_parts(Dataset(X, y, Matrix(8, 8)), ORDERED)
    images = X.reshape(-1, 8, 8)
    assert isinstance(means, Images)
    assert list(means.captions) == [str(c) for c in range(10)]
    np.testing.assert_allclose(means.images, [images[y == c].mean(axis=0) for c in range(10)])
    assert "8 x 8 (rows x columns), read in F order" in means.title
    assert isinstance(singles, Images)
    for caption, image in zip(singles.captions, singles.images, strict=True):
        number, _, label = caption.removeprefix("no. ").rstrip(")").partition(" (")
        np.testing.assert_array_equal(image, images[int(number)])
        assert y[int(number)] == int(label)


def test_many_classes_are_cut_and_that_is_said():
    X, y = load_digits(return_X_y=True)
    means = preview_parts(Dataset(X, np.arange(len(X)) % 60, Matrix(8, 8)))[0]
    assert len(means.captions) == 24
    assert "24 of 60 shown" in means.title
    labels = np.stack([y < 5, y % 2 == 0], axis=1).astype(int)
    both = preview_parts(Dataset(X, labels, Matrix(8, 8), label_names=("low", "even")))[0]
    np.testing.assert_allclose(both.images[1], X[y % 2 == 0].mean(axis=0).reshape(8, 8))


def test_slices_go_through_the_middle_and_channels_are_shown_one_by_one():
    X = np.random.default_rng(0).normal(size=(12, 5, 6, 7))
    y = np.arange(12) % 2
    parts = preview_parts(Dataset(X.reshape(12, -1), y, Tensor((5, 6, 7))))
    mean = X[y == 0].mean(axis=0)
    expected = {"axis0 = 2": mean[2], "axis1 = 3": mean[:, 3], "axis2 = 3": mean[:, :, 3]}
    assert [part.title.rpartition("slice ")[2] for part in parts] == list(expected)
    for part, image in zip(parts, expected.values(), strict=True):
        np.testing.assert_allclose(part.images[0], image)
    assert [part.axes for part in parts] == [("axis1", "axis2"), ("axis0", "axis2"), ("axis0", "axis1")]
    channels = preview_parts(Dataset(X[..., :3].reshape(12, -1), y, Tensor((5, 6, 3))))
    assert len(channels) == 3
    np.testing.assert_allclose(channels[2].images[0], mean[..., 2])


class Ball(Tensor):
    """Layout of which the cells with an even sum of indices are features."""

    @property
    def n_features(self):
        return int((np.indices(self.shape).sum(axis=0) % 2 == 0).sum())

    def coordinates(self):
        places = np.argwhere(np.indices(self.shape).sum(axis=0) % 2 == 0)
        return {f"axis{i}": column for i, column in enumerate(places.T)}


def test_cells_that_are_no_features_are_as_dark_as_the_smallest_value():
    layout = Ball((5, 5, 5))
    X = np.random.default_rng(0).uniform(3, 4, (8, layout.n_features))
    middle = preview_parts(Dataset(X, np.arange(8) % 2, layout))[0].images[0]
    inside = np.indices((5, 5)).sum(axis=0) % 2 == 0
    assert (middle[~inside] == X.min()).all()
    at = np.argwhere(np.indices((5, 5, 5)).sum(axis=0) % 2 == 0)
    np.testing.assert_allclose(middle[inside], X[::2, at[:, 0] == 2].mean(axis=0))


def test_a_volume_lies_as_in_the_maps_of_its_ranking():
    """The first other axis runs to the right, the second upwards, as in `make_plane`; no order is told of it."""
    mask = np.zeros((5, 6, 7), dtype=bool)
    mask[1:4, 1:5, 2:6] = True
    X = np.random.default_rng(0).uniform(3, 4, (8, int(mask.sum())))
    layout = MaskedVolume(mask)
    parts = preview_parts(Dataset(X, np.arange(8) % 2, layout), {"": "C"})
    assert [part.axes for part in parts] == [("axis2", "axis1"), ("axis2", "axis0"), ("axis1", "axis0")]
    assert not any("order" in part.title for part in parts)
    last = parts[2]
    plane = make_plane(layout)
    assert (plane.axes, last.upwards) == (last.axes, True)
    volume = np.full(mask.shape, X.min())
    volume[mask] = X[::2].mean(axis=0)
    np.testing.assert_allclose(last.images[0], volume[:, :, 4].T)
    axes = part_figure(last).axes[0]
    assert axes.images[0].origin == "lower"
    assert axes.get_ylim() == (-0.5, 5.5)
    thin = preview_parts(Dataset(X[:, :6], np.arange(8) % 2, MaskedVolume(np.ones((2, 3, 1), dtype=bool))))
    assert [part.title.rpartition("; ")[2] for part in thin] == ["slice axis2 = 0"]  # and no channel


def test_ticks_of_a_thinned_image_count_the_cells_of_the_sample():
    X = np.random.default_rng(0).uniform(size=(4, 300 * 180))
    part = preview_parts(Dataset(X, np.arange(4) % 2, Matrix(300, 180)))[0]
    np.testing.assert_allclose(part.images[0], X[::2].mean(axis=0).reshape(300, 180)[::2, ::2])
    assert "1 of 2 rows and columns" in part.title
    assert f"black = {part.images.min():.4g}, white = {part.images.max():.4g}" in part.title
    axes = part_figure(part).axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 179.5), (299.5, -0.5))


def test_columns_and_modalities_have_their_quantiles():
    X, y = load_wine(return_X_y=True)
    (part,) = preview_parts(load_dataset("wine"))
    assert isinstance(part, Ranges)
    np.testing.assert_allclose(part.quantiles, np.percentile(X, [0, 25, 50, 75, 100], axis=0).T)
    np.testing.assert_allclose(part.means, np.array([X[y == c].mean(axis=0) for c in range(3)]).T)
    (part,) = preview_parts(Dataset(X, y, Modalities({"a": 5, "b": 8})))
    assert list(part.names) == ["a (5)", "b (8)"]
    np.testing.assert_allclose(part.quantiles[1], np.percentile(X[:, 5:], [0, 25, 50, 75, 100]))
    wide = np.random.default_rng(0).normal(size=(20, 90))
    (part,) = preview_parts(Dataset(wide, np.arange(20) % 10, Tensor((90,))))
    assert len(part.names) == 40
    assert "the first 40 of 90 columns" in part.title
    assert not part.classes  # too many to tell apart


def test_each_task_is_shown_in_its_kind_and_order():
    joined = join_tasks({"iris": load_dataset("iris"), "digits": load_dataset("digits")})
    iris, means, singles = preview_parts(joined, {"iris": "C", "digits": "F"})
    assert isinstance(iris, Ranges)
    assert iris.title.startswith("iris: all 4 columns")
    assert isinstance(means, Images)
    X, y = load_digits(return_X_y=True)
    np.testing.assert_allclose(means.images[3], X[y == 3].mean(axis=0).reshape(8, 8))
    assert means.captions[3] == "3"
    assert "F order" in singles.title
    assert preview_orders({"tasks": [{"name": "a", "order": "F"}, {"name": "b"}]}) == {"a": "F", "b": "C"}
    assert preview_orders({"path": "a.npz"}) == {"": "C"}


def test_what_is_written_is_read_again_and_a_damaged_file_is_done_without(tmp_path):
    joined = join_tasks({"iris": load_dataset("iris"), "digits": load_dataset("digits")})
    parts, path = preview_parts(joined), tmp_path / "preview.npz"
    write_preview_parts(parts, path)
    found = read_preview_parts(path)
    for part, own in zip(found, parts, strict=True):
        assert (type(part), part.title) == (type(own), own.title)
        if isinstance(own, Images):
            assert (list(part.captions), part.axes) == (list(own.captions), own.axes)
            np.testing.assert_allclose(part.images, own.images, atol=np.ptp(own.images) / 500)
        else:
            np.testing.assert_array_equal(part.quantiles, own.quantiles)
            np.testing.assert_array_equal(part.means, own.means)
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

    from raysel.results.page.assemble import write_report  # noqa: PLC0415

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
