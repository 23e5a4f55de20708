"""What tests of data share."""

from __future__ import annotations

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory, without RAYSEL_DATA."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    return tmp_path
