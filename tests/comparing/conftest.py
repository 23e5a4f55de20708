"""A working directory with a small data file, and one finished comparison."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from small_compare import write_comparison
from small_studies import CommandRun, write_digits

from raysel.tune import main


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small data file and a comparison on it."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_comparison(tmp_path / "few.yaml")
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """One comparison run by the command line, in a folder of its own with its MLflow store."""
    pytest.importorskip("raysel.comparison.export")
    folder = tmp_path_factory.mktemp("compared")
    write_digits(folder / "few.npz")
    write_comparison(folder / "few.yaml")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["few.yaml", "--output", "compared", "--set", "tracking.uri=sqlite:///mlflow.db"])
    return CommandRun(status, out.getvalue(), err.getvalue(), folder / "compared")
