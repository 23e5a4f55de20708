"""The files and functions of the page "Read it in an hour" are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def named_in(path: Path) -> set[str]:
    """Functions and classes of a file, and methods with their class."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def test_every_stop_is_a_file_with_that_function():
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    page = text.partition("## Read it in an hour")[2].partition("\n## ")[0]
    stops = re.findall(r"`(raysel/[\w/]+\.py)`,\s+`([\w.]+)`", page)
    assert len(stops) == 11  # stop 8 names two
    assert [stop for stop in stops if stop[1] not in named_in(ROOT / stop[0])] == []
