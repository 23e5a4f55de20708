"""The references that the command prints."""

from __future__ import annotations

import io
import re
from inspect import signature

import pytest
from rich.console import Console
from test_docstrings import entries

from raysel.base.registry import solver_class, solver_names
from raysel.cli.reference import (
    print_builtin_reference,
    print_config_reference,
    print_solver_reference,
)
from raysel.config import builtin_configs
from raysel.config.keys import comparison_reference, config_reference
from raysel.tune import main

ENTRIES = [*config_reference(), *comparison_reference()]


@pytest.mark.parametrize("width", [60, 66, 80, 200])
def test_the_keys_are_printed_in_columns_that_fit_the_width_and_lose_nothing(width):
    text = io.StringIO()
    print_config_reference(Console(file=text, width=width))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[1:] if not line.startswith(" ")] == [
        entry.key for entry in ENTRIES
    ]
    column = max(len(entry.key) for entry in ENTRIES)
    words = " ".join(" ".join(line[column:] for line in lines).split())
    if width > 60:  # no type is broken
        assert all(entry.description in words and entry.type in words for entry in ENTRIES)


def test_every_registered_method_is_listed_with_its_parameters():
    text = io.StringIO()
    print_solver_reference(Console(file=text, width=100))
    entries = {}
    for line in text.getvalue().splitlines()[1:]:
        if line and not line.startswith(" "):
            name = line.split()[0]
        entries[name] = f"{entries.get(name, '')} {line.strip()}"
    assert set(solver_names()) <= set(entries)
    for name in solver_names():
        supplied = {"random_state", "shape", "mask", "modalities", "tasks"}
        settable = set(signature(solver_class(name)).parameters) - supplied
        assert all(parameter in entries[name] for parameter in settable), name
    assert "several labels a sample" in entries["smml"]
    assert "search.method path" in entries["smml"]
    assert "data: tasks" not in entries["smr"]
    assert "data: tensor" in entries["smr"]
    assert {name for name in solver_names() if "reconstructed" in entries[name]} == {"dfs", "mcgf"}
    assert {name for name in solver_names() if "features of the test samples" in entries[name]} == {
        "mcgf"
    }
    assert "`" not in text.getvalue()


def test_one_method_is_explained_with_its_parameters_and_what_studies_search(capsys):
    assert main(["--list-solvers", "smr"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    described = entries(solver_class("smr").__doc__, "Parameters")
    for name in set(described) - {"shape", "mask", "random_state"}:
        kind, told = described[name]
        assert f"{name} {kind} {' '.join(told.replace('``', '').split())}" in text
    assert "shape tuple" not in text, "the data set gives it"
    assert "digits-smr: alpha (6 values from 0.003 to 0.9 in equal ratios), rank (" in text
    assert "doi:10.1109/TIP.2017.2713948" in text
    assert main(["--list-solvers", "svm"]) == 2
    assert "did you mean `linear_svm` or `kernel_svm`?" in capsys.readouterr().err


def test_one_section_is_printed_by_itself(capsys):
    assert main(["--help-config", "search"]) == 0
    named = [
        line.split()[0]
        for line in capsys.readouterr().out.splitlines()[1:]
        if not line.startswith(" ")
    ]
    assert named == [entry.key for entry in ENTRIES if entry.key.startswith("search.")]
    assert main(["--help-config", "serach"]) == 2
    assert "no section 'serach'; did you mean `search`?" in capsys.readouterr().err


def test_the_command_prints_them_and_starts_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--help-config"]) == 0
    assert "cv.outer" in capsys.readouterr().out
    assert main(["--list-solvers"]) == 0
    assert "semisupervised_mtda" in capsys.readouterr().out
    assert main(["--list"]) == 0
    assert "breast-cancer" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_every_builtin_study_is_listed_with_its_comment_and_its_data(tmp_path, monkeypatch):
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ORL.npz").touch()
    printed_text = io.StringIO()
    print_builtin_reference(Console(file=printed_text, width=200))
    text = " ".join(printed_text.getvalue().split())
    for name, path in builtin_configs().items():
        first = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert name in text
        assert re.split(r"(?<=[.?!])\s", first)[0] in text
    assert "data: wine (built in)" in text
    assert "study; data: ORL.npz (found)" in text
    assert "comparison; data: ORL.npz (found)" in text
    assert "UMIST.npz (not found)" in text
    assert "AR100_32x32.npz (not found), " in text
