"""Code and environment that a driver ships to a cluster's workers by ``runtime_env``."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import site
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, entry_points, packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

from raysel.base.registry import GROUP as ESTIMATORS
from raysel.core.errors import ConfigError
from raysel.data.loading import GROUP as READERS
from raysel.evaluation.sampler_registry import GROUP as SAMPLERS
from raysel.numerics.metrics import GROUP as METRICS
from raysel.study.checks import imported_code
from raysel.study.definition import Study
from raysel.study.identity import imported_names

#: Variables that change numbers or threads; workers get the driver's.
_COPIED = (
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
    "OMP_DYNAMIC",
    "OPENBLAS_CORETYPE",
    "PYTHONHASHSEED",
)
#: Numbers of threads; where the driver has none, workers get ``search.cpus_per_trial``.
_THREADS = (
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
#: Variables that may hold a secret, which everybody sees who sees Ray's dashboard.
_SECRET = re.compile("TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|KEY", re.IGNORECASE)
#: What of a package's folder is not code.
_LEFT_OUT = (
    *(
        ".git",
        ".hg",
        ".svn",
        ".tox",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        "*.pyc",
        "raysel-studies",
    ),
    *(".gitignore", ".rayignore"),  # by which Ray would leave out files, such as generated code
)
#: Largest code of a module in MiB; Ray keeps it in the head's memory.
_MOST_MIB = 100


@dataclass(frozen=True)
class ShippedCode:
    """Modules that the workers get from the driver."""

    modules: Mapping[str, Path]
    distributions: Sequence[Distribution]

    def stage(self, folder: Path) -> list[str]:
        """Copy the code into a folder, without what is not code, and return the paths to ship."""
        for name, source in self.modules.items():
            if source.is_dir():
                _check_size(name, source)
                shutil.copytree(source, folder / name, ignore=_left_out)
            else:
                shutil.copy(source, folder / source.name)
        for one in self.distributions:
            info = folder / f"{re.sub('[^A-Za-z0-9.]+', '_', one.name)}-{one.version}.dist-info"
            info.mkdir()
            # By this alone importlib.metadata finds the entry points, also of a package in editable
            # mode.
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {one.name}\nVersion: {one.version}\n",
                encoding="utf-8",
            )
            (info / "entry_points.txt").write_text(
                one.read_text("entry_points.txt") or "", encoding="utf-8"
            )
        return sorted(map(str, folder.iterdir()))


def shipped_code(studies: Sequence[Study]) -> ShippedCode:
    """Find the code that the workers need to compute some studies and may lack.

    It is raysel itself, the module of each dotted name of the user's own with the modules beside it
    that it imports, and all packages that register estimators, metrics, readers or samplers.
    Packages that are installed with pip are not shipped for a dotted name: nodes need the same.
    """
    modules = {"raysel": Path(__file__).resolve().parents[2]}
    own: set[str] = set()
    for study in studies:
        own |= {dotted.partition(".")[0] for _, dotted in imported_code(study.config)}
    for name in sorted(own):
        source = _source(name)
        if source is not None and not _is_installed(source):
            modules |= dict(_with_neighbours(name, source))
    groups = (ESTIMATORS, METRICS, READERS, SAMPLERS)
    points = chain.from_iterable(entry_points(group=group) for group in groups)
    registered = {point.dist.name: point.dist for point in points if point.dist is not None}
    used = _names_used(studies)
    distributions = []
    for distribution in registered.values():
        sources = {
            name: source
            for name in _find_modules(distribution)
            if (source := _source(name)) is not None
        }
        is_used = any(point.name in used for point in distribution.entry_points)
        if is_used or sum(map(_size, sources.values())) <= _MOST_MIB * 2**20:
            modules = sources | modules
            distributions.append(distribution)
    return ShippedCode(modules, distributions)


def environment(studies: Sequence[Study], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the workers' environment variables: threads, processor and raysel's own."""
    cpus = min((study.config.search.cpus_per_trial for study in studies), default=1)
    passed_on = {
        name: value
        for name, value in variables.items()
        if name.startswith("RAYSEL_") and not _SECRET.search(name)
    }
    threads = {name: variables.get(name, str(cpus)) for name in _THREADS}
    return {
        **passed_on,
        **threads,
        **{name: variables[name] for name in _COPIED if name in variables},
    }


