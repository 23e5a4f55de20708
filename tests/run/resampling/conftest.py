"""A finished study on a few digits, and copies of it to spoil."""

from __future__ import annotations

import shutil

import pytest
from quiet_studies import run_quietly
from small_studies import raw_config, write_digits

from raysel.run.resampling.finished import finished_study


@pytest.fixture(scope="session")
def digits_study(tmp_path_factory):
    """Directory of a finished study of SMR on a few digits."""
    folder = tmp_path_factory.mktemp("resampling")
    write_digits(folder / "few.npz")
    return run_quietly(raw_config(folder / "few.npz", solver__space={"alpha": [0.1]}), folder / "study")


@pytest.fixture(scope="module")
def finished(digits_study):
    """That study restored for computing."""
    with finished_study(digits_study) as found:
        yield found


@pytest.fixture
def copied(digits_study, tmp_path):
    """Copy of its directory, for tests that write to it."""
    shutil.copytree(digits_study, tmp_path / "study", ignore=shutil.ignore_patterns(".lease"))
    return tmp_path / "study"
