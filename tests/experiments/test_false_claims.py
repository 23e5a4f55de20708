"""raysel says of each null and trap of the standing experiment what it must say."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2] / "experiments" / "claims" / "false-claims"
with (HERE / "claims.csv").open(newline="", encoding="utf-8") as file:
    COMMITTED = {row["trap"]: row for row in csv.DictReader(file)}

#: Traps that the script alone tries: they ask the same of other methods, shares and copies as the
#: others do.
OF_THE_SCRIPT = {
    "text of 30 values, linear SVM",
    "text with rare values, linear SVM",
    *(f"text of 10 values, {method}" for method in ("rfs", "glspfs", "mrmr")),
    "text of 30 values that tells, rfs",
    "a quantity: its quintiles",
    "a quantity: above its median",
    "a quantity: its copy in 30 % of the rows",
    "audit of a model alone",
    "centred batch",
}

pytestmark = pytest.mark.slow


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))  # as for a script
    return runpy.run_path(str(HERE / "run.py"))


def test_the_committed_table_has_every_trap(script):
    assert list(COMMITTED) == list(script["TRAPS"])
    assert set(COMMITTED) >= OF_THE_SCRIPT
    assert {row["holds"] for row in COMMITTED.values()} == {
        f"{script['SEEDS']} of {script['SEEDS']}"
    }


@pytest.mark.parametrize("trap", [name for name in COMMITTED if name not in OF_THE_SCRIPT])
def test_what_is_said_of_a_trap_holds_and_is_in_the_committed_table(script, trap):
    (found,) = script["claims"](1, [trap])
    assert found["holds"] == "1 of 1"
    for column in ("expected", "chance", "verdict"):
        assert found[column] == COMMITTED[trap][column]
