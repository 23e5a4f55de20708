"""Every registered method, and some of scikit-learn's, meet the suite of methods."""

from __future__ import annotations

import pytest
import ray
from method_cases import CASES, QUICK
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin

from raysel.base.registry import solver_names
from raysel.execution.ray.executor import RayExecutor
from raysel.execution.serial import SerialExecutor
from raysel.testing import estimator_checks, method_suite, parametrize
from raysel.testing.checks import require_same_study, run_by
from raysel.testing.method_cases import samples_for
from raysel.testing.method_suite import executors_agree

BY_NAME = {case.solver_name: case for case in CASES}


def test_every_registered_method_has_a_case():
    assert set(solver_names()) <= set(BY_NAME)


def bases(case):
    """Base classes of raysel, or roles of scikit-learn, of a method."""
    if case.wrapped:
        return {ClassifierMixin, RegressorMixin, SelectorMixin} & set(case.cls.__mro__)
    methods = {other.cls for other in CASES}
    public = [base for base in case.cls.__mro__[1:] if not base.__name__.startswith("_") and base not in methods]
    return {base for base in public if base.__module__.startswith("raysel.")}


def test_the_quick_checks_take_every_base_class_and_every_kind_of_data():
    quick = [BY_NAME[name] for name in QUICK]
    assert set().union(*map(bases, quick)) == set().union(*map(bases, CASES))
    names = {case.solver_name: {samples.name for samples in samples_for(case)} for case in CASES}
    assert all(set(QUICK[case.solver_name]) <= names[case.solver_name] for case in quick)
    assert set().union(*QUICK.values()) == set().union(*names.values())


#: Methods of which whole studies are run: one of classes, one of quantities.
STUDIED = ("smr", "smr_regressor")


def is_quick(check):
    method, _, label = check.name.partition(": ")
    if check.kind == "study":
        return method in STUDIED
    on_samples = check.kind != "scikit-learn"
    return method in QUICK and (not on_samples or any(label.endswith(f"[{name}]") for name in QUICK[method]))


@parametrize(
    (check for case in CASES for check in estimator_checks(case)),
    slow=lambda check: not is_quick(check),
)
def test_conformance(check):
    check()


#: The executor is the same for all methods, so one of each kind runs by it; the number of workers matters to none.
WORKERS = [*((name, 1) for name in ("smr", "smml", "mtda")), *((name, 2) for name in QUICK)]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize(("name", "workers"), WORKERS)
def test_ray_gives_the_numbers_of_the_serial_executor(name, workers):
    executors_agree(BY_NAME[name], lambda study: RayExecutor(study, None), max_concurrent=workers)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in QUICK])
def test_a_worker_of_ray_gives_the_numbers_of_this_process(name, tmp_path):
    samples = method_suite._samples(BY_NAME[name])
    study = method_suite._study(BY_NAME[name], samples, samples.y, tmp_path)
    there = ray.remote(run_by).remote(SerialExecutor(study), study, tmp_path / "there")
    require_same_study(ray.get(there), run_by(SerialExecutor(study), study, tmp_path / "here"))
