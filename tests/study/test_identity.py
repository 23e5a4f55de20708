"""What of a process changes bits is told: the kernels of the BLAS and the instructions of numpy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

import raysel
from raysel.base.registry import solver_class, solver_names
from raysel.evaluation.samplers import TPESampler
from raysel.study import identity
from raysel.study.identity import (
    _COUNTED,
    _ROOTS,
    changed_versions,
    differing,
    machine_versions,
    numbers_hash,
    source_modules,
    versions,
)

SHOW = (
    "import json; from raysel.study.identity import machine_versions;"
    " print(json.dumps(machine_versions()))"
)


def elsewhere(**environment):
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_kernel_and_instructions_are_part_of_the_versions():
    here = machine_versions()
    used = [
        library
        for library in threadpool_info()
        if Path(library["filepath"]).parent.name in identity._WHEELS
    ]
    kernels = {library["architecture"] for library in used if library["internal_api"] == "openblas"}
    assert all(kernel in here["blas"] for kernel in kernels)
    other = "Prescott" if "Prescott" not in here["blas"] else "Haswell"
    disabled = here["simd"].split()[-1]
    there = elsewhere(OPENBLAS_CORETYPE=other, NPY_DISABLE_CPU_FEATURES=disabled)
    changed = {name for name, *_ in differing(here, there)}
    assert changed <= {"blas", "simd"}
    assert (
        not kernels or "blas" in changed
    )  # OpenBLAS names the kernel by an older processor's name
    assert disabled not in there["simd"].split() or changed == {
        "blas"
    }  # a baseline cannot be disabled


PACKAGE = Path(raysel.__file__).parent
CODE = "\nADDED = 1\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of raysel's source elsewhere."""
    there = tmp_path_factory.mktemp("elsewhere") / "raysel"
    shutil.copytree(PACKAGE, there, ignore=shutil.ignore_patterns("__pycache__"))
    return there


@contextmanager
def source_in(package: Path) -> Iterator[None]:
    """Take raysel's source from a folder."""
    for cached in (identity._own_modules, identity._own_module):
        cached.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "_package", lambda: package)
        yield
    for cached in (identity._own_modules, identity._own_module):
        cached.cache_clear()


def hashes_of(package: Path) -> tuple[str, str]:
    """The hashes of an SMR study and of an SMML path study, by the source in a folder."""
    with source_in(package):
        return numbers_hash([solver_class("smr")]), numbers_hash([solver_class("smml")])


@pytest.mark.slow
def test_it_does_not_depend_on_where_raysel_is(copy):
    assert hashes_of(copy) == hashes_of(PACKAGE)
    script = (
        "from raysel.base.registry import solver_class; from raysel.study.identity import"
        " numbers_hash; print(numbers_hash([solver_class('smr')]))"
    )
    environment = {"PYTHONPATH": str(copy.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=copy.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == hashes_of(PACKAGE)[0]


@pytest.mark.slow
def test_it_changes_with_code_that_the_numbers_pass_through(copy):
    before = hashes_of(copy)
    for module, added, expected in (
        ("solvers/smr/updates.py", "\n\n# a comment\n", (False, False)),
        ("results/displays/maps.py", CODE, (False, False)),
        ("tracking/upload_process.py", CODE, (False, False)),
        ("solvers/smr/updates.py", CODE, (True, False)),
        ("solvers/smml/walk.py", CODE, (False, True)),
        ("numerics/hinge.py", CODE, (False, True)),
        ("evaluation/lockstep.py", CODE, (True, True)),
        ("numerics/rankings.py", CODE, (True, True)),
    ):
        text = (copy / module).read_text()
        (copy / module).write_text(text + added)
        after = hashes_of(copy)
        (copy / module).write_text(text)
        assert tuple(old != new for old, new in zip(before, after, strict=True)) == expected, module


def test_docstrings_and_formatting_do_not_count(tmp_path):
    found = set()
    for text in (
        'def f(x):\n    """First."""\n    return (x,\n        1)\n',
        '"""A module."""\ndef f(x):\n    """Second, longer."""\n\n    return (x, 1)  # a pair\n',
        "def f(x):\n    return (x, 1)\n",
    ):
        (tmp_path / "module.py").write_text(text)
        found.add(identity._hash(identity._tree(tmp_path / "module.py")))
    assert len(found) == 1
    (tmp_path / "module.py").write_text("def f(x):\n    return (x, 2)\n")
    assert identity._hash(identity._tree(tmp_path / "module.py")) not in found


def test_the_modules_are_there_and_of_the_counted_packages():
    for root in _ROOTS:
        assert (PACKAGE.parent / (root.replace(".", "/") + ".py")).exists()
    found = source_modules([*_ROOTS, "raysel.solvers.smr.smr"])
    assert {name.split(".")[1] for name in found - set(_ROOTS)} <= set(_COUNTED)
    assert {
        "raysel.evaluation.splitters",
        "raysel.evaluation.neighbours",
        "raysel.solvers.smr.updates",
        "raysel.numerics.rankings",
    } <= found


#: Modules of baselines that others of their family import.
FAMILIES = {
    f"raysel.baselines.{name}"
    for name in (
        "kernel_classifiers",
        "lp_boost",
        "mcgf",
        "multivariate_filters",
        "quantity_filters",
        "univariate_filters",
    )
}


def test_no_solver_counts_for_another_but_those_of_a_family():
    homes = {name: solver_class(name).__module__ for name in solver_names()}
    for name, home in homes.items():
        others = set(homes.values()) - {home, *(FAMILIES if "baselines" in home else ())}
        assert not others & source_modules([*_ROOTS, home]), name


def test_a_solver_of_another_distribution_counts_with_its_version_and_one_of_none_with_its_source(
    tmp_path, monkeypatch
):
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    alone = numbers_hash([])
    assert numbers_hash([LinearSVC]) != alone
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for text in ("class Own: pass\n", "class Own: pass  # the same\n", "class Own: n = 1\n"):
        (tmp_path / "own_solver.py").write_text(text)
        sys.modules.pop("own_solver", None)
        import own_solver  # noqa: PLC0415

        found.append(numbers_hash([own_solver.Own]))
    sys.modules.pop("own_solver", None)
    assert found[0] == found[1] != alone
    assert found[2] not in (alone, found[0])


def test_optuna_counts_only_where_it_proposes():
    solver = [solver_class("smr")]
    plain, tpe = versions(solver), versions(solver, TPESampler.libraries)
    assert "optuna" not in plain
    assert plain["raysel"] == raysel.__version__
    assert list(changed_versions(tpe, tpe)) == []
    (line,) = changed_versions({**tpe, "optuna": "0.1", "ray": "0.1", "raysel": "0.0.1"}, tpe)
    assert line == f"optuna: 0.1 -> {tpe['optuna']}"
    (line,) = changed_versions({**tpe, "numbers": "00"}, tpe)
    assert line.startswith("numbers: the code of the solver")


@pytest.mark.slow
def test_a_subclass_elsewhere_counts_with_the_classes_that_it_derives_from(
    tmp_path, monkeypatch, copy
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_smr.py").write_text("from raysel import SMR\nclass Own(SMR):\n    pass\n")
    import own_smr  # noqa: PLC0415

    module = copy / "solvers/smr/updates.py"
    text, hashes = module.read_text(), set()
    for changed in (text, text + CODE):
        module.write_text(changed)
        with source_in(copy):
            hashes.add(numbers_hash([own_smr.Own]))
    module.write_text(text)
    sys.modules.pop("own_smr")
    assert len(hashes) == 2
