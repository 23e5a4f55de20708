"""A line of the package holds one thought, in what the linter does not count."""

from __future__ import annotations

import ast

from code_density import ROOT, dense_expressions


def test_conditions_stand_on_one_line_and_seven_arguments_go_by_keyword():
    """A comprehension has one ``for``; of arguments by position no type checker tells two apart."""
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / "raysel").rglob("*.py"))
        for name, line in dense_expressions(ast.parse(path.read_text("utf-8")))
        if name != "conditional"
    ]
    assert found == []
