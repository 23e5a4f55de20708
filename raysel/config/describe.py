"""Table of all configuration keys, generated from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from raysel.config.comparison import ComparisonConfig, MemberKeys
from raysel.config.schema import ClassLabel, Parameter, SpaceDomain, StudyConfig

_WORDS = {str: "text", int: "integer", float: "number", bool: "true | false"}
_NAMED = (
    (Parameter, "value"),
    (SpaceDomain, "domain"),
    (MemberKeys, "keys of a study"),
    (ClassLabel, "text or integer"),
)
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


class ConfigKey(NamedTuple):
    """One key of the configuration."""

    key: str
    type: str
    default: str
    description: str


def config_reference() -> list[ConfigKey]:
    """Return all keys of a study's configuration, in the schema's order."""
    return list(_keys_of(StudyConfig, ""))


def comparison_reference() -> list[ConfigKey]:
    """Return the keys that the configuration of a comparison has besides those of a study."""
    return list(_keys_of(ComparisonConfig, ""))


def _keys_of(model: type[BaseModel], prefix: str) -> Iterator[ConfigKey]:
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        annotation = _without_none(hints[name])
        section, listed = _section(annotation)
        if section is None:
            description = " ".join((field.description or "").split())
            yield ConfigKey(prefix + name, _type(annotation), _default(field), description)
        else:
            yield from _keys_of(section, f"{prefix}{name}{'[]' if listed else ''}.")


def _section(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The section that an annotation stands for, and whether it stands for a list of them."""
    if get_origin(annotation) is Annotated:
        return _section(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return _section(get_args(annotation)[0])[0], True
    return (annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None), False


def _without_none(annotation: Any) -> Any:
    """The annotation of an optional value where it is set; annotations around it are dropped."""
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if get_origin(inner) not in (UnionType, Union) or annotation in (Parameter, SpaceDomain):
        return annotation
    (found,) = (part for part in get_args(inner) if part is not NoneType)
    return found


def _type(annotation: Any) -> str:
    for known, word in _NAMED:
        if annotation == known:
            return word
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        metadata = [item for extra in arguments[1:] for item in getattr(extra, "metadata", [extra])]
        return " ".join([_type(arguments[0]), ", ".join(_bounds(metadata))]).rstrip()
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping of name to {_type(arguments[1])}"
    return _WORDS[annotation]


def _bounds(metadata: Sequence[Any]) -> list[str]:
    found = [(sign, getattr(item, name, None)) for item in metadata for name, sign in _BOUNDS.items()]
    return [f"{sign} {bound}" for sign, bound in found if bound is not None]


def _default(field: FieldInfo) -> str:
    if field.is_required() or field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "not set"
    return field.default if isinstance(field.default, str) else json.dumps(field.default)
