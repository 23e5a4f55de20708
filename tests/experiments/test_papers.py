"""The experiments of the papers: scores by brute force, units that survive a kill, files from results.csv."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from experiments import run as command
from experiments.protocol import HERE, Experiment, Scores, Verdict, joined_verdict, verdict
from experiments.report import read_results, write_report
from raysel.numerics.rankings import redundancy


def test_optimistic_and_honest_scores_equal_their_definitions():
    rng = np.random.default_rng(0)
    scores = Scores(rng.random((4, 5, 3)), rng.random((4, 5, 3)))
    for s in range(3):
        means = [np.mean([scores.test[r, c, s] for r in range(4)]) for c in range(5)]
        assert_allclose(scores.optimistic[:, s].mean(), max(means))
        for r in range(4):
            c = max(range(5), key=lambda c: scores.inner[r, c, s])
            assert scores.honest[r, s] == scores.test[r, c, s]
    assert_allclose(scores.best.mean(), scores.test.mean(axis=0).max())
    one = Scores(scores.test[:, :1], scores.inner[:, :1])
    assert_allclose(one.optimistic, one.honest)


def rows(own: float, p: float) -> pd.DataFrame:
    """SMR against two rivals, of which B has the better inner score and A the better honest one."""
    table = {"method": ["SMR", "A", "B"], "honest": [own, 0.8, 0.7], "inner": [0.9, 0.6, 0.7], "p": [np.nan, 0.9, p]}
    return pd.DataFrame(table).assign(at="chosen")


@pytest.mark.parametrize(("own", "p", "holds"), [(0.9, 0.01, True), (0.9, 0.06, False), (0.75, 0.01, False)])
def test_a_method_holds_above_every_rival_and_apart_from_the_best_by_inner_score(own, p, holds):
    assert verdict(rows(own, p), "SMR", ["A", "B"]) == Verdict("B", 0.7, own, p, holds)


def test_verdicts_over_data_sets_are_joined():
    assert joined_verdict([True, True]) == "holds"
    assert joined_verdict([True, False]) == "holds on some sets"
    assert joined_verdict([False]) == "does not hold"
    assert joined_verdict([]) == "cannot be tested here"


def test_redundancy_equals_that_of_the_correlation_matrix():
    rng = np.random.default_rng(1)
    X, order = rng.random((30, 12)), rng.permutation(12)
    for n in (2, 5, 12):
        r = np.abs(np.corrcoef(X[:, order[:n]].T))
        assert_allclose(redundancy(X, order, [n]), r[np.triu_indices(n, 1)].mean())


@pytest.mark.parametrize("name", command.NAMES)
def test_tables_follow_from_results_and_published_figures(name, tmp_path):
    folder = HERE / "papers" / name
    if not (folder / "results.csv").exists():
        pytest.skip(f"{name} has no committed results")
    experiment = Experiment(name, tmp_path)
    write_report(tmp_path, command.module_of(name).report(read_results(folder), experiment.published))
    for file in ("README.md", "table.md"):
        assert (tmp_path / file).read_text() == (folder / file).read_text()


def test_published_figures_are_those_of_the_notes(real_data):
    text = (real_data("ORL.npz").parents[1] / "notes" / "papers.md").read_text()
    block = text[text.index("## Published figures") :]
    numbers = set(re.findall(r"(?<![\w.])(?:\d*\.\d+)(?=\(|\s|$)", block))
    for name in command.NAMES:
        figures = pd.read_csv(HERE / "papers" / name / "published.csv", dtype=str)["value"].dropna()
        missing = {f for f in figures if f.lstrip("0") not in numbers and f not in numbers}
        assert not missing, (name, missing)


def test_the_toy_ends_alike_when_it_goes_on_from_half_of_its_units_and_a_cut_line(real_data, tmp_path):
    real_data("ORL.npz")
    command.main(["smr-toy", "--fast", "--output", str(tmp_path)])
    file, results = tmp_path / "smr-toy" / "occlusion.jsonl", tmp_path / "smr-toy" / "results.csv"
    whole, lines = results.read_bytes(), file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:20])
    command.main(["smr-toy", "--fast", "--output", str(tmp_path)])
    assert results.read_bytes() == whole
    assert sorted(file.read_text().splitlines(keepends=True)) == sorted(lines)
    shares = pd.read_csv(results).query("measure == 'share of the best cells inside'")
    assert set(shares["method"]) == {"SMR", "RFS", "IG", "ReliefF", "Fisher"}
    assert shares["mean"].between(0, 1).all()


@pytest.mark.slow
def test_every_experiment_runs_in_its_short_form(real_data, tmp_path):
    real_data("ORL.npz")
    command.main(["all", "--fast", "--output", str(tmp_path)])
    for name in command.NAMES:
        assert (tmp_path / name / "README.md").exists()
