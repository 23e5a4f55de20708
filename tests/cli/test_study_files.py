"""``init`` and ``report``: what they print and write, and their errors."""

from __future__ import annotations

import shutil

import pytest
from report_pages import Page, run_kind
from sklearn.datasets import load_wine
from small_studies import raw_config, run_offline, write_digits

from raysel import select
from raysel.cli.main import main as run_command
from raysel.tune import main as tune


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"}).to_csv("my wine.csv")
    return tmp_path / "my wine.csv"


def test_it_prints_what_it_took_and_the_study_passes_the_dry_run(table, capsys):
    assert run_command(["init", str(table)]) == 0
    out = capsys.readouterr().out
    for words in (
        "cultivar",
        "13 features",
        "Unnamed: 0 (an index, 0 to 177)",
        "to check",
        "my-wine-study.yaml",
    ):
        assert words in out
    assert tune(["my-wine-study.yaml", "--dry-run", "--set", "search.executor=serial"]) == 0
    assert "178 samples x 13 features" in capsys.readouterr().out


def test_it_never_overwrites(table, capsys):
    (table.parent / "s.yaml").write_text("mine")
    assert run_command(["init", str(table), "-o", "s.yaml"]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert (table.parent / "s.yaml").read_text() == "mine"


def test_the_label_can_be_named(table, capsys):
    assert run_command(["init", str(table), "--label", "cultivar", "-o", "s.yaml"]) == 0
    assert "to check" not in capsys.readouterr().out
    assert run_command(["init", str(table), "--label", "culture", "-o", "t.yaml"]) == 2
    assert "did you mean `cultivar`?" in capsys.readouterr().err
    assert run_command(["init", "none.csv", "-o", "t.yaml"]) == 2
    assert "no data file none.csv" in capsys.readouterr().err


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return run_kind("matrix", tmp_path_factory.mktemp("command")).path


@pytest.mark.slow
def test_a_report_is_written_again(study, capsys):
    written = (study / "report.html").read_bytes()
    (study / "report.html").unlink()
    assert run_command(["report", str(study)]) == 0
    assert capsys.readouterr().out.strip() == str(study / "report.html")
    assert (study / "report.html").read_bytes() == written
    Page(written.decode())


@pytest.mark.slow
def test_a_report_of_another_name_is_the_same_and_a_selection_leaves_both(study, tmp_path):
    before = (study / "report.html").read_bytes()
    assert select.main([str(study), "--top", "5"]) == 0
    assert run_command(["report", str(study), "-o", str(tmp_path / "mail me.html")]) == 0
    assert (
        (study / "report.html").read_bytes() == (tmp_path / "mail me.html").read_bytes() == before
    )


def test_what_cannot_be_reported_is_said(tmp_path, capsys):
    write_digits(tmp_path / "few.npz")
    raw = raw_config(tmp_path / "few.npz", solver__space={"alpha": [0.1]})
    study = run_offline(raw, tmp_path / "study").path
    assert run_command(["report", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    shutil.copytree(study, tmp_path / "cut")
    journal = tmp_path / "cut" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:3]))
    assert run_command(["report", str(tmp_path / "cut")]) == 2
    told = capsys.readouterr().err
    assert "has not finished" in told
    assert "raysel tune --resume" in told
    assert run_command(["report", str(study), "-o", str(tmp_path / "missing" / "report.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
