"""Every registered method, and some of scikit-learn's, meet the suite of methods."""

from __future__ import annotations

from unittest import SkipTest

import pytest
import ray
from method_cases import CASES, QUICK
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin

from raysel.base.registry import solver_names
from raysel.execution.serial import SerialExecutor
from raysel.testing import estimator_checks, method_suite, parametrize
from raysel.testing.checks import require_same_study, run_by
from raysel.testing.method_cases import samples_for

BY_NAME = {case.solver_name: case for case in CASES}


def test_every_registered_method_has_a_case():
    assert set(solver_names()) <= set(BY_NAME)


def bases(case):
    """Base classes of raysel, or roles of scikit-learn, of a method."""
    if case.wrapped:
        return {ClassifierMixin, RegressorMixin, SelectorMixin} & set(case.cls.__mro__)
    methods = {other.cls for other in CASES}
    public = [
        base
        for base in case.cls.__mro__[1:]
        if not base.__name__.startswith("_") and base not in methods
    ]
    return {base for base in public if base.__module__.startswith("raysel.")}


def test_the_quick_checks_take_every_base_class_and_every_kind_of_data():
    quick = [BY_NAME[name] for name in QUICK]
    assert set().union(*map(bases, quick)) == set().union(*map(bases, CASES))
    names = {case.solver_name: {samples.name for samples in samples_for(case)} for case in CASES}
    assert all(set(QUICK[case.solver_name]) <= names[case.solver_name] for case in quick)
    assert set().union(*QUICK.values()) == set().union(*names.values())


#: Methods of which whole studies are run: one of classes, one of quantities.
STUDIED = ("smr", "smr_regressor")
#: Methods that meet scikit-learn's checks: one of each kind of samples, labels and step.
CHECKED = ("smr", "mtda", "smr_regressor", "variance", "sklearn.linear_model.LogisticRegression")


def is_quick(check):
    method, _, label = check.name.partition(": ")
    if check.kind == "study":
        return method in STUDIED
    if check.kind == "scikit-learn":
        return method in CHECKED
    return method in QUICK and label.endswith(tuple(f"[{name}]" for name in QUICK[method]))


def repeats(case):
    """Data that differ from three classes of matrices by a layout that no parameter of the
    method tells.
    """
    by_layout = {samples.name: repr(case.build(samples.layout)) for samples in samples_for(case)}
    alike = {
        name for name, built in by_layout.items() if built == by_layout.get("matrices, 3 classes")
    }
    return alike & {"masked volumes, 3 classes", "modalities, 3 classes"}


#: One method of each set of base classes.
OF_EACH_KIND = set({frozenset(bases(case)): case.solver_name for case in CASES}.values())


def is_answered_by_others(check):
    """Whether a check tries folds and scores, which are the same for all, with permuted labels."""
    method, _, label = check.name.partition(": ")
    return label == "study_of_permuted_labels_finds_nothing" and method not in OF_EACH_KIND


CHECKS = {case.solver_name: list(estimator_checks(case)) for case in CASES}


@parametrize(check for checks in CHECKS.values() for check in checks if is_quick(check))
def test_conformance(check):
    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_conformance_of_every_method(name):
    """The checks that are not quick, thousands that take milliseconds each, in one test for each
    method.
    """
    failed, left_out = [], tuple(f"[{samples}]" for samples in repeats(BY_NAME[name]))
    for check in CHECKS[name]:
        if check.name.endswith(left_out) or is_answered_by_others(check):
            continue
        if not is_quick(check):
            try:
                check()
            except (SkipTest, pytest.skip.Exception):  # what the method does not take
                continue
            except Exception as error:  # noqa: BLE001 - the other checks are run too
                failed.append(f"{check.name}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_worker_of_ray_gives_the_numbers_of_this_process(tmp_path):
    """One method of each set of base classes: the executor is the same for all, and has a suite
    of its own.
    """
    studies, there = {}, {}
    for name in sorted(OF_EACH_KIND):
        folder = tmp_path / name
        folder.mkdir()
        samples = method_suite._samples(BY_NAME[name])
        studies[name] = study = method_suite._study(BY_NAME[name], samples, samples.y, folder)
        there[name] = ray.remote(run_by).remote(SerialExecutor(study), study, folder / "there")
    for name, study in studies.items():
        try:
            require_same_study(
                ray.get(there[name]), run_by(SerialExecutor(study), study, tmp_path / name / "here")
            )
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
