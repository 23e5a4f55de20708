"""The suite of a method: every check on every data set that the method declares to take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import SkipTest

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from raysel.base.adapter import ScikitLearnMethod
from raysel.base.estimator import Estimator
from raysel.testing.checks import Check, expecting
from raysel.testing.estimators import contract, declarations, invariance, storage, studies
from raysel.testing.estimators.samples import MethodCase, samples_for

#: The parts of the suite that are run on every data set.
_PARTS = {
    "contract": contract.CHECKS,
    "declarations": declarations.CHECKS,
    "invariance": invariance.CHECKS,
    "storage": storage.CHECKS,
}


def estimator_checks(
    method: str | type | MethodCase, params: Mapping[str, Any] | None = None, **knowledge: Any
) -> Iterator[Check]:
    """Generate the checks of the conformance suite of a method.

    Parameters
    ----------
    method : str, type or MethodCase
        Name or class of the method as for `MethodCase`, or a `MethodCase`.
    params : mapping, default=None
        Parameters of the constructor with which a fit takes milliseconds. None: the defaults.
    **knowledge
        Further fields of `MethodCase`: ``null_params``, ``varied``, ``tolerance``, ...

    Yields
    ------
    Check
        Checks of the kinds "contract", "declarations", "invariance", "storage", "study" and "scikit-learn".

    Examples
    --------
    >>> checks = estimator_checks("pca", {"n_components": 1}, objective=None)
    >>> next(check for check in checks if check.kind == "invariance")()
    """
    case = method if isinstance(method, MethodCase) else MethodCase(method, params or {}, **knowledge)
    yield from expecting(_checks(case), case.expected_failures)


def _checks(case: MethodCase) -> Iterator[Check]:
    for samples in samples_for(case):
        for kind, checks in _PARTS.items():
            for check in checks:
                name = f"{case.solver_name}: {check.__name__}[{samples.name}]"
                yield Check(name, partial(check, case, samples), kind)
    for study_check in studies.CHECKS:
        yield Check(f"{case.solver_name}: {study_check.__name__}", partial(study_check, case), "study")
    yield from _scikit_learns(case)


def _scikit_learns(case: MethodCase) -> Iterator[Check]:
    """Yield scikit-learn's own checks of the method, without a layout."""
    seeded = {"random_state": 0} if "random_state" in case.cls().get_params() else {}
    model = case.cls(**case.params, **seeded)
    estimator = model if isinstance(model, Estimator) else ScikitLearnMethod(model)
    for instance, check in estimator_checks_generator(estimator, mark=None):
        name = getattr(check, "func", check).__name__
        options = ", ".join(f"{key}={value}" for key, value in getattr(check, "keywords", {}).items())
        label = f"scikit-learn[{name}({options})]" if options else f"scikit-learn[{name}]"
        yield Check(f"{case.solver_name}: {label}", partial(_quietly, check, clone(instance)), "scikit-learn")


def _quietly(check: Callable[[Any], None], instance: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            check(instance)
        except SkipTest as reason:  # scikit-learn's own; without pytest it would end a loop over the checks
            warnings.warn(f"not checked: {reason}", UserWarning, stacklevel=2)
