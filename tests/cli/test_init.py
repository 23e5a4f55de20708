"""``python -m raysel.init``: what it prints and writes, and its errors."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_wine

from raysel.init import main
from raysel.tune import main as tune


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"}).to_csv("my wine.csv")
    return tmp_path / "my wine.csv"


def test_it_prints_what_it_took_and_the_study_passes_the_dry_run(table, capsys):
    assert main([str(table)]) == 0
    out = capsys.readouterr().out
    for words in ("cultivar", "13 features", "Unnamed: 0 (an index, 0 to 177)", "to check", "my-wine-study.yaml"):
        assert words in out
    assert tune(["my-wine-study.yaml", "--dry-run", "--set", "search.executor=serial"]) == 0
    assert "178 samples x 13 features" in capsys.readouterr().out


def test_it_never_overwrites(table, capsys):
    (table.parent / "s.yaml").write_text("mine")
    assert main([str(table), "-o", "s.yaml"]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert (table.parent / "s.yaml").read_text() == "mine"


def test_the_label_can_be_named(table, capsys):
    assert main([str(table), "--label", "cultivar", "-o", "s.yaml"]) == 0
    assert "to check" not in capsys.readouterr().out
    assert main([str(table), "--label", "culture", "-o", "t.yaml"]) == 2
    assert "did you mean `cultivar`?" in capsys.readouterr().err
    assert main(["none.csv", "-o", "t.yaml"]) == 2
    assert "no data file none.csv" in capsys.readouterr().err
