"""A dotted name imports code: it is taken from the user, never from a study's directory."""

from __future__ import annotations

import sys

import pytest
from small_studies import write_digits, write_yaml

from raysel.tune import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "foreign_code.py").write_text("from sklearn.svm import LinearSVC\nopen('ran', 'w').close()")
    write_yaml(tmp_path / "few.yaml")
    (tmp_path / "study").mkdir()
    (tmp_path / "study/config.yaml").write_text((tmp_path / "few.yaml").read_text())
    write_yaml(tmp_path / "study/config.yaml", solver={"name": "foreign_code.LinearSVC"})
    yield tmp_path
    sys.modules.pop("foreign_code", None)


def test_a_directory_s_dotted_name_is_refused_before_it_is_imported(folder, capsys):
    assert main(["--resume", "study", "--dry-run"]) == 2
    message = capsys.readouterr().err
    assert "foreign_code.LinearSVC imports code" in message
    assert "name the configuration file again" in message
    assert not (folder / "ran").exists()


def test_the_user_may_name_it(folder):
    write_yaml(folder / "own.yaml", solver={"name": "foreign_code.LinearSVC"})
    assert main(["own.yaml", "--dry-run", "--quiet"]) == 0
    assert (folder / "ran").exists()


@pytest.mark.parametrize("name", ["sklearn.svm.LinearSVC", "linear_svm"])
def test_what_imports_nothing_of_others_is_taken_from_a_directory(name, folder, capsys):
    write_yaml(folder / "study/config.yaml", solver={"name": name})
    main(["--resume", "study", "--dry-run"])
    assert "imports code" not in capsys.readouterr().err
