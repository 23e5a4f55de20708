"""No sentence that raysel prints has more than 25 words: all are read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import raysel

PACKAGE = Path(raysel.__file__).parent
MOST_WORDS = 25
#: A sentence ends before the next one, at the end of a line, and behind the term of a list.
END = re.compile(r"(?<=[.:?!])\s+(?=[A-Z0-9{])|\n")
#: Patterns of messages are no sentences.
PATTERNS = {"evaluation/lost_trials.py"}


def written(node: ast.expr) -> str | None:
    """Text of a literal, with a word for each value that is put in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [written(part) if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return "".join(part or "" for part in parts)
    return None


def literals(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Literals below a node with their lines, without docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        text = written(child) if isinstance(child, ast.expr) else None
        if text is None:
            yield from literals(child)
        else:
            yield child.lineno, text


def too_long(text: str) -> list[str]:
    return [sentence for sentence in END.split(text) if len(sentence.split()) > MOST_WORDS]


def test_a_sentence_has_at_most_25_words():
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if name in PATTERNS:
            continue
        for line, text in literals(ast.parse(file.read_text(encoding="utf-8"))):
            found += [f"{name}:{line}: {sentence}" for sentence in too_long(text)]
    assert not found, "\n".join(found)


def test_a_long_sentence_is_found():
    long, short = "word " * 26, "Short. " * 30
    source = f'def f(x):\n    """{long}"""\n    raise ValueError(f"{long}{{x}}")\n    g("{short}")'
    ((line, text), (_, other)) = literals(ast.parse(source))
    assert line == 3
    assert too_long(text) == [f"{long}{{}}"]
    assert too_long(other) == []
