"""Imports run down the layers only, heavy libraries stay where they belong, and every module has its place and test."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
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
#: Functions that import a module by its name.
IMPORTERS = {"import_module", "__import__", "run_module", "resolve_name"}
#: Modules that import by names which are no literals, and the parts of raysel that these name.
BY_NAME = {
    "raysel": set(LAYERS) - {"raysel"},  # the public names, loaded when first used
    "raysel.base.registry": {"solvers", "baselines"},  # methods, and classes that the user names
    "raysel.study.machine": set(),  # versions of the numerical libraries
}
#: Parts whose every module has a test file of its own name.
TESTED = ["linalg", "solvers", "baselines", "search"]
#: The most modules that one folder holds.
MOST_MODULES = 12


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, anywhere in it, types only or not."""
    path = MODULES[name]
    return imports_of_file(path, name if path.name == "__init__.py" else name.rpartition(".")[0])


def imports_of_file(path: Path, package: str = "") -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports; relative imports are those of its package."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif isinstance(named := imported_by_name(node), ast.Constant):
            yield node.lineno, str(named.value)


def imported_by_name(node: ast.AST) -> ast.expr | None:
    """Argument that names the module, if the node calls a function that imports by name."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
    return node.args[0] if called in IMPORTERS else None


def part(name: str) -> str:
    """The part of the house that a name of raysel belongs to: a package, a module, or the public names."""
    pieces = name.split(".")
    inside = len(pieces) > 1 and (f"raysel.{pieces[1]}" in MODULES)
    return pieces[1] if inside else "raysel"


def module_of(target: str) -> str:
    """Module of raysel that an imported name lies in, or is."""
    while target not in MODULES:
        target = target.rpartition(".")[0]
    return target


def internal(name: str) -> Iterator[tuple[int, str]]:
    return ((line, target) for line, target in imports(name) if target.split(".")[0] == "raysel")


def test_every_part_has_a_layer():
    assert {part(name) for name in MODULES} == set(LAYERS)


def test_the_table_in_the_contributing_guide_is_that_of_the_layers():
    """Each line holds parts of one layer, lower ones above; the libraries that a line marks are imported only there."""
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    rooms = [re.findall(r"`(\w+)`", names) for names, _ in lines]
    assert sorted(name for names in rooms for name in names) == sorted(LAYERS)
    layers = [{LAYERS[name] for name in names} for names in rooms]
    assert all(len(own) == 1 for own in layers)
    assert [min(own) for own in layers] == sorted(LAYERS[names[0]] for names in rooms)
    for (names, holds), own in zip(lines, rooms, strict=True):
        files = {name for name in own if MODULES[f"raysel.{name}" if name != "raysel" else name].name != "__init__.py"}
        assert ("module" in names) == bool(files), names
        marked = {*re.findall(r"`(\w+)`", "".join(re.findall(r"\([^)]* only [^)]*\)", holds)))} & set(ONLY_IN)
        assert marked == {library for library, home in ONLY_IN.items() if home.split(".")[1] in own}, names
    for folder in re.findall(r"`(\w+/\w+)`", "".join(holds for _, holds in lines)):
        assert (PACKAGE / folder).is_dir()


def test_imports_run_down_only():
    wrong = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for name in MODULES
        for line, target in internal(name)
        if (own := part(name)) != (other := part(target)) and LAYERS[other] >= LAYERS[own]
    ]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    # Also not by imports inside functions or for types: graphlib names the modules of a circle.
    graph = {name: {module_of(target) for _, target in internal(name)} - {name} for name in MODULES}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_imports_by_name_are_known():
    found = {
        name
        for name, path in MODULES.items()
        for node in nodes(path)
        if (named := imported_by_name(node)) and not isinstance(named, ast.Constant)
    }
    assert found == set(BY_NAME)
    for name, parts in BY_NAME.items():
        named = {str(node.value).partition(":")[0] for node in nodes(MODULES[name]) if isinstance(node, ast.Constant)}
        assert {part(target) for target in named & set(MODULES)} - {part(name)} <= parts
    # What the registry imports by name lies below whatever uses the registry.
    users = {name for name in MODULES for _, target in internal(name) if module_of(target) == "raysel.base.registry"}
    highest = max(LAYERS[target] for target in BY_NAME["raysel.base.registry"])
    assert {name for name in users if LAYERS[part(name)] <= highest} == {"raysel.base.models"}


def test_a_test_of_imports_sees_what_there_is(tmp_path):
    source = """
def late():
    from ray import tune
    import importlib, mlflow.sklearn
    importlib.import_module("raysel.cli")
    __import__("yaml")
"""
    (tmp_path / "module.py").write_text(source)
    found = {target for _, target in imports_of_file(tmp_path / "module.py")}
    assert found == {"ray.tune", "importlib", "mlflow.sklearn", "raysel.cli", "yaml"}


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


def test_no_heavy_library_is_loaded_until_it_is_used():
    direct = {name for name in MODULES if {t.split(".")[0] for _, t in imports(name)} & {"ray", "mlflow"}}
    direct |= {name for name in MODULES if name.startswith(f"{ONLY_IN['mlflow']}.")}
    light = [name for name in MODULES if name not in direct and part(name) != "search"] + ["raysel.study.definition"]
    assert {"raysel", "raysel.tune", "raysel.select"} <= set(light)  # --help and --dry-run answer at once
    first = ["import sys, raysel.tune, raysel.select", "print({'matplotlib', 'optuna'} & set(sys.modules))"]
    rest = [*(f"import {name}" for name in light), "print({'ray', 'mlflow'} & set(sys.modules))"]
    script = "; ".join([*first, *rest])
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["set()", "set()"], 0), done.stderr


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
