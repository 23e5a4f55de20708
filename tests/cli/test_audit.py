"""``raysel audit``: a data file's careless and honest scores, printed and written."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from raysel.cli.main import main


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 12)), columns=[f"gene{i}" for i in range(12)])
    frame["label"] = np.where(np.arange(60) % 2, "case", "control")
    frame["subject"] = np.arange(60) // 2
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_a_table_is_audited_and_the_picture_written(table, tmp_path, capsys):
    picture = tmp_path / "audit.png"
    words = ["audit", str(table), "--groups", "subject", "--permutations", "1", "-o", str(picture)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "12 features" in out
    assert "The careless accuracy is" in out
    assert "With permuted labels" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_real_table_is_prepared_as_a_draft_prepares_it(table, capsys):
    frame = pd.read_csv(table).rename(columns={"label": "diagnosis", "subject": "patient_id"})
    frame["sex"] = np.where(np.arange(60) % 3, "f", "m")
    frame["note"] = [f"seen on day {i}" for i in range(60)]
    frame.loc[::9, "gene3"] = np.nan
    frame.to_csv(table, index=False)
    assert main(["audit", str(table), "--permutations", "0", "--drop", "gene7"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "diagnosis, 2 classes" in out
    assert "patient_id, 30 kept whole in the folds" in out
    assert "note (text, unique in each row, e.g. 'seen on day 0')" in out
    assert "gene7" not in out.partition("method")[2]


def test_a_quantity_and_a_study_are_audited(table, tmp_path, capsys):
    frame = pd.read_csv(table).drop(columns=["label", "subject"])
    frame["target"] = np.exp(frame["gene0"]) + frame["gene1"]
    frame.assign(high=frame["target"] > 1).to_csv(table, index=False)
    words = ["--permutations", "0"]
    told = "Column 'high' nearly tells the quantity"
    assert main(["audit", str(table), *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "features, ridge" in out
    assert told in out
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: own\nseed: 3\n"
        f"dataset: {{path: {table}, task: regression, scaling: zscore}}\n"
        "solver: {name: f_test}\n"
        "evaluation: {estimator: ridge, n_features: [2, 5, 12], metric: neg_mae}\n"
        "cv: {outer: 3, inner: 2}\nsearch: {executor: serial}\n"
    )
    assert main(["audit", str(study), *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "The careless neg MAE is" in out
    assert told in out
    assert int(re.search(r"the best of (\d+) scores", out)[1]) % 3 == 0
    assert main(["audit", str(study), "--label", "target"]) == 2
    assert "set the key there" in capsys.readouterr().err


def test_what_cannot_be_audited_is_refused(table, capsys):
    assert main(["audit", str(table), "-o", "audit.txt"]) == 2
    assert "one of the suffixes" in capsys.readouterr().err
    assert main(["audit", str(table), "--label", "lable"]) == 2
