"""Imports run down the layers only, and heavy libraries stay where they belong."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "raysel"

#: The packages from the lowest layer to the highest. A package imports itself and lower layers.
ORDER = [
    {"core"},
    {"numerics", "config"},
    {"data"},
    {"base"},
    {"solvers", "baselines", "evaluation"},
    {"tracking"},
    {"study"},
    {"execution", "results"},
    {"run"},
    {"testing", "cli"},
    {"raysel"},  # the public names and `python -m raysel`
]
LAYERS = {name: layer for layer, names in enumerate(ORDER) for name in names}
#: Libraries that these packages or modules only import.
ONLY_IN = {
    "ray": ("raysel.execution.ray",),
    "mlflow": tuple(f"raysel.tracking.mlflow_{name}" for name in ("client", "model", "store")),
    "pydantic": ("raysel.config", "raysel.core.files"),
    "yaml": ("raysel.config",),
    "matplotlib": ("raysel.results",),
    "jinja2": ("raysel.results.page",),
    "pytest": ("raysel.testing",),
    "filelock": ("raysel.tracking.locks",),
}
#: Private names of other libraries that are imported, for want of public ones, and what for; there
#: are to be no others.
PRIVATE = {
    "sklearn.base._fit_context": "callbacks of fits, and the check of parameters before them",
    "sklearn.utils._safe_indexing": "rows of whatever an estimator takes: frames, lists, sparse",
    "sklearn.utils._param_validation.Interval": "constraints that its conformance tests read",
    "sklearn.utils._param_validation.StrOptions": "constraints that its conformance tests read",
}
#: Files outside of data/ that ask for the dtype or the dimension of y, and why; there are to be no
#: others: a target of `raysel.data.targets` says what follows from the kind of y.
ASK_Y = {"numerics/metrics.py": "lies below the targets: an indicator has a score for each label"}
#: Names of what is predicted.
Y_NAMES = {"y", "y_train", "y_test"}
#: Functions that import a module by its name.
IMPORTERS = {"import_module", "__import__", "run_module", "resolve_name"}
#: Modules that import by names which are no literals, and the parts of raysel that these name.
BY_NAME = {
    "raysel": set(LAYERS) - {"raysel"},  # the public names, loaded when first used
    "raysel.cli.main": {"raysel"},  # the work of a command, loaded once its arguments are parsed
    "raysel.base.registry": {"solvers", "baselines"},  # methods
    "raysel.core.plugins": set(),  # classes and functions that the user names
    # Versions of libraries; it reads, and does not import, the modules that it names.
    "raysel.study.identity": {"raysel", "base", "config", "data", "evaluation", "execution"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Imports, calls and constants of a file."""
    kept = ast.Import | ast.ImportFrom | ast.Call | ast.Constant
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, kept)]


