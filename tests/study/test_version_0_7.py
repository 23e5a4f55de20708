"""A study and a comparison of raysel 0.7, whose modules and commands had other places, are
opened and exported.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow.tracking import MlflowClient
from sklearn.datasets import load_iris

import raysel
from raysel import select, tune
from raysel.cli.main import main as run_command
from raysel.core.errors import DataError

STORED = Path(__file__).parent / "data/version-0.7"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(STORED, tmp_path, dirs_exist_ok=True)
    return tmp_path


def scores(study: Path) -> list[float]:
    """Test score of each outer fold at its number of features, as the journal has it."""
    records = [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()]
    refits = [
        record for record in records if record["kind"] == "refit" and record["fold"] != "final"
    ]
    return [record["test_scores"][record["position"]] for record in refits]


def test_the_ranking_is_exported_as_it_was(here):
    assert select.main(["study", "--output", "again"]) == 0
    before, after = (
        pd.read_csv(here / folder / "ranking.csv") for folder in ("study/ranking", "again")
    )
    pd.testing.assert_frame_equal(after, before, check_exact=True)
    before, after = (
        json.loads((here / folder / "manifest.json").read_text())
        for folder in ("study/ranking", "again")
    )
    # The interval is over the test samples, whose scores that version did not record.
    interval = after["scores"].pop("interval")
    assert interval["undefined_because"] == "scores of samples were not recorded"
    del before["scores"]["interval"]
    assert after["scores"] == before["scores"]
    assert after["stability"] == before["stability"]


def test_the_models_are_loaded(here):
    X, y = load_iris(return_X_y=True)
    plan = json.loads((here / "study/plan.json").read_text())
    test = plan["folds"][0]["test"]
    model = raysel.open_study("study", trust=True).fold_model("outer0")
    assert np.mean(model.predict(X[test]) == y[test]) == scores(here / "study")[0]
    for name in ("study", "comparison/svm"):
        assert np.mean(raysel.load_model(here / name, trust=True).predict(X) == y) > 0.9


def test_its_models_are_a_stranger_s_until_they_are_trusted_once(here, capsys):
    with pytest.raises(DataError):
        raysel.open_study("study").fold_model("outer0")
    digest = hashlib.sha256((here / "study/model.skops").read_bytes()).hexdigest()
    assert run_command(["trust", "study"]) == run_command(["trust", "comparison"]) == 0
    out = "".join(capsys.readouterr().out.split())
    assert all(text in out for text in ("byraysel0.7", digest, "folds/outer0.skops", "svm"))
    for name in ("study", "comparison/svm"):
        assert hasattr(raysel.load_model(here / name), "predict")
    assert hasattr(raysel.open_study("study").fold_model("outer0"), "predict")


def test_stability_selection_and_permutation_test_are_read(here):
    result = raysel.open_study("study")
    selection = json.loads((here / "study/stability/result.json").read_text())
    assert [
        result.feature_names[i] for i in np.flatnonzero(result.stability_selection.selected)
    ] == selection["selected"]
    permutation = json.loads((here / "study/permutation/result.json").read_text())
    read = result.permutation_test.to_json()
    for key in ("p_value", "n_permutations", "n_reached", "n_failed", "seed", "exchanged"):
        assert read[key] == permutation[key]
    assert run_command(["report", "study"]) == 0


def test_the_comparison_has_its_table(here):
    before = pd.read_csv(here / "comparison/comparison/comparison.csv")
    assert run_command(["compare", "comparison", "--output", "again"]) == 0
    after = pd.read_csv(here / "again/comparison.csv")
    pd.testing.assert_frame_equal(after, before, check_exact=True)


@pytest.mark.slow
def test_its_runs_are_uploaded(here):
    for line in (journal := here / "study/journal.jsonl").read_text().splitlines()[:1]:
        moved = line.replace("sqlite:////home/me/mlflow.db", f"sqlite:///{here}/mlflow.db")
        journal.write_text(journal.read_text().replace(line, moved))
    assert tune.main(["--replay", "study"]) == 0
    client = MlflowClient(f"sqlite:///{here}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("few").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    (study,) = (run for run in runs if run.data.tags.get("raysel.kind") == "study")
    assert study.data.metrics["test_accuracy"] == pytest.approx(
        np.mean(scores(here / "study")), abs=1e-4
    )
