"""Public docstrings: all parameters in the order of the signature, and attributes that exist after a fit."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval

import pytest
from method_cases import CASES
from sklearn.base import BaseEstimator

import raysel
from raysel.base.registry import OWN, solver_class
from raysel.testing.estimators.fits import fitted
from raysel.testing.estimators.samples import samples_for

PUBLIC = {name: getattr(raysel, name) for name in raysel.__all__ if name != "__version__"}
METHODS = {name: solver_class(name) for name in OWN}
#: Attributes that a fit on a plain array, or with the parameters of the suite, does not set; their text says when.
SOMETIMES = re.compile(r"\bonly\b|if X had|if they are known|if it had any")


def entries(docstring: str, section: str) -> dict[str, tuple[str, str]]:
    """Type and text of each name that a section of a docstring describes."""
    body = rf"^{section}\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)"
    found = re.search(body, inspect.cleandoc(docstring), re.MULTILINE | re.DOTALL)
    described: dict[str, tuple[str, str]] = {}
    for head, text in re.findall(r"^(\S.*)\n((?:(?:[ ].*)?(?:\n|\Z))*)", found[1] if found else "", re.MULTILINE):
        names, _, kind = head.partition(" : ")
        described |= dict.fromkeys((name.strip() for name in names.split(",")), (kind, text.strip()))
    return described


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_each_parameter_is_described_in_the_order_of_the_signature(name):
    thing = (PUBLIC | METHODS)[name]
    parameters = inspect.signature(thing).parameters.values()
    described = entries(thing.__doc__, "Parameters")
    assert list(described) == [str(p).partition(":")[0].partition("=")[0] for p in parameters]
    for parameter in parameters:
        kind, text = described[parameter.name]
        assert text, f"{parameter.name} has no text"
        if parameter.default is not inspect.Parameter.empty and "default as in" not in kind:
            assert re.search(r"default=|optional", kind), parameter.name
            stated = re.search(r"default=(.*)$", kind)
            if stated and isinstance(parameter.default, int | float | str | None):
                assert literal_eval(stated[1]) == parameter.default, parameter.name


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_the_docstring_has_an_example(name):
    assert ">>> " in (PUBLIC | METHODS)[name].__doc__


@pytest.mark.parametrize("case", [case for case in CASES if case.name in OWN], ids=lambda case: case.name)
def test_documented_attributes_exist_after_a_fit(case):
    names = [name for name, (_, text) in entries(case.cls.__doc__, "Attributes").items() if not SOMETIMES.search(text)]
    assert names, f"{case.name} documents no attributes"
    model = fitted(case, next(samples_for(case)))
    assert isinstance(model, BaseEstimator)
    assert [name for name in names if not hasattr(model, name)] == []
