"""``raysel audit``: a data file's careless and honest scores, printed and written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from raysel.cli.main import main


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 30)), columns=[f"gene{i}" for i in range(30)])
    frame["label"] = np.where(np.arange(60) % 2, "case", "control")
    frame["subject"] = np.arange(60) // 2
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_a_table_is_audited_and_the_picture_written(table, tmp_path, capsys):
    picture = tmp_path / "audit.png"
    words = ["audit", str(table), "--groups", "subject", "--permutations", "1", "-o", str(picture)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "30 features" in out
    assert "The careless accuracy is" in out
    assert "On permuted labels" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_audited_is_refused(table, capsys):
    assert main(["audit", str(table), "-o", "audit.txt"]) == 2
    assert "one of the suffixes" in capsys.readouterr().err
    assert main(["audit", str(table), "--label", "lable"]) == 2
    frame = pd.read_csv(table)
    frame.assign(site=np.where(np.arange(60) % 3, "north", "south")).to_csv(table, index=False)
    assert main(["audit", str(table)]) == 2
    said = capsys.readouterr().err
    assert "column 'site' holds 'south'" in said
    assert "An audit is no study and prepares no columns: leave them out by --drop NAME" in said
