"""``python -m raysel.report``: the file, where it is written, and what is said of what cannot be reported."""

from __future__ import annotations

import shutil

import pytest
from report_pages import Page, run_kind

from raysel import report, select


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return run_kind("matrix", tmp_path_factory.mktemp("command")).path


def test_it_writes_the_report_again(study, capsys):
    written = (study / "report.html").read_bytes()
    (study / "report.html").unlink()
    assert report.main([str(study)]) == 0
    assert capsys.readouterr().out.strip() == str(study / "report.html")
    assert (study / "report.html").read_bytes() == written
    Page(written.decode())


@pytest.mark.slow
def test_it_writes_to_a_file_of_another_name(study, tmp_path):
    assert report.main([str(study), "-o", str(tmp_path / "mail me.html")]) == 0
    assert (tmp_path / "mail me.html").read_bytes() == (study / "report.html").read_bytes()


@pytest.mark.slow
def test_a_selection_leaves_the_report_as_it_is(study):
    before = (study / "report.html").read_bytes()
    assert select.main([str(study), "--top", "5"]) == 0
    assert (study / "report.html").read_bytes() == before


def test_what_cannot_be_reported_is_said(study, tmp_path, capsys):
    assert report.main([str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    shutil.copytree(study, tmp_path / "cut")
    journal = tmp_path / "cut" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:3]))
    assert report.main([str(tmp_path / "cut")]) == 2
    told = capsys.readouterr().err
    assert "has not finished" in told
    assert "python -m raysel.tune --resume" in told
    assert report.main([str(study), "-o", str(tmp_path / "missing" / "report.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