def imports(name: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, anywhere in it, types only or not."""
    path = MODULES[name]
    return imports_of_file(path, name if path.name == "__init__.py" else name.rpartition(".")[0])


def imports_of_file(path: Path, package: str = "") -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports; relative imports are those of its
    package.
    """
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
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
    """Package that a name of raysel belongs to; `raysel` for its top-level modules."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 and pieces[1] in LAYERS else "raysel"


def module_of(target: str) -> str:
    """Module of raysel that an imported name lies in, or is."""
    while target not in MODULES:
        target = target.rpartition(".")[0]
    return target


def internal(name: str) -> Iterator[tuple[int, str]]:
    return ((line, target) for line, target in imports(name) if target.split(".")[0] == "raysel")


def test_every_package_has_a_layer():
    assert {part(name) for name in MODULES} == set(LAYERS)


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
        named = {
            str(node.value).partition(":")[0]
            for node in nodes(MODULES[name])
            if isinstance(node, ast.Constant)
        }
        assert {part(target) for target in named & set(MODULES)} - {part(name)} <= parts
    # What the registry imports by name lies below whatever uses the registry.
    users = {
        name
        for name in MODULES
        for _, target in internal(name)
        if module_of(target) == "raysel.base.registry"
    }
    highest = max(LAYERS[target] for target in BY_NAME["raysel.base.registry"])
    assert {name for name in users if LAYERS[part(name)] <= highest} == {"raysel.base.model_types"}


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
        if (homes := ONLY_IN.get(target.split(".")[0]))
        and not f"{name}.".startswith(tuple(f"{it}." for it in homes))
    ]
    assert not wrong


def test_displays_and_pages_compute_no_standard_deviation():
    # They show those of the facts, which compute each once; `ddof` is what a sample's takes.
    shown = [
        MODULES[name]
        for name in MODULES
        if name.startswith(("raysel.results.displays.", "raysel.results.page."))
    ]
    assert not [path.name for path in shown if "ddof" in path.read_text(encoding="utf-8")]
    assert "ddof" in MODULES["raysel.results.scores"].read_text(encoding="utf-8")


def test_nothing_imports_tests_or_experiments():
    roots = {target.split(".")[0] for name in MODULES for _, target in imports(name)}
    assert not roots & {"tests", "experiments", "conf", "conftest", "hypothesis"}
    assert {"raysel", "numpy", *ONLY_IN} <= roots  # the walk sees what there is


def test_no_other_private_name_of_a_library_is_imported():
    named = {target for name in MODULES for _, target in imports(name)}
    private = {
        target
        for target in named
        if not target.startswith(("raysel", "__future__"))
        and (any(word.startswith("_") for word in target.split(".")) or "unittest.mock" in target)
    }
    assert private == PRIVATE.keys()


def asks_for_kind_of_y(node: ast.AST) -> bool:
    """Whether a node takes the dtype or the dimension of y: ``y.dtype``, ``np.ndim(self.y)``."""
    if isinstance(node, ast.Attribute) and node.attr in ("dtype", "ndim"):
        asked = node.value
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "ndim" and node.args:
        asked = node.args[0]
    else:
        return False
    return (getattr(asked, "id", None) or getattr(asked, "attr", None)) in Y_NAMES


def test_no_other_file_asks_for_the_kind_of_y():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES.values()
        if part(module_name(path)) != "data"
        and any(map(asks_for_kind_of_y, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == ASK_Y.keys()


def test_asking_for_the_kind_of_y_is_seen():
    asking = ["y.ndim == 2", "self.y.dtype.kind", "np.ndim(y_train)", "split.y_test.ndim"]
    other = ["X.ndim", "y.shape", "np.ndim(X)", "target.kind", "values.dtype"]
    seen = {
        source: any(map(asks_for_kind_of_y, ast.walk(ast.parse(source))))
        for source in (*asking, *other)
    }
    assert [source for source, asks in seen.items() if asks] == asking


def test_no_library_is_loaded_until_it_is_used():
    direct = {
        name for name in MODULES if {t.split(".")[0] for _, t in imports(name)} & {"ray", "mlflow"}
    }
    direct |= set(ONLY_IN["mlflow"])
    direct |= {name for name in MODULES if f"{name}.".startswith("raysel.execution.ray.")}
    direct |= {f"raysel.tracking.mlflow_{name}" for name in ("experiment", "runs")}  # of uploads
    light = [name for name in MODULES if name not in direct]
    assert {"raysel", "raysel.tune", "raysel.select"} <= set(
        light
    )  # --help and --dry-run answer at once
    first = [
        "import sys, raysel.tune, raysel.select",
        "print({'matplotlib', 'optuna'} & set(sys.modules))",
    ]
    rest = [*(f"import {name}" for name in light), "print({'ray', 'mlflow'} & set(sys.modules))"]
    # A solver is known by its name before it is loaded, and loads no library that scikit-learn does
    # not load.
    solvers = [
        (
            "import sys, sklearn.callback, sklearn.feature_selection, sklearn.linear_model,"
            " sklearn.svm"
        ),
        "import sklearn.utils.estimator_checks",
        "before = {name.partition('.')[0] for name in sys.modules}",
        "from raysel.base import models, registry",
        "registry.solver_names(), models.trusted_types()",
        "print([n for n in sys.modules if n.startswith(('raysel.solvers', 'raysel.baselines'))])",
        "import raysel",
        "raysel.SMR, raysel.SMML, raysel.MTDA",
        "after = {name.partition('.')[0] for name in sys.modules}",
        "print(after - before - set(sys.stdlib_module_names))",
    ]
    script = "; ".join([*solvers, *first, *rest])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    wanted = ["[]", "{'raysel'}", "set()", "set()"]
    assert (done.stdout.splitlines(), done.returncode) == (wanted, 0), done.stderr
