"""The map of selection probabilities shows the table of stability selection, cell by cell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_pages import page_of
from small_studies import raw_config, run_offline, write_digits

import raysel
from raysel.results.displays.probability import ProbabilityMap
from raysel.results.page import findings


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """A study of digits, whose left and right differ, with its stability selection."""
    folder = tmp_path_factory.mktemp("selected")
    write_digits(folder / "few.npz")
    raw = raw_config(folder / "few.npz", solver={"name": "fisher_score"})
    path = run_offline(raw, folder / "study").path
    raysel.stability_selection(path, subsamples=10, progress=False, executor="serial")
    return raysel.open_study(path)


def by_cell(result, column):
    """A column of the table of stability selection in the shape of an image."""
    table = pd.read_parquet(result.path / "stability/selection.parquet")
    image = np.zeros((8, 8))
    image[table["row"], table["column"]] = table[column]
    return image


def test_each_cell_has_its_probability_and_the_claimed_are_outlined(selected):
    shown = ProbabilityMap.from_facts(selected.facts)
    ax = Figure().subplots()
    shown.plot(ax)
    expected = by_cell(selected, "selection_probability")
    assert (expected != expected[:, ::-1]).any()
    drawn = ax.images[-1].get_array()
    np.testing.assert_array_equal(drawn.filled(0), expected)
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), expected == 0)
    assert ax.images[-1].get_clim() == (0, 1)
    claimed = np.pad(by_cell(selected, "selected").astype(bool), 1)
    n_sides = sum(
        int(np.diff(claimed.astype(int), axis=axis).astype(bool).sum()) for axis in (0, 1)
    )
    assert len(ax.collections[-1].get_segments()) == n_sides > 0
    for x, y, text in shown.cells():
        assert text.startswith(f"r{y}c{x}: selected by {expected[y, x]:.0%} of")


def test_the_report_shows_it_with_its_table(selected):
    page = page_of(findings.claims(selected))
    assert "Outlined: claimed, with a share of at least" in page.text
    table = page.downloads["probability.csv"].decode().splitlines()
    assert table[0] == "row,column,selection_probability,claimed"
    assert len(table) == 65


def test_a_study_without_stability_selection_or_images_has_none(finished, tmp_path):
    assert ProbabilityMap.from_facts(finished.facts) is None
    X = np.random.default_rng(0).normal(size=(40, 6))
    np.savez(tmp_path / "table.npz", X=X, y=np.arange(40) % 2)
    raw = raw_config(
        tmp_path / "table.npz",
        solver={"name": "fisher_score"},
        evaluation={"classifier": "knn", "n_features": [2], "references": False},
    )
    path = run_offline(raw, tmp_path / "study").path
    raysel.stability_selection(path, subsamples=4, progress=False, executor="serial")
    assert ProbabilityMap.from_facts(raysel.open_study(path).facts) is None
