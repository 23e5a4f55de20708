"""Conversion of nested mappings to dotted keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of nested mappings, joined by dots, with their values."""
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
