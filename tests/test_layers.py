"""Imports run down the layers only, and the heavy libraries stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "raysel"

#: The house: each part and its layer. A part imports itself and lower layers.
LAYERS = {
    "errors": -1,
    **dict.fromkeys(["arrays", "files", "plugins", "validation"], 0),
    **dict.fromkeys(["config", "linalg", "metrics"], 1),
    "data": 2,
    "base": 3,
    **dict.fromkeys(["solvers", "baselines"], 4),
    **dict.fromkeys(["cv", "ranking"], 5),
    **dict.fromkeys(["search", "tracking", "report"], 6),
    "study": 7,
    "execution": 8,
    "distributed": 9,
    "raysel": 10,  # the public names
    "cli": 11,
    **dict.fromkeys(["tune", "select"], 12),
}
#: What a library may be imported by: a package, or a single module.
ONLY_IN = {
    "ray": "raysel.distributed",
    "mlflow": "raysel.tracking.mlflow_runs",
    "pydantic": "raysel.config",
    "yaml": "raysel.config",
    "matplotlib": "raysel.report",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, anywhere in it, types only or not."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def part(name: str) -> str:
    """The part of the house that a name of raysel belongs to: a package, a module, or the public names."""
    pieces = name.split(".")
    inside = len(pieces) > 1 and (f"raysel.{pieces[1]}" in MODULES)
    return pieces[1] if inside else "raysel"


def internal(name: str) -> Iterator[tuple[int, str]]:
    return ((line, target) for line, target in imports(name) if target.split(".")[0] == "raysel")


def test_every_part_has_a_layer():
    assert {part(name) for name in MODULES} == set(LAYERS)


def test_imports_run_down_only():
    wrong = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for name in MODULES
        for line, target in internal(name)
        if (own := part(name)) != (other := part(target)) and LAYERS[other] >= LAYERS[own]
    ]
    assert not wrong


def test_a_heavy_library_has_one_home():
    wrong = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for name in MODULES
        for line, target in imports(name)
        if (home := ONLY_IN.get(target.split(".")[0])) and name != home and not name.startswith(f"{home}.")
    ]
    assert not wrong


def test_config_needs_nothing_but_errors():
    found = {part(target) for name in MODULES if part(name) == "config" for _, target in internal(name)}
    assert found == {"config", "errors"}


def test_nothing_imports_tests_or_experiments():
    roots = {target.split(".")[0] for name in MODULES for _, target in imports(name)}
    assert not roots & {"tests", "experiments", "conf", "conftest", "pytest", "hypothesis"}
    assert {"raysel", "numpy", *ONLY_IN} <= roots  # the walk sees what there is


def test_neither_ray_nor_mlflow_is_loaded_until_a_study_starts():
    direct = {name for name in MODULES if {t.split(".")[0] for _, t in imports(name)} & {"ray", "mlflow"}}
    light = [name for name in MODULES if name not in direct and part(name) != "search"] + ["raysel.study.definition"]
    assert {"raysel", "raysel.tune", "raysel.select"} <= set(light)  # --help and --dry-run answer at once
    script = "; ".join(
        ["import sys", *(f"import {name}" for name in light), "print({'ray', 'mlflow'} & set(sys.modules))"]
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("set()", 0), done.stderr
