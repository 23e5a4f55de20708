"""The experiment on samples of order 3: its unfoldings and arrangements, its page from results,
its short form.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest

from experiments.claims.tensors import planted, run, texts
from experiments.claims.tensors.real import colour_moments, orientations
from experiments.claims.tensors.unfolded import UnfoldedSMR
from experiments.experiment import HERE, Experiment
from raysel import SMR

FOLDER = HERE / "claims" / "tensors"


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_an_unfolding_is_the_matrix_along_its_axis(axis):
    X, y = np.random.default_rng(0).standard_normal((30, 2, 3, 4)), np.arange(30) % 3
    along = np.moveaxis(X, axis, 1)
    unfolded = UnfoldedSMR((2, 3, 4), rank=2, max_iter=5, axis=axis).fit(X.reshape(30, -1), y)
    matrix = SMR((along.shape[1], 24 // along.shape[1]), rank=2, max_iter=5).fit(
        along.reshape(30, -1), y
    )
    back = np.moveaxis(matrix.coef_.reshape(3, *along.shape[1:]), 1, axis)
    np.testing.assert_array_equal(unfolded.coef_, back.reshape(3, -1))
    np.testing.assert_allclose(
        unfolded.predict(X.reshape(30, -1)), matrix.predict(along.reshape(30, -1))
    )


def test_descriptors_and_views_become_arrays_cell_by_cell():
    rng = np.random.default_rng(0)
    volume = rng.integers(0, 256, (3, 32, 32, 8))
    X = np.zeros((3, 128, 85), int)
    for row, column, orientation in np.ndindex(32, 32, 8):
        cell, patch = row % 4 * 4 + column % 4, row // 4 * 8 + column // 4
        X[:, cell * 8 + orientation, 21 + patch] = volume[:, row, column, orientation]
    arranged, y = orientations({"X": X, "y": np.array([0, 9, 7])})
    np.testing.assert_array_equal(arranged, volume[[0, 2]])
    assert y.tolist() == [0, 7]
    views = {f"view_{i}": rng.random((3, 49)) for i in range(6)}
    moments, y = colour_moments({**views, "Y": np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1]])})
    assert moments[1, 4, 2, 3] == views["view_4"][2, 17]
    assert y.tolist() == [1, 2]


def test_the_page_follows_from_results(tmp_path):
    for name in ("planted.csv", "real.csv", "cost.csv"):
        shutil.copy(FOLDER / name, tmp_path)
    texts.write_texts(tmp_path)
    for name in ("README.md", "table.md"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (FOLDER / name).read_text(
            encoding="utf-8"
        )


def test_without_the_data_nothing_is_computed(tmp_path, monkeypatch):
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    with pytest.raises(
        SystemExit, match=r"tensors needs Scene_multilabel\.npz: set RAYSEL_DATA to its folder\.$"
    ):
        run.main(["--fast", "--output", str(tmp_path)])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_short_form_goes_on_from_half_of_its_units_and_a_cut_line(
    real_data, tmp_path, monkeypatch
):
    real_data("Scene_multilabel.npz")
    monkeypatch.setattr(
        "experiments.experiment._pool", cache(lambda: ThreadPoolExecutor(1))
    )  # starts no process
    run.main(["--fast", "--output", str(tmp_path)])
    folder = tmp_path / "tensors"
    assert (
        (folder / "README.md").read_text(encoding="utf-8").startswith("# When samples of order 3")
    )
    units, before = folder / "planted.jsonl", pd.read_csv(folder / "planted.csv")
    lines = units.read_bytes().splitlines(keepends=True)
    units.write_bytes(b"".join(lines[:2]) + lines[2][:30])
    again = planted.measure(Experiment("tensors", folder, fast=True, kind="claims"))
    assert len(units.read_bytes().splitlines()) == len(lines)
    again, before = (table.drop(columns="cpu_seconds") for table in (again, before))
    pd.testing.assert_frame_equal(again, before, rtol=1e-5, check_dtype=False)
