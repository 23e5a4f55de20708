"""Imports run down the layers only, heavy libraries stay where they belong, and every module has its place and test."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "raysel"

#: The house: each part and its layer. A part imports itself and lower layers.
LAYERS = {
    **dict.fromkeys(["credentials", "printing"], -3),
    **dict.fromkeys(["clock", "errors", "version"], -2),
    **dict.fromkeys(["arrays", "files", "limits", "plugins", "validation"], -1),
    "storage": 0,
    **dict.fromkeys(["config", "linalg", "metrics", "statistics"], 1),
    "data": 2,
    "base": 3,
    **dict.fromkeys(["solvers", "baselines"], 4),
    **dict.fromkeys(["cv", "ranking"], 5),
    **dict.fromkeys(["search", "tracking", "inspection"], 6),
    "display": 7,
    "study": 8,
    "results": 9,
    "comparison": 10,
    "execution": 11,
    "distributed": 12,
    **dict.fromkeys(["testing", "launch"], 13),
    **dict.fromkeys(["api", "comparison_run", "draft"], 14),
    "resampling": 15,
    "raysel": 16,  # the public names
    "cli": 17,
    **dict.fromkeys(
        ["tune", "init", "select", "compare", "stability", "permute", "report", "upload"], 18
    ),  # the commands
}
COMMANDS = [name for name, layer in LAYERS.items() if layer == max(LAYERS.values())]
#: What a library may be imported by: a package, or a single module.
ONLY_IN = {
    "ray": "raysel.distributed",
    "mlflow": "raysel.tracking.mlflow_runs",
    "pydantic": "raysel.config",
    "yaml": "raysel.config",
    "matplotlib": "raysel.display",
    "jinja2": "raysel.display",
    "pytest": "raysel.testing",
}
#: Parts whose every module has a test file of its own name.
TESTED = ["linalg", "solvers", "search"]
#: The most modules that one folder holds.
MOST_MODULES = 12


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, anywhere in it, types only or not."""
    path = MODULES[name]
    return imports_of_file(path, name if path.name == "__init__.py" else name.rpartition(".")[0])


def imports_of_file(path: Path, package: str = "") -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports; relative imports are those of its package."""
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


def test_config_needs_nothing_but_errors_and_uris():
    targets = {target for name in MODULES if part(name) == "config" for _, target in internal(name)}
    assert {part(target) for target in targets} == {"config", "credentials", "errors", "storage"}
    assert {target for target in targets if part(target) == "storage"} == {
        "raysel.storage.location.set_credentials_aside"
    }


def test_nothing_imports_tests_or_experiments():
    roots = {target.split(".")[0] for name in MODULES for _, target in imports(name)}
    assert not roots & {"tests", "experiments", "conf", "conftest", "hypothesis"}
    assert {"raysel", "numpy", *ONLY_IN} <= roots  # the walk sees what there is


def test_neither_ray_nor_mlflow_is_loaded_until_a_study_starts():
    direct = {name for name in MODULES if {t.split(".")[0] for _, t in imports(name)} & {"ray", "mlflow"}}
    direct |= {name for name in MODULES if name.startswith(f"{ONLY_IN['mlflow']}.")}
    light = [name for name in MODULES if name not in direct and part(name) != "search"] + ["raysel.study.definition"]
    assert {"raysel", "raysel.tune", "raysel.select"} <= set(light)  # --help and --dry-run answer at once
    script = "; ".join(
        ["import sys", *(f"import {name}" for name in light), "print({'ray', 'mlflow'} & set(sys.modules))"]
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("set()", 0), done.stderr


@pytest.mark.parametrize("room", TESTED)
def test_every_module_is_imported_by_the_test_file_of_its_name(room):
    missing = []
    for name, path in MODULES.items():
        if part(name) != room or path.name == "__init__.py":
            continue
        folder = path.parent.relative_to(PACKAGE)
        test = ROOT / "tests" / folder / f"test_{path.stem}.py"
        found = [target for _, target in imports_of_file(test)] if test.is_file() else []
        if not any(target == name or target.startswith(f"{name}.") for target in found):
            missing.append(f"{test.relative_to(ROOT)} does not exist or does not import {name}")
    assert not missing


def test_the_listed_packages_are_those_there_are():
    with (ROOT / "pyproject.toml").open("rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    elsewhere = setuptools["package-dir"]
    assert all((ROOT / folder).is_dir() for folder in elsewhere.values())
    folders = {module_name(path) for path in PACKAGE.rglob("__init__.py")}
    assert sorted(setuptools["packages"]) == sorted(folders | set(elsewhere))
    # A folder of modules without an __init__.py would be left out of the wheel.
    assert {path.parent for path in PACKAGE.rglob("*.py")} == {path.parent for path in PACKAGE.rglob("__init__.py")}


def test_no_folder_holds_too_many_modules():
    # Commands do not count: `python -m raysel.NAME` finds them in the package's own folder only.
    paths = [path for name, path in MODULES.items() if part(name) not in COMMANDS]
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in paths)
    assert not {folder: count for folder, count in counts.items() if count > MOST_MODULES}


def test_a_solver_loads_no_library_that_scikit_learn_does_not_load():
    script = """
import sys
import sklearn.callback, sklearn.feature_selection, sklearn.linear_model, sklearn.svm, sklearn.utils.estimator_checks
before = {name.partition(".")[0] for name in sys.modules}
import raysel
raysel.SMR, raysel.SMML, raysel.MTDA
print({name.partition(".")[0] for name in sys.modules} - before - set(sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("{'raysel'}", 0), done.stderr
