"""Samples that resemble those near them in place are said, whatever their order in the file."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from planted_leaks import table
from scipy.ndimage import gaussian_filter

from raysel.data.formats.recognition import places
from raysel.data.loading import load_dataset
from raysel.evaluation.plan import NestedPlan
from raysel.study.inspection.remarks import data_remarks

SIDE, WIDTH = 60, 3.0
BANDS = tuple(f"b{i}" for i in range(8))


def field(rng, width=WIDTH):
    """A smooth random field, whose correlation at distance d is exp(-d^2 / 4 width^2)."""
    smooth = gaussian_filter(rng.standard_normal((SIDE, SIDE)), width, mode="wrap")
    return smooth / smooth.std()


def pixels(seed, n=500):
    """Pixels of a scene in any order: bands that tell nothing of the class but where it is; with
    their places.
    """
    rng = np.random.default_rng(seed)
    bands = np.stack([field(rng) for _ in BANDS], axis=-1).reshape(-1, len(BANDS))
    y = (field(rng).ravel() > 0).astype(int)
    rows = rng.permutation(SIDE * SIDE)[:n]
    return bands[rows], y[rows], np.stack(np.unravel_index(rows, (SIDE, SIDE)), axis=1)


def scene(seed, names=("row", "col")):
    X, y, P = pixels(seed)
    return table(np.hstack([P, X]), y, (*names, *BANDS))


def folds(data, groups=None):
    return NestedPlan.make(data.y, outer=3, inner=2, repeats=1, groups=groups, seed=0)


def blocks(data, width):
    row, col = data.X[:, :2].astype(int).T // width
    return row * SIDE + col


def of_places(data, plan=None):
    return [remark for remark in data_remarks(data, plan) if "several times" in remark]


@pytest.mark.parametrize("names", [("lat", "lon"), ("a", "b")])
def test_pixels_in_any_order_are_remarked_on_by_the_names_or_the_values_of_their_places(names):
    data = scene(0, names)
    (said,) = of_places(data)
    assert " and ".join(names) in said
    assert WIDTH < float(re.search(r"times (\S+) wide", said)[1]) < 5 * WIDTH  # .1 at 3 WIDTH
    (folded,) = of_places(data, folds(data))
    assert "cv.groups" in folded
    for remark in (*data_remarks(data), folded):
        assert len(remark.partition("\n")[0].split()) <= 25, remark


def test_larger_blocks_are_asked_for_until_no_test_sample_is_like_a_training_sample_near_it():
    data = scene(1)
    for width, told in ((1, True), (6, True), (SIDE // 2, False)):
        groups = blocks(data, width)
        grouped = replace(data, groups=groups)
        assert bool(of_places(grouped, folds(data, groups))) is told, width


@pytest.mark.parametrize("what", ["samples", "labels", "places"])
def test_no_remark_where_samples_labels_or_places_are_in_another_order(what):
    X, y, P = pixels(3)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, P = (
        values[order] if what == name else values
        for name, values in (("samples", X), ("labels", y), ("places", P))
    )
    assert of_places(table(np.hstack([P, X]), y, ("row", "col", *BANDS))) == []


def test_places_that_a_study_drops_are_looked_at(tmp_path):
    X, y, P = pixels(4)
    path = tmp_path / "pixels.csv"
    names = "row,col,label," + ",".join(BANDS)
    np.savetxt(path, np.column_stack([P, y, X]), delimiter=",", header=names, comments="")
    data = load_dataset(path, label="label", drop=["row", "col"])
    assert data.feature_names == BANDS
    assert "row and col" in of_places(data)[0]
    assert "row and col" in of_places(data, folds(data))[0]


def test_names_of_places_stand_beside_each_other():
    names = [
        "x",
        "age",
        "pxl_row_in_fullres",
        "y",
        "Latitude",
        "colour",
        "pxl_col_in_fullres",
        "lon",
    ]
    assert places(names) == [
        ("x", "y"),
        ("pxl_row_in_fullres", "pxl_col_in_fullres"),
        ("Latitude", "lon"),
    ]
    assert places(["x", "row", "x_tall", "y_wide", "lat"]) == []


def told(seed, bands, y, *, folded):
    """Whether pixels with their places are remarked on."""
    rows = np.random.default_rng(seed).permutation(SIDE * SIDE)[:500]
    P = np.stack(np.unravel_index(rows, (SIDE, SIDE)), axis=1)
    names = ("row", "col", *(f"b{i}" for i in range(bands.shape[1])))
    data = table(np.hstack([P, bands[rows]]), y[rows], names)
    return bool(of_places(data, folds(data) if folded else None))


@pytest.mark.parametrize("folded", [False, True])
def test_many_bands_of_which_each_is_mostly_noise_are_remarked_on(folded):
    """A pixel correlates with the next one by less than .2, and random folds tell the class,
    blocks do not.
    """
    rng = np.random.default_rng(0)
    smooth = np.stack([field(rng, 7) for _ in range(40)], axis=-1).reshape(-1, 40)
    y = (field(rng, 7).ravel() > 0).astype(int)
    assert told(0, smooth + 2.2 * rng.standard_normal(smooth.shape), y, folded=folded)


@pytest.mark.parametrize("kind", ["patches", "mixed"])
def test_places_that_tell_no_more_than_the_classes_of_other_places_are_no_alarm(kind):
    """Classes stand in patches; features are draws of the class, or of a mixture that other
    places have, too.
    """
    for seed in range(2):
        rng = np.random.default_rng(seed)
        of_class, direction = field(rng).ravel(), rng.standard_normal(len(BANDS))
        y = (of_class > 0).astype(int)
        shown = np.outer(y if kind == "patches" else of_class, direction)
        bands = shown + 0.3 * rng.standard_normal(shown.shape)
        assert not told(seed, bands, y, folded=seed % 2 == 0)
