"""Identity of what computes a study: hash of raysel's code, versions of libraries, processor."""

from __future__ import annotations

import ast
import hashlib
import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions, version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from raysel.core import __version__
from raysel.core.printing import listed

#: Libraries whose version can change the last bits of a number, by the package that they hold.
_NUMERICAL = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
#: Parts of `machine_versions` besides the libraries; a study may be resumed with others, which is
#: remarked.
MACHINE = ("blas", "simd", "libc")
#: Libraries whose version is recorded for information.
_INFORMATIVE = ("ray", "mlflow", "pyarrow")
#: Names in `versions` that are none of Python and of libraries that can change a number.
_NO_LIBRARIES = frozenset({"raysel", "numbers", *MACHINE, *_INFORMATIVE})
#: Folders in which the wheels of numpy and scipy keep their BLAS. Other packages may load further
#: ones.
_WHEELS = ("numpy.libs", "scipy.libs", ".dylibs")
#: What tells one BLAS from another, of what threadpoolctl knows of it.
_BLAS_KEYS = ("internal_api", "version", "architecture", "threading_layer")
#: Parts of `machine_versions` that an environment variable changes, with how to set it.
_REMEDIES = {
    "blas": (
        "for another kernel of OpenBLAS set OPENBLAS_CORETYPE, e.g. to Haswell, before the study"
        " starts"
    ),
    "simd": "for other instructions in numpy set NPY_DISABLE_CPU_FEATURES before the study starts",
}
#: Modules that compute the numbers of every study, besides the module of the solver.
_ROOTS = (
    "raysel.base.template",
    "raysel.data.loading",
    "raysel.data.preparation.making",
    "raysel.data.scaling",
    "raysel.evaluation.configurations",
    "raysel.evaluation.lockstep",
    "raysel.evaluation.nested_search",
    "raysel.evaluation.plan",
    "raysel.evaluation.references",
    "raysel.evaluation.refit",
    "raysel.evaluation.samplers",
    "raysel.evaluation.scoring",
    "raysel.execution.serial",
    "raysel.execution.trials",
)
#: Modules that connect the others; hashed alone, because their imports reach all methods and what
#: computes no number.
_WIRING = (
    "raysel.config.preparation",
    "raysel.config.space",
    "raysel.execution.trial_plan",
    "raysel.study.definition",
)
#: Packages of raysel whose code can change a number; imports of other packages are not followed.
_COUNTED = ("base", "baselines", "data", "evaluation", "numerics", "solvers")
#: Nodes of Python's syntax tree that may have a docstring.
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def machine_versions() -> dict[str, str]:
    """Return what of this process, besides raysel's code, can change the last bits of a number."""
    libraries = {
        name: str(importlib.import_module(module).__version__)
        for module, name in _NUMERICAL.items()
    }
    return {
        "python": platform.python_version(),
        **libraries,
        "blas": _blas(),
        "simd": _simd(),
        "libc": " ".join(platform.libc_ver()).strip(),
    }


