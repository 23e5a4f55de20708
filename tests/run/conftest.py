"""A working directory with a small data file, one finished comparison, and one finished study."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

import pytest
from small_compare import write_comparison
from small_studies import CommandRun, raw_config, run_offline, write_digits

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


@pytest.fixture(scope="session")
def digits_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a finished study of SMR on a few digits."""
    folder = tmp_path_factory.mktemp("resampling")
    write_digits(folder / "few.npz")
    return run_offline(raw_config(folder / "few.npz", solver__space={"alpha": [0.1]}), folder / "study").path


@pytest.fixture
def copied(digits_study: Path, tmp_path: Path) -> Path:
    """Copy of its directory, for tests that write to it."""
    shutil.copytree(digits_study, tmp_path / "study", ignore=shutil.ignore_patterns(".lease"))
    return tmp_path / "study"
