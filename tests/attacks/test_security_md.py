"""SECURITY.md names tests and bounds of dependencies that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_named_tests_exist():
    places = re.findall(r"`((?:\w+/)+(?:test_\w+\.py)?|test_\w+\.py)`", TEXT)
    assert len(places) > 10
    assert [place for place in places if not (ROOT / "tests" / place).exists()] == []


def test_the_bounds_are_those_of_the_package():
    dependencies = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = re.findall(r"^\| (\w+) \| >= ([\d.]+) \|", TEXT, re.MULTILINE)
    assert bounds
    for package, bound in bounds:
        assert re.search(rf'"{package}(\[[\w,]+\])?>={re.escape(bound)}"', dependencies), package
