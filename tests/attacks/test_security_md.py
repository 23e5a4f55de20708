"""SECURITY.md names a test for each promise, and every test of an attack stands behind a promise."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)


@cache
def attacks_of(path: Path) -> set[str]:
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_named_test_exists():
    missing = [f"{path}::{name}" for path, name in NAMED if name not in attacks_of(ROOT / path)]
    assert NAMED
    assert not missing


def test_every_attack_is_named():
    folder = ROOT / "tests/attacks"
    attacks = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in folder.glob("test_*.py")
        if path.name != Path(__file__).name
        for name in attacks_of(path)
    }
    assert not sorted(attacks - set(NAMED))


def test_every_promise_has_a_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| **")]
    promises = rows[1 : next(i for i, line in enumerate(rows) if line.startswith("| package"))]
    assert promises
    assert all(re.search(r"`tests/[\w/]+\.py::test_\w+`", line) for line in promises)


def test_the_advisories_of_ray_are_answered():
    for advisory in ("CVE-2023-48022", "CVE-2025-62593", "CVE-2026-27482"):
        assert advisory in TEXT


def test_the_bounds_are_those_of_the_package():
    dependencies = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for package, bound in re.findall(r"^\| (\w+) \| >= ([\d.]+) \|", TEXT, re.MULTILINE):
        assert re.search(rf'"{package}(\[[\w,]+\])?>={re.escape(bound)}"', dependencies), package
