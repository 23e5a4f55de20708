"""Density of the code, the same before and after a change: ``python tests/code_density.py [ROOT]``.

For each package of `raysel/`:

code, tokens
    Lines that hold a token, and tokens, outside comments and docstrings; a string is one token. A
    docstring is any string that stands alone as a statement.
conditional
    Conditional expressions, those over two lines or more, and those inside another.
comprehensions
    Comprehensions with more than one ``for``, or more than one ``if``.
long
    Lines of more than 100 columns, of any kind.
positional
    Calls with seven or more arguments by position.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = (
    *("code", "tokens", "conditional", "over lines", "nested"),
    *("comprehensions", "long", "positional"),
)
#: Tokens that are no code.
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def dense_expressions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name of the column and line of each expression that is counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield "conditional", node.lineno
            if node.end_lineno != node.lineno:
                yield "over lines", node.lineno
            if any(isinstance(part, ast.IfExp) and part is not node for part in ast.walk(node)):
                yield "nested", node.lineno
        elif isinstance(node, COMPREHENSIONS):
            if len(node.generators) > 1 or len(node.generators[0].ifs) > 1:
                yield "comprehensions", node.lineno
        elif isinstance(node, ast.Call):
            plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
            if len(plain) >= 7:
                yield "positional", node.lineno


def docstring_rows(tree: ast.AST) -> set[int]:
    """Lines of the strings that stand alone."""
    rows: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            rows |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return rows


def density(text: str) -> Counter[str]:
    """Counts of one file."""
    tree = ast.parse(text)
    counts = Counter(name for name, _ in dense_expressions(tree))
    counts["long"] = sum(len(line) > 100 for line in text.splitlines())
    documented, rows = docstring_rows(tree), set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.start[0] in documented
        if token.type in LAYOUT or is_docstring:
            continue
        counts["tokens"] += 1
        rows |= set(range(token.start[0], token.end[0] + 1))
    counts["code"] = len(rows)
    return counts


def main() -> None:
    """Print the counts."""
    package = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT) / "raysel"
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for path in package.rglob("*.py"):
        place = path.relative_to(package).parts
        table[place[0] if len(place) > 1 else "raysel"] += density(path.read_text("utf-8"))
    total = sum(table.values(), Counter[str]())
    print(f"{'':12}" + "".join(f"{name:>15}" for name in COLUMNS))
    for name, counts in [*sorted(table.items()), ("all", total)]:
        print(f"{name:12}" + "".join(f"{counts[column]:15}" for column in COLUMNS))
    print(f"tokens a code line: {total['tokens'] / total['code']:.2f}")
    print(
        f"conditional expressions in 1000 code lines: "
        f"{1000 * total['conditional'] / total['code']:.1f}"
    )


if __name__ == "__main__":
    main()
