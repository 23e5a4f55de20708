"""Planes show each cell of an image once, and of a volume the slices with the highest scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.data.layouts import MaskedVolume, Matrix, Modalities, Tensor
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.maps import ScoreMaxima, has_maxima, make_plane


def slices(plane):
    return [text for _, _, text in plane.titles]


@given(shape=st.tuples(*[st.integers(2, 6)] * 3), seed=st.integers(0, 99), affine=st.booleans())
@settings(max_examples=40)
def test_every_voxel_of_a_small_mask_is_shown_once_and_in_order(shape, seed, affine):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.4
    mask.flat[0] = True
    layout = MaskedVolume(mask, np.diag([1.0, 1, 1, 1])[[0, 2, 1, 3]] if affine else None)
    plane = make_plane(layout)
    shown = plane.features[plane.inside]
    assert sorted(shown) == list(range(layout.n_features))
    np.testing.assert_array_equal(plane.cells[plane.inside], np.flatnonzero(mask.ravel())[shown])
    # Each voxel lies in the slice whose title stands above it, to the right by the first and up by
    # the second axis.
    along = 1 if affine else 2
    right, up = [axis for axis in range(3) if axis != along]
    places, coordinates = np.argwhere(plane.inside), list(layout.coordinates().values())
    titles = {int(text.split(",")[0].rpartition(" ")[2]): y for _, y, text in plane.titles}
    for row, column in places:
        i = plane.features[row, column]
        assert titles[coordinates[along][i]] < row
        j = plane.features[places[:, 0], places[:, 1]]
        same = coordinates[along][j] == coordinates[along][i]
        assert (np.diff(places[same, 1][np.argsort(coordinates[right][j[same]])]) >= 0).all()
        assert (np.diff(places[same, 0][np.argsort(coordinates[up][j[same]])]) <= 0).all()


def test_the_slices_with_the_highest_scores_are_shown():
    layout = MaskedVolume(np.ones((4, 5, 40), bool))
    scores = np.random.default_rng(0).random(layout.n_features)
    best = layout.arranged(scores).max(axis=(0, 1))
    expected = sorted(np.argsort(-best)[:12])
    plane = make_plane(layout, scores)
    assert slices(plane) == [f"k = {k}" for k in expected]
    assert plane.about == "12 of the 40 slices along k are shown, those with the highest values."
    one = np.where(layout.coordinates()["k"] == 7, scores, 0)
    assert slices(make_plane(layout, one)) == ["k = 7"]
    assert len(slices(make_plane(layout, 0 * scores))) == 1
    # Of arrays whose axes are not those of space slices that are spread evenly.
    plane = make_plane(Tensor((40, 50, 46)), np.arange(40 * 50 * 46.0))
    assert slices(plane) == [f"axis0 = {k}" for k in np.linspace(0, 39, 16).round().astype(int)]
    assert plane.about == "16 of the 40 slices along axis0 are shown, evenly spread."


@pytest.mark.parametrize(("shape", "along"), [((6, 7, 3), 2), ((3, 6, 7), 0), ((6, 7, 8), 0)])
def test_the_channels_of_colour_images_are_shown_as_matrices(shape, along):
    layout = Tensor(shape)
    plane = make_plane(layout)
    assert slices(plane) == [f"axis{along} = {k}" for k in range(shape[along])]
    assert plane.axes == tuple(f"axis{a}" for a in range(3) if a != along)
    values = np.random.default_rng(0).random(shape)
    drawn = plane.place_cells(values.ravel())
    x, y, _ = plane.titles[1]
    matrix = np.take(values, 1, axis=along)
    top, left = round(y + 0.5), round(x - (matrix.shape[1] - 1) / 2)
    np.testing.assert_array_equal(
        drawn[top : top + matrix.shape[0], left : left + matrix.shape[1]], matrix
    )


def test_matrices_are_shown_as_they_are_and_others_not_at_all():
    values = np.random.default_rng(0).random(12)
    np.testing.assert_array_equal(
        make_plane(Matrix(3, 4)).place_features(values), values.reshape(3, 4)
    )
    for layout in (
        Tensor((12,)),
        Tensor((12, 1)),
        Tensor((12, 1, 1)),
        Tensor((2, 3, 2, 2)),
        Modalities({"a": 12}),
    ):
        assert make_plane(layout) is None


def test_cells_without_a_value_are_masked():
    layout = MaskedVolume(np.array([[[True, False], [True, True]]]))
    image = np.array([1.0, np.nan, 2.0, 3.0])
    drawn = make_plane(layout).place_cells(image)
    assert sorted(drawn.compressed()) == [1, 2, 3]


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 3, 2, 4)])
def test_maxima_show_each_two_axes_with_the_highest_score_over_the_others(shape):
    scores = np.random.default_rng(0).permutation(np.prod(shape)).astype(float) + 1
    layout = Tensor(shape)
    names = layout.default_names()
    ranking = FeatureRanking.from_folds(
        scores,
        [scores] * 2,
        feature_names=names,
        fold_names=["a", "b"],
        n_selected=3,
        coordinates=layout.coordinates(),
    )
    shown = ScoreMaxima(ranking, layout)
    plane, highest, best = shown._tiles
    pairs = [(i, j) for i in range(len(shape)) for j in range(i + 1, len(shape))]
    assert slices(plane) == [f"axis{i} x axis{j}" for i, j in pairs]
    expected = [
        scores.reshape(shape).max(
            axis=tuple(axis for axis in range(len(shape)) if axis not in pair)
        )
        for pair in pairs
    ]
    assert sorted(highest.compressed()) == sorted(
        np.concatenate([tile.ravel() for tile in expected])
    )
    assert highest.max() == scores.max()
    assert best[highest.filled(0) == scores.max()].all()
    assert (best <= plane.inside).all()
    assert not has_maxima(Tensor((4, 1, 5)))
