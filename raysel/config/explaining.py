"""Explanation of validation errors: the key, what is wrong with its value, and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from raysel.config.schema import StudyConfig
from raysel.errors import suggestion

#: Terms of pydantic's messages, and the terms of a configuration that replace them.
_WORDS = {
    "valid tuple": "list",
    "Tuple should": "List should",
    "Dictionary should": "Mapping should",
    " after validation": "",
    "valid dictionary": "mapping of keys to values",
    "valid integer": "whole number",
}


def explain(error: ValidationError) -> list[str]:
    """Explain what is wrong with a configuration."""
    return [_line(details) for details in error.errors()]


def _line(details: Mapping[str, Any]) -> str:
    location = [str(part) for part in details["loc"]]
    where = ".".join(location) or "the configuration"
    if details["type"] == "extra_forbidden":
        known = _fields_at(location[:-1]) + ([] if location[1:] else ["compare", "reference"])  # of a comparison
        hint = suggestion(location[-1], known, f"known here: {', '.join(known)}")
        return f"{where}: unknown key; {hint}"
    if details["type"] == "missing":
        return f"{where}: this key is required"
    if details["type"] == "model_type":
        return f"{where}: give its keys ({', '.join(_fields_at(location))}), not {details['input']!r}"
    message = details["msg"].removeprefix("Value error, ")
    for jargon, word in _WORDS.items():
        message = message.replace(jargon, word)
    given = details.get("input")
    shown = "" if isinstance(given, dict | list | BaseModel) or details["type"] == "value_error" else f", not {given!r}"
    return f"{where}: {message[0].lower()}{message[1:]}{shown}"


def _fields_at(location: list[str]) -> list[str]:
    model: Any = StudyConfig
    for part in location:
        if part in model.model_fields:  # otherwise an index into a list, whose sections are of one type
            model = _section_in(model.model_fields[part].annotation) or StudyConfig
    return list(model.model_fields)


def _section_in(annotation: Any) -> Any:
    """Return the section class that an annotation is or contains; None if there is none."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)