def runtime_env(code: ShippedCode, folder: Path, studies: Sequence[Study]) -> dict[str, Any]:
    """Return the ``runtime_env`` of a driver, joined with that of the Ray job it runs in.

    Ray joins both itself, but refuses keys and variables that both have: those of the job are kept,
    as the driver itself runs with them, and its modules come after the driver's.
    """
    job = job_runtime_env()
    variables = environment(studies, os.environ)
    return {
        "py_modules": [*code.stage(folder), *job.get("py_modules", ())],
        "env_vars": {
            name: value for name, value in variables.items() if name not in job.get("env_vars", {})
        },
    }


def job_runtime_env() -> dict[str, Any]:
    """Return the ``runtime_env`` by ``ray job submit``; empty outside a job."""
    try:
        given = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR") or "{}").get("runtime_env")
    except (ValueError, AttributeError):
        return {}
    if not isinstance(given, dict):
        return {}
    return given


def _names_used(studies: Sequence[Study]) -> set[str]:
    """Return the names of methods, samplers and metrics that some studies use."""
    used: set[str] = set()
    for study in studies:
        used |= {
            study.config.solver.name,
            study.config.search.method,
            study.config.evaluation.metric,
            *study.config.evaluation.report,
        }
    return used


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return what of a folder is not code; links to other folders could lead to anything."""
    left_out: set[str] = shutil.ignore_patterns(*_LEFT_OUT)(folder, names)
    return left_out | {
        name for name in names if (path := Path(folder) / name).is_symlink() and not path.is_file()
    }


def _size(source: Path) -> int:
    """Return the bytes of a module's code."""
    if source.is_file():
        return source.stat().st_size
    total = 0
    for folder, folders, files in os.walk(source):
        out = _left_out(folder, [*folders, *files])
        folders[:] = [name for name in folders if name not in out]
        total += sum((Path(folder) / name).stat().st_size for name in files if name not in out)
    return total


def _check_size(name: str, source: Path) -> None:
    """Refuse a folder that holds more than code."""
    total = _size(source)
    if total > _MOST_MIB * 2**20:
        raise ConfigError(
            f"the module {name} is the folder {source} of {total / 2**20:.0f} MiB, and at most"
            f" {_MOST_MIB} MiB of code are sent to nodes. Keep data outside the folder, or install"
            " the package on all nodes."
        )


def _source(name: str) -> Path | None:
    """Return the file or folder of a top-level module; None if it is built in or not found."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    if len(places) > 1:
        raise ConfigError(
            f"the package {name} is spread over {' and '.join(places)} and cannot be sent to nodes;"
            " add an __init__.py, or install it on all nodes."
        )
    if places:
        return Path(places[0])
    if spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    return None


def _is_installed(source: Path) -> bool:
    """Return whether a module belongs to Python or to its installed packages."""
    paths = sysconfig.get_paths()
    places = [*(paths[key] for key in ("purelib", "platlib", "stdlib")), site.getusersitepackages()]
    return any(source.resolve().is_relative_to(Path(place).resolve()) for place in places)


def _with_neighbours(name: str, source: Path) -> Iterator[tuple[str, Path]]:
    """Yield a top-level module and those beside it that it needs."""
    root, waiting, seen = source.parent, [(name, source)], {name}
    while waiting:
        current, place = waiting.pop()
        yield current, place
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        for file in files:
            for target in _imports(file) - seen:
                seen.add(target)
                options = (root / target, root / f"{target}.py")
                there = next((path for path in options if path.exists()), None)
                if there is not None and (there.is_file() or any(there.rglob("*.py"))):
                    waiting.append((target, there))


def _imports(file: Path) -> set[str]:
    """Return the top-level modules that a file imports by their full names."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    return {name.partition(".")[0] for name in imported_names(tree)} - {"raysel"}


def _find_modules(distribution: Distribution) -> set[str]:
    """Return the top-level modules of a distribution."""
    points = [point for point in distribution.entry_points if point.group.startswith("raysel.")]
    targets = {point.module.partition(".")[0] for point in points}
    held = {
        name for name, owners in packages_distributions().items() if distribution.name in owners
    }
    return {name for name in targets | held if name.isidentifier() and name != "raysel"}
