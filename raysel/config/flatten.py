"""Nested keys as dotted ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of nested mappings, joined by dots, with their values.

    Parameters
    ----------
    section : mapping
    prefix : str, default=""

    Yields
    ------
    str, object

    Examples
    --------
    >>> dict(flat({"a": {"b": 1}, "c": 2}))
    {'a.b': 1, 'c': 2}
    """
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
