"""A finished study on a few digits, computed in this process, and copies of it to spoil."""

from __future__ import annotations

import contextlib
import shutil

import pytest
from small_studies import raw_config, write_digits

import raysel


@pytest.fixture(scope="session")
def digits_study(tmp_path_factory):
    """Directory of a finished study of SMR on a few digits."""
    folder = tmp_path_factory.mktemp("resampling")
    write_digits(folder / "few.npz")
    raw = raw_config(folder / "few.npz", solver__space={"alpha": [0.1]})
    with contextlib.chdir(folder):
        return raysel.run_study(raw, output=folder / "study", progress=False).path


@pytest.fixture
def copied(digits_study, tmp_path):
    """Copy of that directory, for tests that write to it."""
    shutil.copytree(digits_study, tmp_path / "study")
    return tmp_path / "study"
