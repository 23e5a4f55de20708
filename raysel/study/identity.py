"""Versions of the code that a study's numbers depend on; runs with the same versions give the same numbers."""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from raysel.study.machine import machine_versions
from raysel.version import __version__

#: Modules that compute the numbers of every study, besides the module of the solver.
_ROOTS = (
    "raysel.cv.lockstep",
    "raysel.cv.model.noise",
    "raysel.cv.plan",
    "raysel.cv.refit",
    "raysel.cv.scoring",
    "raysel.cv.selection",
    "raysel.data.loading",
    "raysel.data.scaling",
    "raysel.execution.computing",
    "raysel.execution.path_records",
    "raysel.execution.trials",
    "raysel.search.configurations",
    "raysel.search.halving",
    "raysel.search.nested",
    "raysel.search.samplers",
)
#: Modules that connect the others; hashed alone, because their imports reach all methods and what computes no number.
_WIRING = (
    "raysel.config.space",
    "raysel.execution.trial_plan",
    "raysel.study.definition",
)
#: Packages of raysel whose code can change a number; imports of other packages are not followed.
_COUNTED = ("base", "baselines", "cv", "data", "linalg", "metrics", "search", "solvers")

#: Libraries whose version can change the last bits of a number.
_NUMERICAL = ("numpy", "scipy", "scikit-learn")
#: Parts of `machine_versions` besides the libraries; a study may be resumed with others, which is remarked.
MACHINE = ("blas", "simd", "libc")
#: Libraries whose version is recorded for information.
_INFORMATIVE = ("ray", "mlflow", "pyarrow")


def versions(code: Sequence[Callable[..., Any]], *, uses_optuna: bool) -> dict[str, str]:
    """Return the versions of all code that a study runs."""
    names = [*_NUMERICAL, *(("optuna",) if uses_optuna else ()), *_INFORMATIVE]
    own = {"raysel": __version__, "numbers": numbers_hash(code), "python": platform.python_version()}
    machine = machine_versions()
    return own | {name: version(name) for name in names} | {name: machine[name] for name in MACHINE}


def changed_versions(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """List the versions that differ and can change a study's numbers."""
    for name in ("python", *_NUMERICAL, "optuna"):
        if name in now and before.get(name) != now[name]:
            yield f"{name}: {before.get(name)} -> {now[name]}"
    had, has = before.get("numbers"), now.get("numbers")
    if had != has:
        written, runs = before.get("raysel"), now.get("raysel")
        remedy = "" if written == runs else f"; to finish the study, install raysel {written}"
        yield (
            "numbers: the source code of the solver, or of the validation, search or data modules, has changed "
            f"({had} by raysel {written} -> {has} by raysel {runs}){remedy}"
        )


def numbers_hash(code: Sequence[Callable[..., Any]]) -> str:
    """Hash the source code of all modules that compute a study's numbers.

    Comments, docstrings, formatting and the path of the installation do not change the hash. For a solver of another
    distribution the name and version of that distribution are hashed; if it has none, the source of its module.
    """
    names = {base.__module__ for item in code for base in getattr(item, "__mro__", (item,))}
    own = {name for name in names if name in _own_modules()}
    found = hashlib.sha256()
    for name in sorted(source_modules([*_ROOTS, *own]) | set(_WIRING)):
        found.update(f"{name} {_source_hash(_own_modules()[name])}\n".encode())
    for name in sorted(names - own - {"builtins", "abc", "typing"}):
        found.update(f"{_foreign_identity(name)}\n".encode())
    return found.hexdigest()[:16]


def source_modules(roots: Sequence[str]) -> set[str]:
    """Return modules of raysel and the modules that they import from packages that can change a number."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(name)
    return found


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Modules in the counted packages that a module imports, at its top or inside functions."""
    path = _own_modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    targets: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            targets |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    counted = tuple(f"raysel.{package}." for package in _COUNTED)
    return tuple(sorted(target for target in targets if target in _own_modules() and target.startswith(counted)))


def _package() -> Path:
    """Folder of raysel's source."""
    return Path(__file__).resolve().parent.parent


@cache
def _own_modules() -> dict[str, Path]:
    """Paths of all modules of raysel by full name."""
    root = _package()
    found = {}
    for path in root.rglob("*.py"):
        parts = ("raysel", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """Names of the installed distributions by the module that they hold; listing them takes a second."""
    return packages_distributions()


def _foreign_identity(name: str) -> str:
    """Distributions and versions of a module outside raysel, and the hash of its source."""
    distributions = sorted(set(_distributions().get(name.partition(".")[0], [])))
    versions_of = " ".join(f"{distribution}=={version(distribution)}" for distribution in distributions)
    if distributions and set(distributions) <= set(_NUMERICAL):
        return versions_of
    path = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    # An installation in editable mode changes without its version.
    return f"{name} {versions_of} {_source_hash(path) if path.suffix == '.py' else 'without source'}"


def _source_hash(path: Path) -> str:
    """Hash of a module's code without comments, docstrings and formatting."""
    tree = _tree(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[documented:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
