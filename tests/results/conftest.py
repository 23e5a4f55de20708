"""A finished study of which several modules of tests read the result."""

from __future__ import annotations

import contextlib

import pytest
from small_studies import raw_config, run_offline, write_digits

from raysel.results.result import StudyResult


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> StudyResult:
    """A study of digits with three outer folds and six configurations."""
    folder = tmp_path_factory.mktemp("finished")
    write_digits(folder / "few.npz")
    with contextlib.chdir(folder):
        return run_offline(raw_config(folder / "few.npz", cv__outer=3), folder / "study")
