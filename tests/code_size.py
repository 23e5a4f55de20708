"""Measures of the code, the same before and after a change: ``python tests/code_size.py [ROOT]
[--collect] [--walk]``.

Lines
    A code line holds code other than a docstring. A docstring is any string that stands alone as a
    statement, and all of its lines count. A comment line holds a comment only. The rest is blank.
Rooms
    A room is a package or a module directly in ``raysel/``. ``raysel/__init__.py`` is the room
    ``raysel``, with the modules that do nothing but start a command of ``raysel/cli``; the whole of
    ``experiments/`` is one more. An arrow is an ordered pair of rooms of which the first imports
    the second, anywhere in a file, for types only or not; an import by name is none. A circle is a
    group of rooms, or of files, that import each other. The floor of a room is the number of rooms
    in the longest chain of arrows down from it, those of circles left out. Up is an arrow to a room
    on the same or a higher floor. Folders are those of ``raysel/`` at any depth that hold modules.
Walk
    With ``--walk``, ``run_study`` runs a small study in one process, whose main thread is watched.
    Files are those of raysel with a function, or a method, that is handed the configuration: an
    object of `CARRIERS`, or the mapping itself. Climbs are the different steps from one such call
    to the next that lead to a file on a higher floor.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

#: Paths of the code that presents results, in the package; edit them when rooms are renamed or
#: moved.
PRESENTING = (
    *("results", "cli", "tracking/mlflow_view.py"),
    *("display", "comparison"),  # packages until version 0.7
    *("tune.py", "select.py"),
)
#: Names of the classes that hold the configuration of a study.
CARRIERS = {"StudyConfig", "Study"}
Graph = dict[str, set[str]]


def lines(path: Path) -> Counter[str]:
    """Code, docstring and comment lines of a file, and the file."""
    text = path.read_text(encoding="utf-8")
    code, comments, docs = set(), set(), set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docs |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        rows = comments if token.type == tokenize.COMMENT else code
        rows |= set(range(token.start[0], token.end[0] + 1)) if token.string.strip() else set()
    code -= docs | {number for number, line in enumerate(text.splitlines(), 1) if not line.strip()}
    return Counter(
        code=len(code), docstrings=len(docs), comments=len(comments - code - docs), files=1
    )


def modules(root: Path) -> dict[str, Path]:
    """Path of each module of the package by its full name, and of each file of the experiments
    by its path.
    """
    found = {}
    for path in sorted((root / "raysel").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found | {str(path): path for path in sorted((root / "experiments").rglob("*.py"))}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that a file imports; all imports are absolute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for pieces in (f"{source}{alias.name}".split(".") for alias in node.names):
                ends = (".".join(pieces[:end]) for end in range(len(pieces), 0, -1))
                yield from itertools.islice((end for end in ends if end in known), 1)


def room(name: str, path: Path, known: dict[str, Path]) -> str:
    """Room that a module of the package, or a file of the experiments, belongs to."""
    if not name.startswith("raysel"):
        return "experiments"
    targets = set(imported(path, known))
    starts_command = (
        name.count(".") == 1 and targets and all(one.startswith("raysel.cli.") for one in targets)
    )
    return "raysel" if starts_command else (name.split(".") * 2)[1]


def grouped(graph: Graph, room: Callable[[str], str]) -> Graph:
    """Arrows among rooms, from those among files."""
    rooms: Graph = {room(name): set() for name in graph}
    for name, targets in graph.items():
        rooms[room(name)] |= {room(target) for target in targets} - {room(name)}
    return rooms


def reached(graph: Graph, start: str) -> set[str]:
    """Rooms that a room reaches by one arrow or more."""
    seen, new = set(), graph[start]
    while new:
        seen |= new
        new = set().union(*(graph[room] for room in new)) - seen
    return seen


def circles(graph: Graph) -> set[frozenset[str]]:
    """Groups that import each other."""
    reach = {name: reached(graph, name) for name in graph}
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}


def floors(graph: Graph, arrows: list[tuple[str, str]]) -> dict[str, int]:
    """Floor of each room."""
    found, down = dict.fromkeys(graph, 1), [(a, b) for a, b in arrows if a not in reached(graph, b)]
    for _ in graph:
        for a, b in down:
            found[a] = max(found[a], found[b] + 1)
    return found


def walk(root: Path, known: dict[str, Path]) -> list[str]:
    """Follow the configuration through a small study: modules that are handed it, in their
    order.
    """
    sys.path.insert(0, str(root))
    names, visits = {str(path): name for name, path in known.items()}, []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        small = {
            "solver.space": {"alpha": [0.1]},
            "cv.outer": 2,
            "cv.inner": 2,
            "search.executor": "serial",
        }
        small |= {
            "solver.params.max_iter": 3,
            "pictures": [],
            "tracking.uri": f"sqlite:///{folder}/mlflow.db",
        }

        def watch(frame: FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            if event == "call" and (name := names.get(code.co_filename)):
                values = map(
                    frame.f_locals.get,
                    code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
                )
                if any(value is small or type(value).__name__ in CARRIERS for value in values):
                    visits.append(name)

        sys.setprofile(watch)
        importlib.import_module("raysel").run_study(
            "digits-smr", small, output=f"{folder}/study", progress=False
        )
        sys.setprofile(None)
    return visits


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(description="Print measures of the code.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--collect", action="store_true", help="count the tests of a quick run")
    parser.add_argument(
        "--walk", action="store_true", help="follow the configuration through a small study"
    )
    options = parser.parse_args()
    root = options.root.resolve()
    known = modules(root)
    house = {name: room(name, path, known) for name, path in known.items()}
    sizes = {name: lines(path) for name, path in known.items() if house[name] != "experiments"}
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for name, size in sizes.items():
        table[house[name]].update(size)
    print(f"{'':18}{'code':>8}{'docstrings':>12}{'comments':>10}{'files':>7}{'code a file':>13}")
    for label, size in [*sorted(table.items()), ("all", sum(table.values(), Counter[str]()))]:
        counts = f"{size['code']:8}{size['docstrings']:12}{size['comments']:10}{size['files']:7}"
        print(f"{label:18}{counts}{size['code'] / size['files']:13.1f}")
    files = {name: set(imported(path, known)) - {name} for name, path in known.items()}
    rooms = grouped(files, house.__getitem__)
    arrows = [(a, b) for a, targets in rooms.items() for b in targets]
    floor = floors(rooms, arrows)
    print(
        "rooms of raysel:",
        len(table),
        "and with the experiments:",
        len(rooms),
        "on floors:",
        max(floor.values()),
    )
    up = sum(floor[a] <= floor[b] for a, b in arrows)
    print(
        f"arrows: {len(arrows)} up: {up} circles of rooms: {len(circles(rooms))} of files:"
        f" {len(circles(files))}"
    )
    folders = grouped({name: files[name] for name in sizes}, lambda name: str(known[name].parent))
    print(
        "folders of raysel:",
        len(folders),
        "and arrows among them:",
        sum(map(len, folders.values())),
    )
    homes = [root / "raysel" / place for place in PRESENTING]
    shown = [
        size
        for name, size in sizes.items()
        if any(known[name].is_relative_to(home) for home in homes)
    ]
    print(
        "presents results:",
        sum(size["code"] for size in shown),
        "code lines in",
        len(shown),
        "files",
    )
    tests = [path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py")]
    functions = len(re.findall(r"^ *def test_", "\n".join(tests), re.MULTILINE))
    print(
        f"tests: {sum(text.count(chr(10)) for text in tests)} lines, {len(tests)} files,"
        f" {functions} functions"
    )
    if options.collect:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        print(
            subprocess.run(
                command, cwd=root, capture_output=True, text=True, check=False
            ).stdout.splitlines()[-1]
        )
    if options.walk:
        visits = walk(root, known)
        climbs = {
            (a, b) for a, b in itertools.pairwise(visits) if floor[house[a]] < floor[house[b]]
        }
        print("run_study(config):", len(set(visits)), "files,", len(climbs), "climbs")


if __name__ == "__main__":
    main()
