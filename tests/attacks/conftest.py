"""A finished study of a stranger, of which every test changes a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack_studies import copied
from small_studies import raw_config, run_offline, write_digits


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study, run in this process without MLflow."""
    folder = tmp_path_factory.mktemp("honest")
    write_digits(folder / "few.npz")
    space = {"alpha": [0.1], "rank": [1]}
    run_offline(
        raw_config(
            folder / "few.npz", solver={"name": "smr", "params": {"max_iter": 3}, "space": space}
        ),
        folder / "study",
    )
    return folder / "study"


@pytest.fixture
def stranger(honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the study; the working directory is its parent."""
    monkeypatch.chdir(tmp_path)
    return copied(honest, tmp_path / "study")
