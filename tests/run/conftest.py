"""A working directory with a small data file, one finished comparison, and one finished study."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_comparisons import write_comparison_config
from small_studies import CommandRun, NoUpload, raw_config, run_offline, write_digits

from raysel.run import members
from raysel.tune import main


@contextlib.contextmanager
def without_reports() -> Iterator[None]:
    """Write no report.html, whose figures take seconds: tests/results has the tests of reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raysel.results.page.report.write_final_report", lambda _: None)
        patch.setattr(members, "write_comparison_report", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _no_reports() -> Iterator[None]:
    with without_reports():
        yield


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small data file and a comparison on it."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_comparison_config(tmp_path / "few.yaml")
    return tmp_path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload nothing to MLflow, and write no tables and figures of a comparison."""
    monkeypatch.setattr(members, "MLflowUploader", NoUpload)
    monkeypatch.setattr(members, "export_comparison", lambda *_: None)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """One comparison run by the command line, in a folder of its own with its MLflow store."""
    folder = tmp_path_factory.mktemp("compared")
    write_digits(folder / "few.npz")
    write_comparison_config(folder / "few.yaml")
    out, err = io.StringIO(), io.StringIO()
    with (
        without_reports(),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = main(
            ["few.yaml", "--output", "compared", "--set", "tracking.uri=sqlite:///mlflow.db"]
        )
    return CommandRun(status, out.getvalue(), err.getvalue(), folder / "compared")


@pytest.fixture(scope="session")
def digits_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a finished study of SMR on a few digits."""
    folder = tmp_path_factory.mktemp("resampling")
    write_digits(folder / "few.npz")
    with without_reports():
        return run_offline(
            raw_config(folder / "few.npz", solver__space={"alpha": [0.1]}), folder / "study"
        ).path


@pytest.fixture
def copied(digits_study: Path, tmp_path: Path) -> Path:
    """Copy of its directory, for tests that write to it."""
    shutil.copytree(digits_study, tmp_path / "study", ignore=shutil.ignore_patterns(".lease"))
    return tmp_path / "study"
