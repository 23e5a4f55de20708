"""Keys of the configuration by its schema: a table of all, and explanations of errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from raysel.config.comparison import ComparisonConfig, MemberKeys
from raysel.config.schema import (
    ClassLabel,
    FeatureGroups,
    LabelColumns,
    OuterFolds,
    Parameter,
    ScoringEstimatorChoice,
    SpaceDomain,
    Step,
    StudyConfig,
)
from raysel.core.errors import suggestion

_TYPES = {str: "text", int: "integer", float: "number", bool: "true | false"}
_NAMED = (
    (Parameter, "value"),
    (SpaceDomain, "domain"),
    (MemberKeys, "keys of a study"),
    (ClassLabel, "text or integer"),
    (ScoringEstimatorChoice, "auto, native, knn, linear_svm, ridge, dotted name or mapping"),
    (LabelColumns, "text or list of text"),
    (OuterFolds, "integer >= 2 or n_samples"),
    (Step, "step"),
    (FeatureGroups, "path, modalities or mapping"),
)
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
#: Terms of pydantic's messages, and the terms of a configuration that replace them.
_WORDS = {
    "valid tuple": "list",
    "Tuple should": "List should",
    "Dictionary should": "Mapping should",
    " after validation": "",
    "valid dictionary": "mapping of keys to values",
    "valid integer": "whole number",
}


class ConfigKey(NamedTuple):
    """One key of the configuration."""

    key: str
    type: str
    default: str
    description: str


def config_reference() -> list[ConfigKey]:
    """Return all keys of a study's configuration, in the schema's order."""
    return list(_list_keys(StudyConfig, ""))


def comparison_reference() -> list[ConfigKey]:
    """Return the keys that the configuration of a comparison has besides those of a study."""
    return list(_list_keys(ComparisonConfig, ""))


def _list_keys(model: type[BaseModel], prefix: str) -> Iterator[ConfigKey]:
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        annotation = _without_none(hints[name])
        if (section := _section_in(annotation)) and annotation != ScoringEstimatorChoice:
            listed = "" if annotation is section else "[]"
            yield from _list_keys(section, f"{prefix}{name}{listed}.")
        else:
            description = " ".join((field.description or "").split())
            yield ConfigKey(prefix + name, _type(annotation), _default(field), description)


def _without_none(annotation: Any) -> Any:
    """The annotation of an optional value where it is set; annotations around it are dropped."""
    inner = annotation
    if get_origin(annotation) is Annotated:
        inner = get_args(annotation)[0]
    if get_origin(inner) not in (UnionType, Union) or annotation in (
        Parameter,
        SpaceDomain,
        ScoringEstimatorChoice,
        LabelColumns,
        OuterFolds,
    ):
        return annotation
    (value,) = (part for part in get_args(inner) if part is not NoneType)
    return value


def _type(annotation: Any) -> str:
    for known, word in _NAMED:
        if annotation == known:
            return word
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        groups = [getattr(extra, "metadata", [extra]) for extra in arguments[1:]]
        metadata = list(chain.from_iterable(groups))
        return " ".join([_type(arguments[0]), ", ".join(_bounds(metadata))]).rstrip()
    if origin is Literal:
        return " | ".join(
            str(value).lower() if isinstance(value, bool) else str(value) for value in arguments
        )
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping of name to {_type(arguments[1])}"
    return _TYPES[annotation]


def _bounds(metadata: Sequence[Any]) -> list[str]:
    bounds = []
    for item in metadata:
        given = ((sign, getattr(item, name, None)) for name, sign in _BOUNDS.items())
        bounds += [f"{sign} {bound}" for sign, bound in given if bound is not None]
    return bounds


def _default(field: FieldInfo) -> str:
    if field.is_required() or field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "not set"
    if isinstance(field.default, str):
        return field.default
    return json.dumps(field.default)


def explain(error: ValidationError) -> list[str]:
    """Explain what is wrong with a configuration."""
    return [_line(details) for details in error.errors()]


def _line(details: Mapping[str, Any]) -> str:
    location = [str(part) for part in details["loc"]]
    where = ".".join(location) or "the configuration"
    if details["type"] == "extra_forbidden":
        known = _fields_at(location[:-1])
        if len(location) == 1:
            known = [*known, "compare", "reference"]  # of a comparison
        hint = suggestion(location[-1], known, f"known here: {', '.join(known)}")
        return f"{where}: unknown key; {hint}"
    if details["type"] == "missing":
        return f"{where}: this key is required"
    if details["type"] == "model_type":
        return (
            f"{where}: give its keys ({', '.join(_fields_at(location))}), not {details['input']!r}"
        )
    message = details["msg"].removeprefix("Value error, ")
    for jargon, word in _WORDS.items():
        message = message.replace(jargon, word)
    said = f"{where}: {message[0].lower()}{message[1:]}"
    given = details.get("input")
    if isinstance(given, dict | list | BaseModel) or details["type"] == "value_error":
        return said
    return f"{said}, not {given!r}"


def _fields_at(location: list[str]) -> list[str]:
    model: Any = StudyConfig
    for part in location:
        if (
            part in model.model_fields
        ):  # otherwise an index into a list, whose sections are of one type
            model = _section_in(model.model_fields[part].annotation) or StudyConfig
    return list(model.model_fields)


def _section_in(annotation: Any) -> Any:
    """Return the section class that an annotation is or contains; None if there is none."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((section for part in get_args(annotation) if (section := _section_in(part))), None)
