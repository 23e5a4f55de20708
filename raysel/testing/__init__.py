"""Conformance suites for methods, samplers and readers, raysel's own and those of other packages.

Each suite is a generator of checks, a `Check` has a name and is called without arguments, and
`parametrize` makes pytest's parameters of them. A package tests its method by three lines, in a
file that pytest collects:

    from raysel.testing import estimator_checks, parametrize

    @parametrize(estimator_checks("mine.methods.Lasso", {"alpha": 0.1}))
    def test_conformance(check): check()

Without pytest: ``for check in estimator_checks("mine.methods.Lasso"): check()``.
"""

from raysel.testing.checks import Check, parametrize
from raysel.testing.method_cases import MethodCase
from raysel.testing.method_suite import estimator_checks
from raysel.testing.readers import reader_checks
from raysel.testing.samplers import sampler_checks

__all__ = [
    "Check",
    "MethodCase",
    "estimator_checks",
    "parametrize",
    "reader_checks",
    "sampler_checks",
]
