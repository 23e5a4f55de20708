"""Docstrings: sections for public things only, with all parameters in order and attributes that
exist after a fit.
"""

from __future__ import annotations

import ast
import inspect
import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from method_cases import CASES
from sklearn.base import BaseEstimator

import raysel
import raysel.testing
from experiments.guide.reference import FOR_AUTHORS, RESULTS, find
from raysel.base.registry import OWN, solver_class
from raysel.data import layouts
from raysel.testing.method_cases import fitted, samples_for

PUBLIC = {name: getattr(raysel, name) for name in raysel.__all__ if name != "__version__"}
METHODS = {name: solver_class(name) for name in OWN}
#: Attributes that a fit on a plain array, or with the parameters of the suite, does not set; their
#: text says when.
SOMETIMES = re.compile(r"\bonly\b|if X had|if they are known|if it had any")
#: Headers of numpydoc's sections.
SECTION = re.compile(
    r"^ *(Parameters|Attributes|Returns|Yields|Raises|Warns|Examples|See Also|Notes|References)\n"
    r" *---",
    re.MULTILINE,
)


def entries(docstring: str, section: str) -> dict[str, tuple[str, str]]:
    """Type and text of each name that a section of a docstring describes."""
    body = rf"^{section}\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)"
    found = re.search(body, inspect.cleandoc(docstring), re.MULTILINE | re.DOTALL)
    described: dict[str, tuple[str, str]] = {}
    for head, text in re.findall(
        r"^(\S.*)\n((?:(?:[ ].*)?(?:\n|\Z))*)", found[1] if found else "", re.MULTILINE
    ):
        names, _, kind = head.partition(" : ")
        described |= dict.fromkeys(
            (name.strip() for name in names.split(",")), (kind, text.strip())
        )
    return described


def documented() -> set[str]:
    """Modules and names, ``module:name``, of what has numpydoc's sections: public things and
    raysel's bases of them.
    """
    things: list[Any] = [
        *PUBLIC.values(),
        *METHODS.values(),
        *(find(place) for place in (*FOR_AUTHORS, *RESULTS)),
    ]
    things += [getattr(home, name) for home in (raysel.testing, layouts) for name in home.__all__]
    bases = {
        base
        for thing in things
        for base in getattr(thing, "__mro__", [thing])
        if hasattr(base, "__qualname__")
    }
    return {
        f"{base.__module__}:{base.__qualname__}"
        for base in bases
        if base.__module__.startswith("raysel.")
    }


def is_documented(place: str, public: set[str]) -> bool:
    """Whether a thing is public, or a method of a public class: one without underscore, or any
    of a base of methods.
    """
    module, _, name = place.partition(":")
    holder, _, member = name.rpartition(".")
    return place in public or (
        f"{module}:{holder}" in public
        and (not member.startswith("_") or module.startswith("raysel.base."))
    )


def docstrings(module: ast.Module, name: str) -> Iterator[tuple[str, Any]]:
    """Place, as in `documented`, and node of a module and of each class and function in it."""
    pending: list[tuple[str, ast.AST]] = [("", module)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield f"{name}:{path}", node
        for child in ast.iter_child_nodes(node):
            deeper = child.name if isinstance(child, ast.ClassDef | ast.FunctionDef) else ""
            pending.append((".".join(filter(None, (path, deeper))), child))


def test_only_public_things_have_sections():
    public, root = documented(), Path(raysel.__file__).parent
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for place, node in docstrings(ast.parse(path.read_text(encoding="utf-8")), module):
            if not is_documented(place, public):
                found = SECTION.search(ast.get_docstring(node) or "")
                assert found is None, (
                    f"{place} is internal: its docstring is a summary, not a section {found[1]}"
                )


def test_each_parameter_is_described_in_the_order_of_the_signature():
    for name, thing in (PUBLIC | METHODS).items():
        parameters = inspect.signature(thing).parameters.values()
        described = entries(thing.__doc__, "Parameters")
        assert list(described) == [
            str(p).partition(":")[0].partition("=")[0] for p in parameters
        ], name
        for parameter in parameters:
            check_parameter(
                f"{name}: {parameter.name}", parameter.default, *described[parameter.name]
            )


def check_parameter(name, default, kind, text):
    assert text, f"{name} has no text"
    if default is not inspect.Parameter.empty and "default as in" not in kind:
        assert re.search(r"default=|optional", kind), name
        stated = re.search(r"default=(.*)$", kind)
        if stated and isinstance(default, int | float | str | None):
            assert literal_eval(stated[1]) == default, name


def test_each_docstring_has_an_example():
    assert [name for name, thing in (PUBLIC | METHODS).items() if ">>> " not in thing.__doc__] == []


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in OWN], ids=lambda case: case.name
)
def test_documented_attributes_exist_after_a_fit(case):
    names = [
        name
        for name, (_, text) in entries(case.cls.__doc__, "Attributes").items()
        if not SOMETIMES.search(text)
    ]
    assert names, f"{case.name} documents no attributes"
    model = fitted(case, next(samples_for(case)))
    assert isinstance(model, BaseEstimator)
    assert [name for name in names if not hasattr(model, name)] == []
