"""Every registered method, and some of scikit-learn's, meet the suite of methods."""

from __future__ import annotations

import pytest
from method_cases import CASES, representatives

from raysel.base.registry import solver_names
from raysel.execution.ray.executor import RayExecutor
from raysel.testing import estimator_checks, parametrize
from raysel.testing.method_suite import executors_agree

BY_NAME = {case.solver_name: case for case in CASES}
QUICK = representatives(CASES)


def test_every_registered_method_has_a_case():
    assert set(solver_names()) <= set(BY_NAME)


@parametrize(
    (check for case in CASES for check in estimator_checks(case)),
    slow=lambda check: check.name.partition(":")[0] not in QUICK,
)
def test_conformance(check):
    check()


#: The number of workers matters to no method by itself: one of each kind is tried on one worker too.
WORKERS = [("linear_svm", 2), *((name, 1) for name in ("smr", "smml", "mtda")), *((name, 2) for name in BY_NAME)]


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize(
    ("name", "workers"),
    [pytest.param(*case, marks=[] if i == 0 else [pytest.mark.slow]) for i, case in enumerate(dict.fromkeys(WORKERS))],
)
def test_ray_gives_the_numbers_of_the_serial_executor(name, workers):
    executors_agree(BY_NAME[name], lambda study: RayExecutor(study, None), max_concurrent=workers)
