"""A working directory with a small data file, and one finished comparison."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from small_compare import write_comparison
from small_studies import CommandRun, write_digits

from raysel.run import members
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.upload_process import MemberUpload
from raysel.tune import main


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small data file and a comparison on it."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_comparison(tmp_path / "few.yaml")
    return tmp_path


class NoUpload:
    """Stands in for the process that uploads to MLflow, which takes seconds to start."""

    def __init__(self, directory: StudyDirectory) -> None:
        pass

    def follow(self, _: StudyDirectory) -> MemberUpload:
        return MemberUpload()

    def finish(self, patience: float = 20.0) -> None:
        pass


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload nothing to MLflow."""
    monkeypatch.setattr(members, "MLflowUploader", NoUpload)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """One comparison run by the command line, in a folder of its own with its MLflow store."""
    folder = tmp_path_factory.mktemp("compared")
    write_digits(folder / "few.npz")
    write_comparison(folder / "few.yaml")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["few.yaml", "--output", "compared", "--set", "tracking.uri=sqlite:///mlflow.db"])
    return CommandRun(status, out.getvalue(), err.getvalue(), folder / "compared")
