"""The planted shapes differ in what their names say, and the noise has variance 1."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import label

FOLDER = Path(__file__).parents[2] / "experiments" / "claims" / "structure"
#: Connected parts and rank of each shape; None where it is drawn, or not told.
SHAPES = {
    "rectangle": (1, 1),
    "blob": (1, None),
    "two regions": (2, None),
    "ring": (1, None),
    "stripes": (3, 1),
    "outer product": (None, 1),
    "scattered": (None, None),
}


@pytest.fixture
def shapes(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield pytest.importorskip("shapes")
    sys.modules.pop("shapes")


def test_shapes_have_as_many_cells_and_are_what_they_are_called(shapes):
    assert shapes.SHAPES.keys() == SHAPES.keys()
    for name, (parts, rank) in SHAPES.items():
        cells = shapes.SHAPES[name](np.random.default_rng(0))
        assert cells.sum() == shapes.CELLS
        assert parts in {None, label(cells)[1]}
        assert rank in {None, np.linalg.matrix_rank(cells)}
    drawn = shapes.scattered(np.random.default_rng(0))
    assert label(drawn)[1] > 20
    assert np.linalg.matrix_rank(drawn) > 10


@pytest.mark.parametrize("noise", ["white", "smooth"])
def test_the_classes_differ_by_the_effect_in_noise_of_variance_1(shapes, noise):
    X, y, telling = shapes.draw_images("blob", noise, 4000, 0)
    means = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert np.isclose(means[telling].mean(), shapes.EFFECT, atol=0.05)
    assert np.isclose(means[~telling].mean(), 0, atol=0.05)
    assert np.isclose(X[y == 0].var(axis=0).mean(), 1, atol=0.02)
    images = X[y == 0].reshape(-1, shapes.SIDE, shapes.SIDE)
    neighbours = np.mean(images[:, 1:] * images[:, :-1])
    if noise == "white":
        assert abs(neighbours) < 0.02
    else:
        assert np.isclose(neighbours, np.exp(-1 / 4), atol=0.03)  # Gaussian of sigma 1 with itself