def differing(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """List what differs between two processes and can change a number."""
    for name in dict.fromkeys((*here, *there)):
        if here.get(name) != there.get(name):
            yield name, here.get(name) or "none", there.get(name) or "none"


def remedies(names: Iterable[str]) -> str:
    """Return how to make versions equal that differ."""
    known = [_REMEDIES[name] for name in names if name in _REMEDIES]
    return "; ".join(["use the same image or environment on all nodes", *known])


def _blas() -> str:
    """Name, version, kernel and threading layer of each BLAS of numpy and scipy."""
    importlib.import_module(
        "scipy.linalg"
    )  # loads SciPy's BLAS, which threadpoolctl finds only then
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    of_wheels = [
        library for library in libraries if Path(library["filepath"]).parent.name in _WHEELS
    ]
    return ", ".join(sorted({_describe_blas(library) for library in of_wheels or libraries}))


def _describe_blas(library: Mapping[str, Any]) -> str:
    values = [library.get(key) for key in _BLAS_KEYS]
    return " ".join(str(value) for value in values if value)


def _simd() -> str:
    """Processor's architecture and the instructions that numpy found and may use."""
    shown = np.show_config(mode="dicts")
    extensions = shown.get("SIMD Extensions", {}) if isinstance(shown, dict) else {}
    names = [*extensions.get("baseline", ()), *extensions.get("found", ())]
    return " ".join((platform.machine(), *names))


def versions(code: Sequence[Callable[..., Any]], libraries: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of all code that a study runs, with those of its sampler's libraries."""
    names = [*_NUMERICAL.values(), *libraries, *_INFORMATIVE]
    of_raysel = {
        "raysel": __version__,
        "numbers": numbers_hash(code),
        "python": platform.python_version(),
    }
    machine = machine_versions()
    return (
        of_raysel
        | {name: _version(name) for name in names}
        | {name: machine[name] for name in MACHINE}
    )


def changed_versions(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """List the versions that differ and can change a study's numbers."""
    for name in _changed_libraries(before, now):
        yield f"{name}: {before.get(name)} -> {now[name]}"
    had, has = before.get("numbers"), now.get("numbers")
    if had != has:
        written, runs = before.get("raysel"), now.get("raysel")
        change = (
            "numbers: the code of the solver, validation, search or data has changed"
            f" ({had} by raysel {written} -> {has} by raysel {runs})"
        )
        if written != runs:
            change += f"; to continue, install raysel {written}"
        yield change


def other_versions(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say what computes now, of a study whose own numbers are of other versions; else nothing."""
    names = [*_changed_libraries(before, now)]
    if before.get("numbers") != now.get("numbers"):
        names.insert(0, "raysel")
    if not names:
        return ""
    here = listed(f"{name} {now[name]}" for name in names)
    there = listed(f"{name} {before.get(name)}" for name in names)
    if here == there:
        here, there = f"other source code of {here}", "the former"
    return (
        f"Computed by {here}; the study's own scores are by {there} and may differ: run it again"
        " for both by one version."
    )


def _changed_libraries(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of Python and the libraries whose versions differ."""
    for name in now:
        if name not in _NO_LIBRARIES and before.get(name) != now[name]:
            yield name


def numbers_hash(code: Sequence[Callable[..., Any]]) -> str:
    """Hash the source code of all modules that compute a study's numbers.

    Comments, docstrings, formatting and the path of the installation do not change the hash. For a
    solver of another distribution the name and version of that distribution are hashed; if it has
    none, the source of its module.
    """
    bases = chain.from_iterable(getattr(item, "__mro__", (item,)) for item in code)
    names = {base.__module__ for base in bases}
    in_raysel = {name for name in names if name in _own_modules()}
    digest = hashlib.sha256()
    for name in sorted(source_modules([*_ROOTS, *in_raysel]) | set(_WIRING)):
        digest.update(f"{name} {_own_module(name)[1]}\n".encode())
    for name in sorted(names - in_raysel - {"builtins", "abc", "typing"}):
        digest.update(f"{_foreign_identity(name)}\n".encode())
    return digest.hexdigest()[:16]


def source_modules(roots: Sequence[str]) -> set[str]:
    """Return modules of raysel with those that they import and that can change a number."""
    modules: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += _own_module(name)[0]
    return modules


@cache
def _own_module(name: str) -> tuple[tuple[str, ...], str]:
    """Return the counted modules that a module imports, anywhere, and the hash of its code."""
    tree = _tree(_own_modules()[name])
    counted = tuple(f"raysel.{package}." for package in _COUNTED)
    imports = imported_names(tree) & _own_modules().keys()
    return tuple(sorted(name for name in imports if name.startswith(counted))), _hash(tree)


def imported_names(tree: ast.Module) -> set[str]:
    """Names that a module may import as modules, without those of relative imports."""
    names: set[str] = set()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all statements in it, several times faster than `ast.walk`."""
    yield node
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            yield from _statements(child)


def _package() -> Path:
    """Folder of raysel's source."""
    return Path(__file__).resolve().parent.parent


@cache
def _own_modules() -> dict[str, Path]:
    """Paths of all modules of raysel by full name."""
    root = _package()
    paths = {}
    for path in root.rglob("*.py"):
        name = ".".join(("raysel", *path.relative_to(root).with_suffix("").parts))
        paths[name.removesuffix(".__init__")] = path
    return paths


@cache
def _version(distribution: str) -> str:
    """Version of an installed distribution; to read its file of metadata takes milliseconds."""
    return version(distribution)


@cache
def _distributions() -> Mapping[str, Sequence[str]]:
    """Names of installed distributions by the module that they hold; it takes a second."""
    return packages_distributions()


def _foreign_identity(name: str) -> str:
    """Distributions and versions of a module outside raysel, and the hash of its source."""
    package = name.partition(".")[0]
    if package in _NUMERICAL:
        return f"{_NUMERICAL[package]}=={_version(_NUMERICAL[package])}"
    distributions = sorted(set(_distributions().get(package, [])))
    versions_of = " ".join(
        f"{distribution}=={_version(distribution)}" for distribution in distributions
    )
    path = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    # An installation in editable mode changes without its version.
    source = _hash(_tree(path)) if path.suffix == ".py" else "without source"
    return f"{name} {versions_of} {source}"


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _hash(tree: ast.Module) -> str:
    """Hash of code without comments, docstrings and formatting."""
    words: list[str] = []
    _add_words(tree, words)
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def _add_words(node: ast.AST, words: list[str]) -> None:
    """Describe a node and those below it as `ast.dump` does, in a quarter of its time."""
    words.append(type(node).__name__)
    for name in node._fields:
        value: Any = getattr(node, name, None)
        items = value if isinstance(value, list) else [value]
        if name == "body" and isinstance(node, _DOCUMENTED) and _has_docstring(node):
            items = items[1:]
        for item in items:
            if isinstance(item, ast.AST):
                _add_words(item, words)
            else:
                words.append(repr(item))
        words.append(";")


def _has_docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> bool:
    return ast.get_docstring(node, clean=False) is not None
