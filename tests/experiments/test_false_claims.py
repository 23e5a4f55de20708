"""raysel says of each null and trap of the standing experiment what it must say."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2] / "experiments" / "claims" / "false-claims"

pytestmark = pytest.mark.slow


def test_what_is_said_of_nulls_and_traps_holds_and_is_the_committed_table(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))  # as for a script
    found = list(runpy.run_path(str(HERE / "run.py"))["claims"](1))
    assert [row["trap"] for row in found if row["holds"] != "1 of 1"] == []
    with (HERE / "claims.csv").open(newline="", encoding="utf-8") as file:
        committed = list(csv.DictReader(file))
    for row, before in zip(found, committed, strict=True):
        for column in ("trap", "expected", "chance", "verdict"):
            assert row[column] == before[column]
